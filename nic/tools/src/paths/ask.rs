//! The order and rate of probes.
//!
//! Routers limit their ICMP answers (Linux: one per second and destination, after a burst of six).
//! Unanswered probes are repeated at the observed rate until nothing more comes, so that a rate
//! limit does not count as loss.

use std::net::IpAddr;
use std::time::Duration;

pub trait Network {
    fn now(&self) -> Duration;
    fn send(&mut self, value: usize, ttl: u8);
    /// Waits for answers until `until`, or until there are some.
    fn answers(&mut self, until: Duration, out: &mut Vec<Answer>);
    fn is_stopped(&self) -> bool;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub value: usize,
    pub ttl: u8,
    pub rtt: Duration,
    pub reply: Reply,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    Endpoint,
    Kernel,
    Router(IpAddr),
    /// The reason why a host does not forward the probe.
    Refused(IpAddr, &'static str),
}

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub values: usize,
    pub probes: u32,
    pub hops: u8,
}

#[derive(Debug, Default)]
pub struct Survey {
    /// [`Reply::Endpoint`] or [`Reply::Kernel`], if the far end answers.
    pub by: Option<Reply>,
    pub ends: Vec<End>,
    pub levels: Vec<Level>,
}

#[derive(Clone, Debug, Default)]
pub struct End {
    pub sent: u32,
    pub rtts: Vec<Duration>,
    pub refused: Option<(IpAddr, &'static str)>,
}

impl End {
    pub fn is_alive(&self) -> bool {
        !self.rtts.is_empty()
    }
}

#[derive(Debug, Default)]
pub struct Level {
    /// By value.
    pub answers: Vec<Option<(Reply, Duration)>>,
    pub limited: bool,
    /// Assumed to pass the only router, without an answer of their own.
    pub assumed: usize,
    /// Passed two routers here.
    pub unsteady: Vec<(usize, IpAddr, IpAddr)>,
}

pub const FAR: u8 = spray_wire::INITIAL_TTL;
pub const PATIENCE: Duration = Duration::from_secs(1);
const FAR_GAP: Duration = Duration::from_millis(1);
const HOP_GAP: Duration = Duration::from_millis(5);
/// No router is known to answer less than once a second.
const MOST_GAP: Duration = Duration::from_millis(1050);
/// A second router is unlikely if so many values pass one: missed once in 256 cases.
const SURE: usize = 9;
const TWICE: usize = 8;
const SOON: Duration = Duration::from_millis(250);
/// Gives up after these if the far end is silent, too.
const SILENT_HOPS: usize = 3;

pub fn survey(net: &mut impl Network, plan: &Plan, mut tell: impl FnMut(String)) -> Survey {
    let mut survey = far_end(net, plan, &mut tell);
    let mut active: Vec<usize> = order(plan.values);
    let (mut silent, mut farthest) = (0, 0);
    for ttl in 1..=plan.hops {
        tell(format!("hop {ttl}: {} values", active.len()));
        let level = Level::ask(net, &active, ttl, &survey.ends);
        let is_end = |value: usize| !matches!(level.answers[value], None | Some((Reply::Router(_), _)));
        if active.iter().any(|value| is_end(*value) && survey.ends[*value].is_alive()) {
            farthest = ttl;
        }
        silent = if level.answers.iter().all(Option::is_none) { silent + 1 } else { 0 };
        active.retain(|value| !is_end(*value));
        survey.levels.push(level);
        let is_alive = active.iter().any(|value| survey.ends[*value].is_alive());
        let is_far_enough = !is_alive && (farthest > 0 || silent == SILENT_HOPS);
        if active.is_empty() || is_far_enough || net.is_stopped() {
            break;
        }
    }
    let answering = survey.levels.iter().rposition(|level| level.answers.iter().any(Option::is_some));
    survey.levels.truncate(answering.map_or(0, |last| last + 1));
    survey
}

/// All values, with neighbours far apart.
fn order(values: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values).collect();
    order.sort_by_key(|value| (*value as u32).wrapping_mul(0x9e37_79b9));
    order
}

fn far_end(net: &mut impl Network, plan: &Plan, tell: &mut impl FnMut(String)) -> Survey {
    tell(format!("{} values to the far end, {} probes each", plan.values, plan.probes));
    let mut survey = Survey { ends: vec![End::default(); plan.values], ..Survey::default() };
    let all = order(plan.values);
    // A second time if the first probes of all values are lost.
    for _ in 0..2 {
        if survey.by.is_none() {
            survey.ask_far(net, &all);
        }
    }
    match survey.by {
        Some(Reply::Endpoint) => {
            let rest = plan.probes.saturating_sub(survey.ends.first().map_or(0, |end| end.sent));
            survey.ask_far(net, &all.repeat(rest as usize));
        }
        Some(_) => {
            tell("no endpoint of spray answers there, but the kernel, which takes its time".into());
            let left: Vec<usize> = all.into_iter().filter(|value| !survey.ends[*value].is_alive()).collect();
            let patient = Level::ask(net, &left, FAR, &[]);
            for value in left {
                survey.ends[value].sent += 1;
                survey.ends[value].rtts.extend(patient.answers[value].map(|(_, rtt)| rtt));
            }
        }
        None => {}
    }
    survey
}

