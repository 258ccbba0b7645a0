//! Answers to probes count only if they belong to the current freeze.

use spray_wire::{Probe, ProbeAck};

use super::*;
use crate::event::Event;
use crate::path::{BalancerConfig, Ev, RepsConfig};
use crate::rng::{self, Rng};

/// A sender that freezes and probes.
struct Rig {
    sender: Sender,
    rng: Rng,
    events: std::vec::Vec<(Time, Event)>,
    now: Time,
    evs: u16,
}

impl Rig {
    fn new(evs: u16) -> Self {
        let reps = RepsConfig { timed_exit: true, ..RepsConfig::default().with_probing() };
        let mut config = FlowConfig { give_up_ps: 1 << 60, ack_every: 1, sack_gap_packets: None, ..open_config() };
        (config.balancer, config.path.evs, config.path.bdp_packets) = (BalancerConfig::Reps(reps), evs, 0);
        let mut rng = rng::stream(1, 1);
        let mut sender = Sender::new(&config, config.window_packets, config.max_data_bytes, &mut rng);
        sender.send_message(0, 60_000_000).unwrap();
        Self { sender, rng, events: std::vec![], now: Time::ZERO, evs }
    }

    /// Lets packets time out until the sender freezes.
    fn freeze(&mut self) {
        for _ in 0..10_000 {
            while self.sender.poll_transmit(self.now, &mut self.rng, &mut self.events).is_some() {}
            self.now = self.sender.poll_timeout().unwrap().max(self.now.next());
            self.sender.on_timeout(self.now, &mut self.events);
            if self.is_frozen() {
                return;
            }
        }
        panic!("it never freezes: {:?}", self.events);
    }

    fn is_frozen(&self) -> bool {
        let last = self
            .events
            .iter()
            .rev()
            .find(|(_, event)| matches!(event, Event::FreezeEntered { .. } | Event::FreezeExited));
        matches!(last, Some((_, Event::FreezeEntered { .. })))
    }

    /// Returns the next probe, with its path.
    fn probe(&mut self) -> (Probe, Ev) {
        for _ in 0..10_000 {
            self.now = self.now.after(US);
            if let Some(Transmit::Probe { probe, ev }) =
                self.sender.poll_transmit(self.now, &mut self.rng, &mut self.events)
            {
                return (probe, ev);
            }
        }
        panic!("it never probes: {:?}", self.events);
    }

    /// Returns whether this answer makes the sender thaw.
    fn thaws(&mut self, (probe, ev): (Probe, Ev)) -> bool {
        let Probe { token, timestamp } = probe;
        let answer = ProbeAck { token, timestamp, port: ev.port(self.evs.into()), ..ProbeAck::default() };
        self.sender.on_probe_ack(self.now, &answer, &mut self.events);
        !self.is_frozen()
    }
}

//= docs/specs/transport.md#TRN-63 answers to probes
//= docs/specs/reps.md#REPS-18 answers to probes
#[test]
fn only_an_answer_to_a_probe_of_this_freeze_thaws() {
    let mut rig = Rig::new(1024);
    rig.freeze();
    let early = (Probe { token: 1, timestamp: rig.now }, Ev::new(5));
    assert!(!rig.thaws(early), "no probe has been sent");
    let (probe, ev) = rig.probe();
    for wrong in [
        (Probe { token: 0, ..probe }, ev),
        (Probe { token: probe.token + 1, ..probe }, ev),
        (Probe { timestamp: probe.timestamp.before(Time::STEP_PS), ..probe }, ev),
        (Probe { timestamp: probe.timestamp.next(), ..probe }, ev),
    ] {
        assert!(!rig.thaws(wrong), "{wrong:?}");
    }
    assert_eq!(rig.sender.stats().stale_probe_acks, 4);
    assert!(!rig.thaws((probe, Ev::new(ev.index() ^ 1))), "over another path");
    let second = rig.probe();
    assert!(!rig.thaws((Probe { timestamp: second.0.timestamp.next(), ..probe }, ev)), "later than any probe");
    assert!(rig.thaws((probe, ev)), "an answer may arrive after the next probe was sent");
    assert!(rig.thaws(second), "it stays thawed");
}

//= docs/specs/transport.md#TRN-63 answers to probes
#[test]
fn answers_of_an_earlier_freeze_are_stale() {
    // With one path each freeze suspects the same path.
    let mut rig = Rig::new(1);
    rig.freeze();
    let first = rig.probe();
    let second = rig.probe();
    assert!(rig.thaws(first));
    // It explores no BDP here, so that the next loss freezes again.
    rig.freeze();
    assert!(!rig.thaws(second), "late, before the first probe of this freeze");
    assert!(!rig.thaws(first), "replayed");
    let own = rig.probe();
    assert!(!rig.thaws(second) && !rig.thaws(first), "late or replayed, after a probe of this freeze");
    assert!(rig.thaws(own));
}

//= docs/specs/transport.md#TRN-32 backoff
#[test]
fn an_answer_ends_backoff() {
    let timeouts = |rig: &mut Rig, until: Time| {
        let before = rig.events.len();
        while rig.now < until {
            while rig.sender.poll_transmit(rig.now, &mut rig.rng, &mut rig.events).is_some() {}
            rig.now = rig.sender.poll_timeout().unwrap().max(rig.now.next()).min(until);
            rig.sender.on_timeout(rig.now, &mut rig.events);
        }
        rig.events[before..].iter().filter(|(_, event)| matches!(event, Event::Timeout { .. })).count()
    };
    let config = open_config();
    let (base_ps, silence_ps) = (config.rto.min_ps, 200 * config.rto.min_ps);
    let mut silent = Rig::new(64);
    let end = silent.now.after(silence_ps);
    timeouts(&mut silent, end);
    let mut answered = Rig::new(64);
    timeouts(&mut answered, end);
    let probe = answered.probe();
    answered.thaws(probe);
    let soon = answered.now.after(2 * base_ps);
    assert_eq!(timeouts(&mut silent, soon), 0, "the timeout keeps backing off");
    assert!(timeouts(&mut answered, soon) > 0);
}
