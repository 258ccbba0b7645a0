//! Random histories against a literal model, and against REPS.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// A transcription of the clauses.
struct Model {
    depth: usize,
    valid: VecDeque<u16>,
    slots: Vec<u16>,
    head: usize,
    suspect: Option<Suspected>,
    frozen: bool,
    /// The number of the next probes that explore.
    scouts: u8,
    /// Losses minus arrivals, weighted.
    losses: u16,
    phase: u16,
}

/// A suspect and its probes.
#[derive(Default)]
struct Suspected {
    ev: u16,
    wait_ps: u64,
    /// When the next step is due, and the number of steps so far.
    next: Time,
    steps: usize,
    /// The steps of the probes in flight.
    under_way: VecDeque<usize>,
    /// Lost probes, answers, and answers to probes that were lost.
    lost: i32,
    answered: i32,
    late: i32,
    /// When the last probe was lost that proves a failure.
    proven_at: Option<Time>,
}

impl Suspected {
    fn score(&self) -> i32 {
        4 * self.lost - self.answered - 5 * self.late
    }

    fn begin(&mut self, next: Time) {
        *self = Self { ev: self.ev, wait_ps: self.wait_ps, next, ..Self::default() };
    }

    /// Performs a step; returns whether a probe is sent.
    fn step(&mut self, now: Time, frozen: bool) -> bool {
        if now < self.next || self.proven_at.is_some() {
            return false;
        }
        self.steps += 1;
        self.next = now.after(self.wait_ps / 3);
        if self.under_way.front().is_some_and(|sent| *sent + 3 == self.steps) {
            self.under_way.pop_front();
            self.lost += 1;
            if frozen {
                self.begin(now.after(8 * self.wait_ps));
                return false;
            }
            if self.score() >= 20 {
                (self.proven_at, self.next) = (Some(now), now);
                return false;
            }
        }
        let goes = self.score() > 0 || self.under_way.len() < 2;
        if goes {
            self.under_way.push_back(self.steps);
        }
        goes
    }

    /// Processes an answer; returns whether the path works.
    fn answer(&mut self, frozen: bool) -> bool {
        if self.under_way.pop_front().is_some() {
            self.answered += 1;
        } else if !frozen {
            self.late += 1;
        }
        if self.score() < 20 {
            self.proven_at = None;
        }
        self.score() <= if frozen { -8 } else { -5 }
    }
}

impl Model {
    fn cache(&mut self, ev: u16) {
        self.valid.push_back(ev);
        if self.valid.len() > self.depth {
            self.valid.pop_front();
        }
        if self.head < self.slots.len() {
            self.slots[self.head] = ev;
        } else {
            self.slots.push(ev);
        }
        self.head = (self.head + 1) % self.depth;
    }

    fn forget(&mut self, ev: u16) {
        self.valid.retain(|other| *other != ev);
        let pivot = self.head % self.slots.len().max(1);
        self.slots.rotate_left(pivot);
        self.slots.retain(|other| *other != ev);
        self.head = self.slots.len() % self.depth;
    }

    /// Processes an ACK; `settled` states for each value whether its packet was slow.
    fn on_ack(&mut self, now: Time, sent: Time, settled: &[(u16, bool)], echoes: &[(u16, bool)], ack: &AckInfo) {
        if let Some(suspect) = &mut self.suspect
            && let Some(at) = suspect.proven_at
            && sent >= at.before(2 * (suspect.wait_ps / 3))
        {
            suspect.begin(now.after(8 * suspect.wait_ps));
            let ev = suspect.ev;
            self.forget(ev);
            self.frozen = true;
        }
        self.losses = self.losses.saturating_sub(ack.packets);
        let counts = |(ev, slow): &&(u16, bool)| *slow || *ev < EVS;
        let known: Vec<(u16, bool)> = settled.iter().filter(counts).copied().take(MAX_BUFFER).collect();
        let others: Vec<u16> = if echoes.is_empty() {
            let vouched = if ack.marked_packets > u16::from(ack.marked) { 0 } else { ack.packets - 1 };
            let mut others: Vec<u16> = known.iter().filter(|(_, slow)| !slow).map(|(ev, _)| *ev).collect();
            if let Some(own) = others.iter().position(|&ev| ev == ack.ev.index()) {
                others.remove(own);
            }
            others.into_iter().take(usize::from(vouched)).collect()
        } else {
            let is_good = |(ev, marked): &&(u16, bool)| !marked && *ev < EVS && !known.contains(&(*ev, true));
            let room = MAX_BUFFER - known.iter().filter(|(_, slow)| *slow).count();
            echoes.iter().filter(is_good).map(|(ev, _)| *ev).take(room).collect()
        };
        if ack.packets > 1 {
            others.into_iter().for_each(|ev| self.cache(ev));
        }
        let is_slow = now.since(sent) >= 4 * RTT_PS || known.contains(&(ack.ev.index(), true));
        if !ack.marked && !is_slow && ack.ev.index() < EVS {
            self.cache(ack.ev.index());
        }
    }