impl Survey {
    fn ask_far(&mut self, net: &mut impl Network, values: &[usize]) {
        values.iter().for_each(|value| self.ends[*value].sent += 1);
        pass(net, values, FAR, FAR_GAP, |answer| {
            let end = &mut self.ends[answer.value];
            match answer.reply {
                Reply::Endpoint | Reply::Kernel => {
                    end.rtts.push(answer.rtt);
                    // An endpoint may come up meanwhile.
                    self.by = self.by.filter(|by| *by == Reply::Endpoint).or(Some(answer.reply));
                }
                Reply::Refused(by, why) => end.refused = Some((by, why)),
                Reply::Router(_) => {}
            }
            false
        });
    }
}

impl Level {
    /// Probes until nothing more comes. Where answers are rate-limited and all pass one router,
    /// values that reach the far end (`ends`) are not probed one by one.
    fn ask(net: &mut impl Network, values: &[usize], ttl: u8, ends: &[End]) -> Self {
        let is_alive = |value: usize| ends.get(value).is_some_and(End::is_alive);
        let all = values.iter().max().map_or(0, |most| most + 1).max(ends.len());
        let mut level = Self { answers: vec![None; all], ..Self::default() };
        let (mut pending, mut gap, mut silent, mut late) = (values.to_vec(), HOP_GAP, 0, None);
        while !pending.is_empty() && silent < 2 && !net.is_stopped() {
            let (begun, mut got) = (net.now(), 0);
            let hurried = late.is_some() && pending.iter().any(|value| is_alive(*value));
            pass(net, &pending, ttl, gap, |answer| {
                got += u32::from(level.note(answer));
                hurried && level.sole().is_some()
            });
            pending.retain(|value| level.answers[*value].is_none());
            match got {
                0 => silent += 1,
                _ => (silent, gap) = (0, gap.max((net.now() - begun) / got).min(MOST_GAP)),
            }
            late = Some(late.map_or(0, |late| late + got));
            if let Some(only) = level.sole() {
                let open = pending.len();
                pending.retain(|value| !is_alive(*value));
                level.assumed += open - pending.len();
                let assume = |value: &&usize| is_alive(**value) && level.answers[**value].is_none();
                let assumed: Vec<usize> = values.iter().filter(assume).copied().collect();
                assumed.into_iter().for_each(|value| level.answers[value] = Some(only));
            }
        }
        level.limited = level.assumed > 0 || late.is_some_and(|late| late > 1 && late as usize * 10 >= values.len());
        if gap <= SOON {
            level.ask_again(net, values, ttl, gap);
        }
        level
    }

    /// Stores an answer. Returns whether it is the value's first.
    fn note(&mut self, answer: &Answer) -> bool {
        let place = &mut self.answers[answer.value];
        let is_first = place.is_none();
        *place = place.or(Some((answer.reply, answer.rtt)));
        is_first
    }

    /// The answer of the only router here, if others are unlikely.
    fn sole(&self) -> Option<(Reply, Duration)> {
        let mut answers = self.answers.iter().flatten();
        let first = answers.next().filter(|(reply, _)| !matches!(reply, Reply::Refused(..)))?;
        let is_sole = answers.clone().all(|(reply, _)| *reply == first.0);
        (is_sole && answers.count() + 1 >= SURE).then_some(*first)
    }

    /// Probes some values again if there are several routers: is their path stable?
    fn ask_again(&mut self, net: &mut impl Network, values: &[usize], ttl: u8, gap: Duration) {
        let router = |level: &Self, value: usize| match level.answers[value] {
            Some((Reply::Router(address), _)) => Some(address),
            _ => None,
        };
        let routers: std::collections::BTreeSet<IpAddr> = values.iter().filter_map(|v| router(self, *v)).collect();
        if routers.len() < 2 {
            return;
        }
        let some: Vec<usize> = values.iter().copied().filter(|v| router(self, *v).is_some()).take(TWICE).collect();
        pass(net, &some, ttl, gap, |answer| {
            if let (Some(before), Reply::Router(now)) = (router(self, answer.value), answer.reply)
                && before != now
            {
                self.unsteady.push((answer.value, before, now));
            }
            false
        });
    }
}

/// Sends a probe of each value and waits for answers, or until `is_enough` accepts one.
fn pass(net: &mut impl Network, values: &[usize], ttl: u8, gap: Duration, mut is_enough: impl FnMut(&Answer) -> bool) {
    let (mut left, mut answers, mut next) = (values.len(), Vec::new(), net.now());
    let mut hear = |net: &mut _, until: Duration, left: &mut usize| {
        Network::answers(net, until, &mut answers);
        answers.drain(..).filter(|answer| answer.ttl == ttl).any(|answer| {
            *left = left.saturating_sub(1);
            is_enough(&answer)
        })
    };
    for value in values {
        net.send(*value, ttl);
        next += gap;
        while net.now() < next {
            if hear(net, next, &mut left) || net.is_stopped() {
                return;
            }
        }
    }
    let until = net.now() + PATIENCE;
    while left > 0 && net.now() < until && !net.is_stopped() {
        if hear(net, until, &mut left) {
            return;
        }
    }
}
