//! Every congestion control in a closed loop: flows share one queue of 100 packets, which marks
//! between 20 and 80 packets and trims beyond 100.

use std::vec::Vec;

use super::*;
use crate::tests::agenda::Agenda;

const SLOT_PS: u64 = 83_000;
const LIMIT: u64 = 100;

struct Flow {
    cc: AnyCc,
    in_flight: u64,
    delivered: u64,
    starts: u64,
}

enum Feedback {
    Ack { flow: usize, sent_ps: u64, marked: bool },
    Trim { flow: usize },
}

struct Loop {
    flows: Vec<Flow>,
    path: Path,
    control: ControlConfig,
    slot: u64,
    /// When the queue will be empty, in slots.
    free_at: u64,
    longest: u64,
    trims: u64,
    /// Accumulated marking probability: a deterministic form of random early detection.
    mark: u64,
    feedback: Agenda<Feedback>,
}

impl Loop {
    fn new(kind: CcKind, starts: &[u64]) -> Self {
        let (control, path) = (kind.into(), reference());
        let flow = |&starts: &u64| Flow { cc: AnyCc::new(&control, &path), in_flight: 0, delivered: 0, starts };
        Self {
            flows: starts.iter().map(flow).collect(),
            path,
            control,
            slot: 0,
            free_at: 0,
            longest: 0,
            trims: 0,
            mark: 0,
            feedback: Agenda::default(),
        }
    }

    /// Runs for a number of slots and returns the number of packets that each flow delivered.
    fn run(&mut self, slots: u64) -> Vec<u64> {
        let before: Vec<u64> = self.flows.iter().map(|flow| flow.delivered).collect();
        self.longest = 0;
        for _ in 0..slots {
            self.step();
        }
        self.flows.iter().zip(before).map(|(flow, before)| flow.delivered - before).collect()
    }

    fn step(&mut self) {
        let now_ps = self.slot * SLOT_PS;
        while let Some(feedback) = self.feedback.take_due(at(now_ps)) {
            self.take(now_ps, feedback);
        }
        let count = self.flows.len();
        for turn in 0..count {
            self.send(now_ps, (self.slot as usize + turn) % count);
        }
        self.slot += 1;
    }

    fn send(&mut self, now_ps: u64, index: usize) {
        let flow = &mut self.flows[index];
        let fits = flow.in_flight == 0 || (flow.in_flight + 1) * u64::from(PACKET) <= flow.cc.window_bytes(&self.path);
        if flow.starts > self.slot || !fits || flow.cc.poll_send(self.path.at_ps(now_ps)) > at(now_ps) {
            return;
        }
        flow.cc.on_send(self.path.at_ps(now_ps), PACKET);
        flow.in_flight += 1;
        let waits = self.free_at.saturating_sub(self.slot);
        self.longest = self.longest.max(waits);
        let (after, feedback) = if waits >= LIMIT {
            self.trims += 1;
            (0, Feedback::Trim { flow: index })
        } else {
            self.free_at = self.free_at.max(self.slot) + 1;
            self.mark += waits.saturating_sub(LIMIT / 5).min(LIMIT * 3 / 5);
            let marked = self.mark >= LIMIT * 3 / 5;
            self.mark -= if marked { LIMIT * 3 / 5 } else { 0 };
            (waits, Feedback::Ack { flow: index, sent_ps: now_ps, marked })
        };
        self.feedback.put(at(now_ps + after * SLOT_PS + BASE_RTT_PS), feedback);
    }

    fn take(&mut self, now_ps: u64, feedback: Feedback) {
        match feedback {
            Feedback::Ack { flow, sent_ps, marked } => {
                let flow = &mut self.flows[flow];
                flow.in_flight -= 1;
                flow.delivered += 1;
                let info = AckInfo {
                    rtt_ps: now_ps - sent_ps,
                    hops: 3,
                    in_flight_bytes: flow.in_flight * u64::from(PACKET),
                    ..acks(PACKET.into(), 1, u16::from(marked))
                };
                flow.cc.on_ack(self.path.at_ps(now_ps), &info);
            }
            Feedback::Trim { flow } => {
                let flow = &mut self.flows[flow];
                flow.in_flight -= 1;
                flow.cc.on_loss(self.path.at_ps(now_ps), PACKET, LossCause::Trimmed);
            }
        }
        let most = self.path.max_window_bytes.max(self.path.initial_window_bytes);
        for flow in &self.flows {
            let window = flow.cc.window_bytes(&self.path);
            let unbounded = matches!(self.control, ControlConfig::Dcqcn(_));
            assert!(window >= u64::from(PACKET) && (window <= most || unbounded), "{window}");
        }
    }
}

/// The reactive controls, and the number of slots in which they converge: DCQCN's timers take 660
/// slots.
const REACTIVE: [(CcKind, u64); 4] =
    [(CcKind::Dctcp, 40_000), (CcKind::MSwift, 40_000), (CcKind::Nscc, 40_000), (CcKind::Dcqcn, 400_000)];

#[test]
fn one_flow_fills_the_link() {
    for (kind, settle) in REACTIVE {
        let mut one = Loop::new(kind, &[0]);
        one.run(settle);
        let delivered = one.run(20_000)[0];
        assert!(delivered >= 19_600, "{kind}: {delivered} of 20,000");
        assert!(one.trims == 0, "{kind}: {} trims", one.trims);
    }
}

#[test]
fn a_late_flow_gets_its_share_and_queues_stay_short() {
    for (kind, settle) in REACTIVE {
        let mut two = Loop::new(kind, &[0, settle / 4]);
        two.run(settle);
        let shares = two.run(settle);
        let (first, second) = (shares[0], shares[1]);
        assert!(first + second >= settle * 93 / 100, "{kind}: {shares:?} of {settle}");
        assert!(first.abs_diff(second) * 4 <= first + second, "{kind}: {shares:?}");
        // DCQCN has no window, and 50 us between two cuts, in which its queue fills.
        assert!(two.longest <= 90 || kind == CcKind::Dcqcn, "{kind}: {} packets wait", two.longest);
    }
}

#[test]
fn sixteen_flows_at_once_converge_without_trims() {
    for (kind, settle) in REACTIVE {
        let mut many = Loop::new(kind, &[0; 16]);
        many.run(settle);
        let trims = many.trims;
        let shares = many.run(settle);
        let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
        assert!(shares.iter().sum::<u64>() >= settle * 93 / 100, "{kind}: {shares:?} of {settle}");
        assert!(least * 3 >= *most, "{kind}: {shares:?}");
        assert!(many.trims == trims, "{kind}: {} trims", many.trims - trims);
    }
}