    fn on_loss(&mut self, now: Time, ev: u16, by_timer: bool, max_rtt_ps: u64) {
        self.losses = match self.slots.contains(&ev) {
            true => 0,
            false if self.losses + 16 < 128 => self.losses + 16,
            false => 255,
        };
        self.forget(ev);
        if self.suspect.is_none() {
            // Whole ticks, plus one.
            let wait_ps = (((max_rtt_ps * 9 / 8).max(RTT_PS * 5 / 4) >> TICK_SHIFT) + 1) << TICK_SHIFT;
            self.suspect = Some(Suspected { ev, wait_ps, next: now, ..Suspected::default() });
        }
        self.scouts = self.scouts.max(if by_timer { 4 } else { 1 });
    }

    fn poll_probe(&mut self, now: Time) -> Option<u16> {
        let suspect = self.suspect.as_mut()?;
        if suspect.step(now, self.frozen) {
            return Some(suspect.ev);
        }
        if self.scouts == 0 || (suspect.score() <= 0 && suspect.under_way.len() < 2 && !self.frozen) {
            return None;
        }
        self.scouts -= 1;
        Some(self.explored())
    }

    fn on_answer(&mut self, ev: u16, marked: bool, age_ps: u64) {
        if let Some(suspect) = self.suspect.as_mut().filter(|suspect| suspect.ev == ev) {
            if suspect.answer(self.frozen) {
                (self.frozen, self.suspect, self.scouts) = (false, None, 0);
            }
        } else if !marked && age_ps < 4 * RTT_PS && ev < EVS {
            self.cache(ev);
        }
    }

    fn next_ev(&mut self, again: bool) -> u16 {
        let is_grave = self.frozen || self.suspect.as_ref().is_some_and(|suspect| suspect.score() >= 0);
        if (self.losses >= 128 || is_grave) && !self.slots.is_empty() && (again || self.valid.is_empty()) {
            if self.valid.is_empty() && self.suspect.is_some() {
                self.scouts = (self.scouts + 1).min(7);
            }
            if self.valid.is_empty() && self.frozen {
                let at = self.head % self.slots.len();
                self.head = (at + 1) % self.slots.len();
                return self.slots[at];
            }
            self.valid.pop_back();
            self.head = if self.head == 0 { self.slots.len() } else { self.head } - 1;
            return self.slots[self.head];
        } else if let Some(ev) = self.valid.pop_front() {
            return ev;
        }
        self.explored()
    }

    fn explored(&mut self) -> u16 {
        self.phase = self.phase.wrapping_add(GOLDEN);
        (u32::from(self.phase) * u32::from(EVS) / 65_536) as u16
    }
}

/// The unit of histories: an eighth of a round trip.
const UNIT_PS: u64 = RTT_PS / 8;

#[derive(Clone, Debug)]
enum Step {
    /// A number of packets, and whether they are retransmissions.
    Send(u8, bool),
    Ack {
        settled: Vec<(u16, bool)>,
        echoes: Vec<(u16, bool)>,
        marked: bool,
        marks: u16,
        packets: u16,
        age: u64,
    },
    Loss {
        ev: u16,
        by_timer: bool,
        max_rtt: u64,
    },
    Probe,
    Answer {
        ev: u16,
        marked: bool,
        age: u64,
    },
    Wait(u64),
}

/// Generates the steps of a history. One in sixteen is a loss whose probes all stay unanswered
/// while a later packet is acknowledged.
fn history() -> impl Strategy<Value = Vec<Step>> {
    let failure = (0..8u16).prop_map(|ev| {
        let probes = (0..16).flat_map(|_| [Step::Probe, Step::Probe, Step::Wait(16)]);
        let later = Step::Ack {
            settled: Vec::from([(ev + 1, false)]),
            echoes: Vec::new(),
            marked: false,
            marks: 0,
            packets: 1,
            age: 1,
        };
        [Step::Loss { ev, by_timer: false, max_rtt: 0 }].into_iter().chain(probes).chain([later]).collect()
    });
    let steps = prop_oneof![15 => step().prop_map(|step| Vec::from([step])), 1 => failure];
    prop::collection::vec(steps, 1..120).prop_map(|steps: Vec<Vec<Step>>| steps.into_iter().flatten().collect())
}

fn step() -> impl Strategy<Value = Step> {
    // Few values, so that those lost, cached and probed often coincide.
    let evs = || prop_oneof![4 => 0..8u16, 1 => 0..EVS + 3];
    let echoes = prop_oneof![
        3 => Just(Vec::new()),
        1 => prop::collection::vec((evs(), prop::bool::weighted(0.2)), 1..15),
    ];
    let ack = (
        prop::collection::vec((evs(), prop::bool::weighted(0.2)), 1..30),
        echoes,
        prop::bool::weighted(0.2),
        0u16..4,
        prop_oneof![2 => 1u16..4, 1 => 1u16..40],
        prop_oneof![4 => 0u64..20, 1 => 30u64..34],
    );
    prop_oneof![
        6 => (1u8..30, prop::bool::weighted(0.3)).prop_map(|(count, again)| Step::Send(count, again)),
        6 => ack.prop_map(|(settled, echoes, marked, marks, packets, age)| Step::Ack { settled, echoes, marked, marks, packets, age }),
        3 => (0..8u16, prop::bool::weighted(0.2), 0u64..40).prop_map(|(ev, by_timer, max_rtt)| Step::Loss { ev, by_timer, max_rtt }),
        4 => Just(Step::Probe),
        3 => (evs(), any::<bool>(), 30u64..34).prop_map(|(ev, marked, age)| Step::Answer { ev, marked, age }),
        3 => (1u64..40).prop_map(Step::Wait),
    ]
}

