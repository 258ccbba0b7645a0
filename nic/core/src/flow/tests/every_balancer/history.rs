//! A balancer without a connection: packets are sent as it permits, and feedback is arbitrary.

use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use crate::Time;
use crate::flow::FlowConfig;
use crate::now::Path;
use crate::path::{
    AckInfo, Admission, AnyBalancer, Balancer, Ev, Flight, LossCause, LossInfo, PacketInfo, ProbeInfo, SendInfo,
};
use crate::rng::{self, Rng};
use crate::tests::at_step;

/// One step of a history.
#[derive(Clone, Debug)]
pub enum Step {
    /// Advances the time, in ns.
    Wait(u64),
    /// Advances to the balancer's next wake-up.
    Wake,
    /// Sends up to this number of packets, while the balancer permits.
    Send(u8),
    /// Acknowledges the packet at this position among those in flight.
    Ack(u16, Answer),
    /// Declares the packet at this position lost.
    Lose(u16, u8),
    /// Acknowledges an entropy value, whether or not it is in flight.
    Stray(u16, Answer),
    /// Declares a packet lost that is not in flight.
    StrayLoss(u16, u64),
    /// Answers a probe, sent or not.
    ProbeAck(u16, bool),
    /// Sets the paths found by routing.
    Reachable(Vec<u16>),
}

/// The contents of an acknowledgement besides its entropy value.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    marked: bool,
    rtt_ps: u64,
    packets: u16,
    hops: u8,
}

impl Step {
    pub fn any() -> impl Strategy<Value = Self> {
        let rtt_ps = prop_oneof![4 => 8_000_000u64..40_000_000, 1 => 1u64..1000, 1 => any::<u64>()];
        let answer = (any::<bool>(), rtt_ps, prop_oneof![4 => Just(1u16), 1 => any::<u16>()], 0u8..9)
            .prop_map(|(marked, rtt_ps, packets, hops)| Answer { marked, rtt_ps, packets, hops })
            .boxed();
        prop_oneof![
            3 => (0u64..30_000).prop_map(Self::Wait),
            1 => (0u64..10_000_000_000).prop_map(Self::Wait),
            2 => Just(Self::Wake),
            8 => (1u8..20).prop_map(Self::Send),
            8 => (0u16..64, answer.clone()).prop_map(|(place, answer)| Self::Ack(place, answer)),
            2 => (0u16..64, any::<u8>()).prop_map(|(place, cause)| Self::Lose(place, cause)),
            1 => (any::<u16>(), answer).prop_map(|(ev, answer)| Self::Stray(ev, answer)),
            1 => (any::<u16>(), any::<u64>()).prop_map(|(ev, psn)| Self::StrayLoss(ev, psn)),
            1 => (any::<u16>(), any::<bool>()).prop_map(|(ev, marked)| Self::ProbeAck(ev, marked)),
            1 => prop::collection::vec(any::<u16>(), 0..40).prop_map(Self::Reachable),
        ]
    }
}

const PACKET_BYTES: u32 = 1100;
/// The number of wake-ups after which a balancer must admit a packet when nothing is in flight.
const MAX_WAKES: u32 = 100;

/// The balancer, and the packets in flight.
pub struct History {
    balancer: AnyBalancer,
    path: Path,
    rng: Rng,
    now: Time,
    next_psn: u64,
    /// In the order of their numbers.
    in_flight: Vec<PacketInfo>,
    /// Declared lost and not yet retransmitted.
    lost: Vec<PacketInfo>,
}

impl History {
    pub fn new(flow: &FlowConfig, seed: u64) -> Self {
        let mut rng = rng::stream(seed, 1);
        let path = flow.clamped().path;
        let mut balancer = AnyBalancer::new(&flow.balancer, &path, &mut rng);
        balancer.on_control(&flow.cc, &path);
        Self { balancer, path, rng, now: Time::ZERO, next_psn: 0, in_flight: vec![], lost: vec![] }
    }

