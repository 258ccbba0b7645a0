//! Surveys of simulated networks in virtual time, and their findings.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use super::analyse::{Analysis, State};
use super::ask::{Answer, FAR, Network, PATIENCE, Plan, Reply, Survey, survey};
use super::findings::{Finding, Kind, findings, ranges};

const FIRST: u16 = 49_152;
const VALUES: usize = 64;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn far() -> IpAddr {
    ip("10.2.0.2")
}

/// A simulated network: a leaf, four spines chosen by a hash, a leaf and the far end.
struct Simulated {
    now: Duration,
    waiting: Vec<(Duration, Answer)>,
    /// The reply of the far end.
    end: Option<Reply>,
    /// The spine of a value.
    spine: fn(usize) -> usize,
    /// Whether a probe of a value passes a hop, by value and hop number.
    passes: fn(usize, u8) -> bool,
    rtt_us: fn(usize) -> u64,
    /// Whether routers send no ICMP messages.
    silent_routers: bool,
    /// Rate limit of each router: answers per second after a burst of six, with the tokens and the
    /// time of the last answer.
    limit: Option<BTreeMap<IpAddr, (f64, Duration)>>,
    sent: usize,
}

fn hash(value: usize) -> usize {
    ((value as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % 4
}

impl Simulated {
    fn healthy() -> Self {
        Self {
            now: Duration::ZERO,
            waiting: Vec::new(),
            end: Some(Reply::Endpoint),
            spine: hash,
            passes: |_, _| true,
            rtt_us: |_| 400,
            silent_routers: false,
            limit: None,
            sent: 0,
        }
    }

    fn router(&self, value: usize, ttl: u8) -> Reply {
        match ttl {
            1 => Reply::Router(ip("10.1.0.1")),
            2 => Reply::Router(IpAddr::from([10, 10, (self.spine)(value) as u8, 2])),
            3 => Reply::Router(ip("10.11.0.1")),
            _ => self.end.unwrap_or(Reply::Kernel),
        }
    }

    fn allows(&mut self, reply: Reply) -> bool {
        let (Reply::Router(router), Some(limit)) = (reply, &mut self.limit) else { return true };
        let (tokens, at) = limit.entry(router).or_insert((6.0, self.now));
        *tokens = (*tokens + (self.now - *at).as_secs_f64()).min(6.0);
        *at = self.now;
        let allows = *tokens >= 1.0;
        *tokens -= if allows { 1.0 } else { 0.0 };
        allows
    }

    fn survey(mut self) -> (Survey, Analysis, Vec<Finding>, Self) {
        let survey = survey(&mut self, &Plan { values: VALUES, probes: 10, hops: 16 }, |_| {});
        let ports: Vec<u16> = (0..VALUES as u16).map(|value| FIRST + value).collect();
        let analysis = Analysis::new(&survey, &ports, far());
        let findings = findings(&analysis, &survey, far(), None);
        (survey, analysis, findings, self)
    }

    fn kinds(self) -> Vec<Kind> {
        self.survey().2.into_iter().map(|finding| finding.kind).collect()
    }
}

impl Network for Simulated {
    fn now(&self) -> Duration {
        self.now
    }

    fn send(&mut self, value: usize, ttl: u8) {
        self.sent += 1;
        let reply = self.router(value, ttl);
        let speaks = !(self.silent_routers && matches!(reply, Reply::Router(_))) && (ttl < 4 || self.end.is_some());
        if (1..=ttl.min(4)).all(|hop| (self.passes)(value, hop)) && speaks && self.allows(reply) {
            let rtt = Duration::from_micros((self.rtt_us)(value));
            self.waiting.push((self.now + rtt, Answer { value, ttl, rtt, reply }));
        }
    }

    fn answers(&mut self, until: Duration, out: &mut Vec<Answer>) {
        let first = self.waiting.iter().map(|(at, _)| *at).min().filter(|at| *at <= until);
        self.now = self.now.max(first.unwrap_or(until));
        let now = self.now;
        out.extend(self.waiting.extract_if(.., |(at, _)| *at <= now).map(|(_, answer)| answer));
    }

    fn is_stopped(&self) -> bool {
        false
    }
}

#[test]
fn every_value_has_its_path() {
    let (_, analysis, findings, network) = Simulated::healthy().survey();
    assert_eq!(findings, []);
    assert_eq!(analysis.paths.len(), 4);
    for (number, value) in analysis.values.iter().enumerate() {
        let spine = IpAddr::from([10, 10, hash(number) as u8, 2]);
        let hops = [ip("10.1.0.1"), spine, ip("10.11.0.1"), far()].map(Some);
        assert_eq!(
            (value.state, value.hops.as_slice(), value.sent, value.answered),
            (State::Arrives, &hops[..], 10, 10)
        );
        assert_eq!(analysis.paths[value.path].hops, hops);
        assert_eq!(value.rtt.rtt_p50_us, Some(400.0));
    }
    let even = analysis.evenness.unwrap();
    assert!(even.paths == 4 && even.uneven == Some(false), "{even:?}");
    // Ten to the far end, one to each of four hops, and eight again where there are several
    // routers.
    assert_eq!(network.sent, VALUES * 14 + 8);
    assert!(network.now < 5 * PATIENCE, "{:?}", network.now);
}

#[test]
fn rate_limited_answers_are_not_losses() {
    let limited = Simulated { limit: Some(BTreeMap::new()), ..Simulated::healthy() };
    let (survey, analysis, findings, network) = limited.survey();
    assert_eq!(findings.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [Kind::Limited]);
    assert_eq!(analysis.paths.len(), 4);
    for (number, value) in analysis.values.iter().enumerate() {
        assert_eq!(value.hops.len(), 4);
        assert_eq!(value.hops[1], Some(IpAddr::from([10, 10, hash(number) as u8, 2])));
    }
    // Nine answers suffice for a leaf, which all values pass.
    let assumed: Vec<usize> = survey.levels.iter().map(|level| level.assumed).collect();
    assert!(assumed[0] >= 40 && assumed[2] >= 40 && assumed[1] == 0, "{assumed:?}");
    assert!(network.now < Duration::from_secs(60), "{:?}", network.now);
}

#[test]
fn one_path_is_distinguished_from_several() {
    assert_eq!(Simulated { spine: |_| 2, ..Simulated::healthy() }.kinds(), [Kind::OnePath]);
    let (_, analysis, findings, _) = Simulated { silent_routers: true, ..Simulated::healthy() }.survey();
    assert_eq!((findings.len(), findings[0].kind, analysis.paths.len()), (1, Kind::SilentRouters, 1));
    // Sixty values on one spine, and four on the others.
    let uneven = Simulated { spine: |value| if value < 60 { 0 } else { value % 4 }, ..Simulated::healthy() };
    assert_eq!(uneven.kinds(), [Kind::Uneven]);
}

#[test]
fn failed_paths_are_found() {
    // The first spine sends no answers and forwards nothing.
    let (_, analysis, findings, _) =
        Simulated { passes: |v, hop| hop != 2 || hash(v) != 0, ..Simulated::healthy() }.survey();
    assert_eq!((findings.len(), findings[0].kind), (1, Kind::DeadPath), "{findings:?}");
    let dead: Vec<u16> = (0..VALUES).filter(|v| hash(*v) == 0).map(|v| FIRST + v as u16).collect();
    assert_eq!(findings[0].ports, dead);
    assert!(findings[0].text.contains("lost behind 10.1.0.1 (hop 1), which passes others"), "{}", findings[0].text);
    assert_eq!(analysis.of(State::Lost).count(), 1);
    // The spine answers, but drops what it should forward.
    let (_, _, findings, _) = Simulated { passes: |v, hop| hop < 3 || hash(v) != 1, ..Simulated::healthy() }.survey();
    assert_eq!((findings.len(), findings[0].kind), (1, Kind::DeadPath), "{findings:?}");
    assert!(findings[0].text.contains("the path via 10.10.1.2 (hop 2) is dead behind it: "), "{}", findings[0].text);
    // All values reach the last router.
    let (_, _, findings, _) = Simulated { passes: |v, hop| hop < 4 || v % 5 != 1, ..Simulated::healthy() }.survey();
    assert_eq!((findings.len(), findings[0].kind), (1, Kind::ReturnPath), "{findings:?}");
}

#[test]
fn values_that_a_filter_drops_are_named() {
    // A range of ports, before the spines.
    let row = Simulated { passes: |v, hop| hop != 2 || !(10..19).contains(&v), ..Simulated::healthy() };
    let (_, _, findings, _) = row.survey();
    assert_eq!((findings.len(), findings[0].kind), (1, Kind::DeadPath), "{findings:?}");
    let text = &findings[0].text;
    assert!(text.starts_with("9 values of 64: ") && text.ends_with(": 49162-49170"), "{text}");
    // Various ports, after each of several routers.
    let (_, _, findings, _) = Simulated { passes: |v, hop| hop != 3 || v % 4 != 1, ..Simulated::healthy() }.survey();
    assert!(findings.iter().all(|finding| finding.kind == Kind::DeadPath), "{findings:?}");
    assert_eq!(findings.iter().map(|finding| finding.ports.len()).sum::<usize>(), 16, "{findings:?}");
    // Before the first router.
    let (_, _, findings, _) = Simulated { passes: |v, _| v > 3, ..Simulated::healthy() }.survey();
    assert_eq!((findings.len(), findings[0].ports.len()), (1, 4), "{findings:?}");
}

#[test]
fn slow_and_lossy_paths_are_found() {
    let slow = Simulated { rtt_us: |v| if hash(v) == 3 { 8_100 } else { 400 }, ..Simulated::healthy() };
    let (_, _, findings, _) = slow.survey();
    assert_eq!((findings.len(), findings[0].kind), (1, Kind::Slow));
    let text = "the path via 10.10.3.2 is slow: median round trip 8.1 ms, others 0.40 ms";
    assert_eq!(findings[0].text, text);
    // Slow on the return path, independent of the spine.
    let back = Simulated { rtt_us: |v| if v % 7 == 3 { 8_100 } else { 400 }, ..Simulated::healthy() };
    let (_, _, findings, _) = back.survey();
    assert!(findings.len() == 1 && findings[0].text.contains("others on the same paths"), "{findings:?}");
    // A slight difference is not reported.
    assert_eq!(Simulated { rtt_us: |v| if hash(v) == 3 { 650 } else { 400 }, ..Simulated::healthy() }.kinds(), []);
}

#[test]
fn a_far_end_without_endpoint_is_probed_slowly() {
    let kernel = Simulated { end: Some(Reply::Kernel), ..Simulated::healthy() };
    let (_, analysis, findings, _) = kernel.survey();
    assert_eq!((findings.len(), findings[0].kind, analysis.paths.len()), (1, Kind::NoEndpoint, 4));
    let (survey, analysis, findings, network) = Simulated { end: None, ..Simulated::healthy() }.survey();
    assert_eq!((survey.by, findings[0].kind), (None, Kind::NoAnswer));
    assert!(analysis.paths.iter().all(|path| path.state == State::Unknown && path.hops.len() == 3));
    assert_eq!(analysis.evenness.map(|even| even.paths), Some(4));
    assert!(network.now < 16 * PATIENCE, "{:?}", network.now);
    assert_eq!(FAR, 64);
}

#[test]
fn per_packet_load_balancing_is_detected() {
    /// Each probe takes another spine.
    struct PerPacket(Simulated);
    impl Network for PerPacket {
        fn now(&self) -> Duration {
            self.0.now
        }
        fn send(&mut self, value: usize, ttl: u8) {
            self.0.spine = if self.0.sent.is_multiple_of(2) { |_| 0 } else { |_| 1 };
            self.0.send(value, ttl);
            // An odd number of probes between two of one value.
            self.0.sent += usize::from(value == 0);
        }
        fn answers(&mut self, until: Duration, out: &mut Vec<Answer>) {
            self.0.answers(until, out);
        }
        fn is_stopped(&self) -> bool {
            false
        }
    }
    let mut turns = PerPacket(Simulated::healthy());
    let survey = survey(&mut turns, &Plan { values: 8, probes: 1, hops: 16 }, |_| {});
    let analysis = Analysis::new(&survey, &[1, 2, 3, 4, 5, 6, 7, 8], far());
    assert!(findings(&analysis, &survey, far(), None).iter().any(|finding| finding.kind == Kind::Unsteady));
}

#[test]
fn ports_are_displayed_as_ranges() {
    assert_eq!(ranges(&[1, 2, 3, 5, 7, 8]), "1-3, 5, 7-8");
    assert_eq!((ranges(&[]), ranges(&[65_535])), (String::new(), "65535".into()));
}