proptest! {
    #[test]
    fn any_history_agrees_with_the_clauses(steps in history(), depth in 1u64..=16) {
        let mut rig = Rig::new(|config| config.buffer = depth as u8);
        let mut model = Model {
            depth: depth as usize, valid: VecDeque::new(), slots: Vec::new(), head: 0,
            suspect: None, frozen: false, scouts: 0, losses: 0, phase: rig.plus.state.phase,
        };
        let mut units = 100;
        for step in steps {
            let now = at(units * UNIT_PS);
            match step {
                Step::Send(count, again) => for _ in 0..count {
                    rig.retransmit = again;
                    prop_assert_eq!(rig.send(), model.next_ev(again));
                },
                Step::Ack { settled, echoes, marked, marks, packets, age } => {
                    let ack = info(settled.last().unwrap().0, marked, packets, (marks + u16::from(marked)).min(packets));
                    let ack = AckInfo { rtt_ps: age * UNIT_PS, ..ack };
                    for &(ev, slow) in &settled {
                        let age_ps = 4 * RTT_PS - if slow { 0 } else { Time::STEP_PS };
                        rig.plus.on_packet_acked(rig.path.at(now), &PacketInfo { sent_at: now.before(age_ps), ..packet(ev) });
                    }
                    echoes.iter().for_each(|&(ev, marked)| rig.plus.on_echo(rig.path.at(now), Ev::new(ev), marked));
                    rig.plus.on_ack(rig.path.at(now), &ack, &mut rig.log);
                    model.on_ack(now, now.before(age * UNIT_PS), &settled, &echoes, &ack);
                }
                Step::Loss { ev, by_timer, max_rtt } => {
                    let cause = if by_timer { LossCause::Timeout } else { LossCause::SackGap };
                    let loss = LossInfo { cause, max_rtt_ps: max_rtt * UNIT_PS, ..lost(ev) };
                    rig.plus.on_loss(rig.path.at(now), &loss, &mut rig.log);
                    model.on_loss(now, ev, by_timer, max_rtt * UNIT_PS);
                }
                Step::Probe => prop_assert_eq!(rig.plus.poll_probe(rig.path.at(now)).map(Ev::index), model.poll_probe(now)),
                Step::Answer { ev, marked, age } => {
                    let answer = ProbeInfo { ev: Ev::new(ev), marked, rtt_ps: age * UNIT_PS };
                    rig.plus.on_probe_ack(rig.path.at(now), &answer, &mut rig.log);
                    model.on_answer(ev, marked, age * UNIT_PS);
                }
                Step::Wait(more) => units += more,
            }
            let seen = (rig.plus.is_frozen(), rig.plus.suspect().map(Ev::index), usize::from(rig.plus.valid_evs()));
            prop_assert_eq!(seen, (model.frozen, model.suspect.as_ref().map(|suspect| suspect.ev), model.valid.len()));
        }
    }

    /// With an ACK per packet it behaves as REPS until a failure, except for the values explored.
    //= docs/specs/reps-plus.md#RPP-3 number of cached candidates
    #[test]
    fn with_an_ack_per_packet_it_agrees_with_reps(
        steps in prop::collection::vec((any::<bool>(), 0..EVS, prop::bool::weighted(0.3)), 1..300),
        seed: u64,
    ) {
        let config = config(|config| config.buffer = 8);
        let (mut plus, path) = (make(&config, &mut rng::stream(1, 1)), config.path());
        let mut reps = Reps::make(&RepsConfig::default(), &path, &mut rng::stream(1, 1));
        let (mut ours, mut theirs) = (rng::stream(seed, 0), rng::stream(seed, 0));
        for (sends, ev, marked) in steps {
            if sends {
                let (ours, theirs) = (&mut ours, &mut theirs);
                let choice = plus.next_choice();
                prop_assert_eq!(choice, reps.next_choice());
                let packet = SendInfo::default();
                let evs = (plus.next_ev(path.at_ps(0), &packet, ours), reps.next_ev(path.at_ps(0), &packet, theirs));
                prop_assert!(choice == Choice::Explored || evs.0 == evs.1, "{evs:?}");
                continue;
            }
            // This ACK settles it too, since an earlier ACK was lost.
            plus.on_packet_acked(path.at_ps(0), &packet(ev / 2));
            plus.on_packet_acked(path.at_ps(0), &packet(ev));
            let ack = info(ev, marked, 1, u16::from(marked));
            plus.on_ack(path.at_ps(0), &ack, &mut ());
            reps.on_ack(path.at_ps(0), &ack, &mut ());
        }
    }
}
