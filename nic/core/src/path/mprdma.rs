//! MP-RDMA's path rule (Lu et al., NSDI 2018, §4.2, §4.3; REPS §4.1): `docs/specs/mprdma.md`.

#[cfg(test)]
mod tests;

use super::{
    AckInfo, Balancer, Ev, Features, LossCause, LossInfo, Now, PacketInfo, Path, Publisher, Rng, Scheme, SendInfo,
    Time, draw, draw_below, settings,
};
use crate::units::Ratio;

settings! {
    /// The settings of [`Mprdma`].
    pub struct MprdmaConfig {
        /// The variant of the rule.
        pub rule: MprdmaRule = MprdmaRule::Artifact,
        /// `paper`: paths of packets more than this many behind the latest are not reused.
        #[schemars(range(min = 1, max = 65_535))]
        pub ooo_packets: u16 = 32,
        /// `paper`: probability per round trip of a packet on a random path. Thousandths count.
        #[schemars(range(min = 0, max = 1), extend("x-decimals" = 3))]
        pub probe_share: Ratio = Ratio::permille(10),
    }

    /// The variants of MPRDMA's rule.
    #[derive(Default)]
    pub enum MprdmaRule {
        /// As in the artifact of the REPS paper.
        #[default]
        Artifact,
        /// MP-RDMA's own.
        Paper,
    }
}

/// Reuses the entropy value of the last acknowledgement that left room for a packet.
#[derive(Clone, Debug)]
pub struct Mprdma {
    state: LastAck,
    settings: Settings,
}

impl Scheme for Mprdma {
    type Config = MprdmaConfig;

    const STATE_BYTES: usize = size_of::<LastAck>();

    fn make(own: &MprdmaConfig, _path: &Path, _rng: &mut Rng) -> Self {
        let settings = Settings {
            ooo_packets: own.ooo_packets.into(),
            probe_permille: own.probe_share.to_permille().min(1_000) as u16,
            paper: own.rule == MprdmaRule::Paper,
        };
        Self { state: LastAck::default(), settings }
    }
}

impl Balancer for Mprdma {
    fn features(&self) -> Features {
        Features { packet_feedback: self.settings.paper, ..Features::default() }
    }

    //= docs/specs/mprdma.md#MPRDMA-1 initial exploration
    fn next_ev(&mut self, now: Now<'_>, _packet: &SendInfo, rng: &mut Rng) -> Ev {
        if self.state.reuses && !(self.settings.paper && self.probes(now, rng)) {
            self.state.ev
        } else {
            draw(now.path.evs, rng)
        }
    }

    fn on_ack(&mut self, now: Now<'_>, ack: &AckInfo, _publisher: &mut dyn Publisher) {
        let reuses = if self.settings.paper { self.is_in_time() } else { has_room(ack) };
        if reuses && ack.ev.index() < now.path.evs {
            self.state.ev = ack.ev;
            self.state.reuses = true;
        } else if !self.settings.paper {
            self.state.reuses = false;
        }
    }

    //= docs/specs/mprdma.md#MPRDMA-4 trimmed packets
    //= docs/specs/mprdma.md#MPRDMA-5 timeouts
    fn on_loss(&mut self, now: Now<'_>, loss: &LossInfo, _publisher: &mut dyn Publisher) {
        let Self { state, settings } = self;
        match loss.cause {
            LossCause::Timeout if loss.ev == state.ev => state.reuses = false,
            LossCause::Trimmed | LossCause::TrimmedLast
                if state.reuses && !settings.paper && loss.ev.index() < now.path.evs =>
            {
                state.ev = loss.ev;
            }
            _ => {}
        }
    }

    /// Stores the number: the last call for an acknowledgement has the highest.
    fn on_packet_acked(&mut self, _now: Now<'_>, packet: &PacketInfo) {
        self.state.acked = packet.psn;
    }
}

impl Mprdma {
    //= docs/specs/mprdma.md#MPRDMA-6 slow paths
    fn is_in_time(&mut self) -> bool {
        let LastAck { acked, highest, .. } = &mut self.state;
        *highest = (*highest).max(*acked);
        *highest - *acked <= self.settings.ooo_packets
    }

    /// Whether this packet, the first of a round trip, explores.
    //= docs/specs/mprdma.md#MPRDMA-7 periodic exploration
    fn probes(&mut self, now: Now<'_>, rng: &mut Rng) -> bool {
        if now.time < self.state.probe_at || self.settings.probe_permille == 0 {
            return false;
        }
        self.state.probe_at = now.after(now.path.base_rtt_ps);
        draw_below(1_000, rng) < self.settings.probe_permille
    }
}

/// Whether the window has room for two packets after an acknowledgement.
//= docs/specs/mprdma.md#MPRDMA-2 room
//= docs/specs/mprdma.md#MPRDMA-3 reuse
fn has_room(ack: &AckInfo) -> bool {
    let room = ack.window_bytes.saturating_sub(ack.in_flight_bytes);
    room.saturating_add(SLACK_BYTES) > 2 * u64::from(ack.packet_bytes)
}

/// REPS's artifact requires room for a full packet less its header and two bytes.
const SLACK_BYTES: u64 = 66;

#[derive(Clone, Copy, Debug, Default)]
struct LastAck {
    /// Highest packet number of the present acknowledgement.
    acked: u64,
    highest: u64,
    /// When the next round trip begins.
    probe_at: Time,
    ev: Ev,
    /// Packets carry `ev`; otherwise each draws a value.
    reuses: bool,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    ooo_packets: u64,
    probe_permille: u16,
    paper: bool,
}
