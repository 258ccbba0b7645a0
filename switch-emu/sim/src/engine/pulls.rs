//! Credit that receiving hosts grant: each host has one pacer for all that send to it, once one of them asks.

use rand_core::RngCore;
use spray_core::cc::{EqdsConfig, PullPacer};
use spray_wire::{self as wire, PullRequest};

use super::super::arena::{Control, Kind, Slot, Turn, key};
use super::super::hosts::{NO_PULLS, Pulls};
use super::Engine;

impl Engine<'_> {
    /// A sender asks its receiver for credit.
    pub(super) fn pull_request_arrives(&mut self, connection: u32, request: PullRequest) {
        let now_ps = self.now_ps;
        let entry = &mut self.connections[connection as usize];
        let Some(ends) = entry.ends.as_deref_mut() else { return };
        ends.receiver.on_pull_request(&request);
        let (host, setting) = (entry.dst, ends.eqds);
        let rate_bps = self.switches.ports[self.hosts[host as usize].port as usize].rate_bps;
        let pulls = self.hosts[host as usize].pulls.get_or_insert_with(|| Box::new(pulls_of(rate_bps, &setting)));
        if entry.pull_entry == NO_PULLS {
            entry.pull_entry = pulls.pacer.open(connection, setting.pull_bytes(entry.full_packet_bytes()));
        }
        pulls.pacer.on_request(now_ps, entry.pull_entry, request.pulled_bytes);
        self.wants_credit(connection);
    }

    /// A receiver that grants credit may have to grant more: for what its sender asked, or for what was trimmed.
    #[inline]
    pub(super) fn wants_credit(&mut self, connection: u32) {
        let entry = &self.connections[connection as usize];
        if entry.pull_entry == NO_PULLS {
            return;
        }
        let Some(ends) = entry.ends.as_deref() else { return };
        let (host, target) = (entry.dst, ends.receiver.pull_target());
        let Some(pulls) = self.hosts[host as usize].pulls.as_deref_mut() else { return };
        pulls.pacer.on_target(self.now_ps, entry.pull_entry, target);
        self.arm_pulls(host);
    }

    /// The time of a host's next pull has come.
    pub(super) fn pull_due(&mut self, host: u32) {
        let now_ps = self.now_ps;
        let Some(pulls) = self.hosts[host as usize].pulls.as_deref_mut() else { return };
        pulls.armed = false;
        if let Some((connection, pull)) = pulls.pacer.poll_pull(now_ps) {
            let evs = self.connections[connection as usize].evs.max(1);
            let ev = (self.hosts[host as usize].rng.next_u32() % evs) as u16;
            self.send_control(connection, 1, wire::ev_port(ev, evs), self.spec.frames.pull, Control::Pull(pull));
        }
        self.arm_pulls(host);
    }

    /// A connection that ends asks for nothing more.
    pub(super) fn end_pulls(&mut self, connection: u32) {
        let entry = &mut self.connections[connection as usize];
        let (host, index) = (entry.dst, std::mem::replace(&mut entry.pull_entry, NO_PULLS));
        if index != NO_PULLS
            && let Some(pulls) = self.hosts[host as usize].pulls.as_deref_mut()
        {
            pulls.pacer.close(index);
        }
    }

    fn arm_pulls(&mut self, host: u32) {
        let now_ps = self.now_ps;
        let Some(pulls) = self.hosts[host as usize].pulls.as_deref_mut() else { return };
        if pulls.armed {
            return;
        }
        let Some(at_ps) = pulls.pacer.poll_timeout() else { return };
        pulls.armed = true;
        let key = key(at_ps.max(now_ps), Turn::Timer);
        self.insert(Slot { key, kind: Kind::Pull, place: host, ..Slot::EMPTY });
    }
}

fn pulls_of(rate_bps: u64, setting: &EqdsConfig) -> Pulls {
    Pulls { pacer: PullPacer::new(rate_bps, setting.pull_rate), armed: false }
}