    /// Performs a step.
    pub fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Wait(ns) => self.now = self.now.after(ns * 1000),
            Step::Wake => {
                let wake = self.balancer.poll_timeout(&self.path).unwrap_or(Time::ZERO);
                self.now = wake.min(at_step(1 << 60)).max(self.now);
            }
            Step::Send(packets) => {
                for _ in 0..*packets {
                    if !self.send()? {
                        break;
                    }
                }
            }
            Step::Ack(place, answer) => self.ack(usize::from(*place), *answer),
            Step::Lose(place, cause) => self.lose(usize::from(*place), *cause),
            Step::Stray(ev, answer) => {
                let info = self.ack_info(self.within(*ev), *answer);
                self.balancer.on_ack(self.path.at(self.now), &info, &mut ());
            }
            Step::StrayLoss(ev, psn) => {
                let loss = LossInfo { psn: *psn, ev: self.within(*ev), bytes: PACKET_BYTES, ..LossInfo::default() };
                self.balancer.on_loss(self.path.at(self.now), &loss, &mut ());
            }
            Step::ProbeAck(ev, marked) => {
                let answer = ProbeInfo { ev: self.within(*ev), marked: *marked, rtt_ps: 10_000_000 };
                self.balancer.on_probe_ack(self.path.at(self.now), &answer, &mut ());
            }
            Step::Reachable(paths) => {
                let paths: Vec<_> = paths.iter().map(|ev| [self.within(*ev); 8]).collect();
                self.balancer.on_reachable(self.path.at(self.now), &paths);
            }
        }
        self.check_declarations()?;
        self.probes()
    }

    /// Checks that a balancer without timers sets none, and that one that never holds packets back
    /// does not drain.
    fn check_declarations(&self) -> Result<(), String> {
        let balancer = &self.balancer;
        if !balancer.features().timer() && balancer.poll_timeout(&self.path).is_some() {
            return Err("requests a wake-up without having timers".into());
        }
        if !balancer.features().delays_packets && balancer.is_draining() {
            return Err("drains without holding packets back".into());
        }
        Ok(())
    }

    /// Acknowledges everything in flight; then a packet must be admitted, at once or after some
    /// wake-ups.
    ///
    /// # Errors
    /// If it is not.
    pub fn finish(mut self) -> Result<(), String> {
        let answer = Answer { marked: false, rtt_ps: 10_000_000, packets: 1, hops: 3 };
        while !self.in_flight.is_empty() || !self.lost.is_empty() {
            self.now = self.now.after(1000);
            self.ack(0, answer);
        }
        for _ in 0..MAX_WAKES {
            self.probes()?;
            if self.send()? {
                return Ok(());
            }
            let wake = self.balancer.poll_timeout(&self.path);
            let wake = wake.ok_or_else(|| format!("waits for nothing at {:?}", self.now))?;
            self.now = wake.max(self.now.next());
        }
        Err(format!("still waits after {MAX_WAKES} wake-ups, with nothing in flight"))
    }

    fn probes(&mut self) -> Result<(), String> {
        let sections = self.balancer.features().sections;
        for _ in 0..1000 {
            let trailer =
                if sections { self.balancer.poll_trailer(self.path.at(self.now), &Flight::default()) } else { None };
            match (self.balancer.poll_probe(self.path.at(self.now)), trailer) {
                (None, None) => return Ok(()),
                (Some(_), _) if !self.balancer.features().probing => return Err("probes without offering it".into()),
                (probe, trailer) => {
                    let evs = [probe, trailer.map(|trailer| trailer.ev)];
                    evs.into_iter().flatten().try_for_each(|ev| self.check(ev))?;
                }
            }
        }
        Err("probes without end".into())
    }

    /// Sends a packet, a lost one first, if the balancer permits.
    fn send(&mut self) -> Result<bool, String> {
        let again = self.lost.first().copied();
        let packet = SendInfo {
            psn: again.map_or(self.next_psn, |packet| packet.psn),
            bytes: PACKET_BYTES,
            retransmit: again.is_some(),
            in_flight_bytes: self.in_flight_bytes(),
            unacked_packets: self.unacked_packets(),
            unsent_bytes: 1 << 20,
        };
        match self.balancer.admit(self.path.at(self.now), &packet) {
            Admission::Window => {}
            _ if !self.balancer.features().delays_packets => return Err("decides without holding packets back".into()),
            Admission::Go => {}
            Admission::Wait => return Ok(false),
        }
        let ev = self.balancer.next_ev(self.path.at(self.now), &packet, &mut self.rng);
        self.check(ev)?;
        let _ = self.balancer.section();
        let sent =
            PacketInfo { psn: packet.psn, ev, bytes: PACKET_BYTES, sent_at: self.now, was_lost: false, reported: true };
        match again {
            Some(_) => drop(self.lost.remove(0)),
            None => self.next_psn += 1,
        }
        let place = self.in_flight.partition_point(|packet| packet.psn < sent.psn);
        self.in_flight.insert(place, sent);
        Ok(true)
    }

    fn check(&self, ev: Ev) -> Result<(), String> {
        let evs = self.path.evs;
        if ev.index() < evs { Ok(()) } else { Err(format!("entropy value {ev:?} of {evs}")) }
    }

    fn ack(&mut self, place: usize, answer: Answer) {
        let late = self.in_flight.is_empty() || (place % 8 == 7 && !self.lost.is_empty());
        let from = if late { &mut self.lost } else { &mut self.in_flight };
        if from.is_empty() {
            return;
        }
        let packet = from.remove(place % from.len());
        let packet = PacketInfo { was_lost: late, ..packet };
        if self.balancer.features().packet_feedback {
            self.balancer.on_packet_acked(self.path.at(self.now), &packet);
        }
        let info = self.ack_info(packet.ev, answer);
        self.balancer.on_ack(self.path.at(self.now), &info, &mut ());
    }

    fn lose(&mut self, place: usize, cause: u8) {
        if self.in_flight.is_empty() {
            return;
        }
        let packet = self.in_flight.remove(place % self.in_flight.len());
        let causes =
            [LossCause::Timeout, LossCause::SackGap, LossCause::Trimmed, LossCause::Missing, LossCause::GoBackN];
        self.lost.push(packet);
        self.lost.sort_by_key(|packet| packet.psn);
        let loss = LossInfo {
            psn: packet.psn,
            ev: packet.ev,
            bytes: packet.bytes,
            cause: causes[usize::from(cause % 5)],
            max_rtt_ps: u64::from(cause) * 1_000_000,
            max_before_timeout_ps: u64::from(cause) * 2_000_000,
            in_flight_bytes: self.in_flight_bytes(),
            sent_at: packet.sent_at,
            expires_at: self.now.after(u64::from(cause) * 1_000_000),
            is_early: cause.is_multiple_of(2),
        };
        self.balancer.on_loss(self.path.at(self.now), &loss, &mut ());
    }

    fn ack_info(&self, ev: Ev, answer: Answer) -> AckInfo {
        AckInfo {
            ev,
            marked: answer.marked,
            packets: answer.packets,
            marked_packets: if answer.marked { answer.packets } else { 0 },
            bytes: u64::from(answer.packets) * u64::from(PACKET_BYTES),
            rtt_ps: answer.rtt_ps.max(1),
            hops: answer.hops,
            packet_bytes: PACKET_BYTES,
            in_flight_bytes: self.in_flight_bytes(),
            unacked_packets: self.unacked_packets(),
            unsent_bytes: 1 << 20,
            ..AckInfo::default()
        }
    }

    /// Returns a value of the set: engines return no others, and senders filter them.
    fn within(&self, index: u16) -> Ev {
        Ev::new(index % self.path.evs)
    }

    fn in_flight_bytes(&self) -> u64 {
        self.in_flight.len() as u64 * u64::from(PACKET_BYTES)
    }

    fn unacked_packets(&self) -> u64 {
        (self.in_flight.len() + self.lost.len()) as u64
    }
}
