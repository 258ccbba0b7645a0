//! Clauses are those of `docs/specs/dcqcn.md`.

use super::*;
use crate::cc::dcqcn::Dcqcn;
use crate::units::ByteSize;

const US: u64 = 1_000_000;
const LINK: u64 = 100_000_000_000;

fn path() -> Path {
    Path::new(8 * US, LINK, 1_000)
}

fn mark(marked: bool) -> AckInfo {
    acks(1_000, 1, u16::from(marked))
}

fn rates(cc: &Dcqcn) -> (u64, u64) {
    (cc.state.rate_bps / 1_000_000, cc.state.target_bps / 1_000_000)
}

#[test]
fn the_initial_rate_is_that_of_the_link() {
    //= docs/specs/dcqcn.md#DQN-1 initial rate
    //= docs/specs/dcqcn.md#DQN-9 pacing
    let mut cc = Dcqcn::make(&DcqcnConfig::default(), &path());
    let mut now = Time::ZERO;
    for _ in 0..20_000 {
        cc.on_send(path().at(now), 1_000);
        cc.on_ack(path().at(now), &mark(false));
        now = cc.poll_send(path().at(now));
    }
    assert_eq!(now, at(20_000 * 80_000));
    assert_eq!(cc.state.alpha, 1 << 30, "alpha's timer waits for the first notification");
    assert_eq!(cc.window_bytes(&path()), u64::MAX);
}

#[test]
fn a_mark_cuts_by_half_of_alpha_once_per_interval() {
    //= docs/specs/dcqcn.md#DQN-2 notifications
    //= docs/specs/dcqcn.md#DQN-3 rate decrease
    let mut cc = Dcqcn::make(&DcqcnConfig::default(), &path());
    cc.on_ack(path().at_ps(10 * US), &mark(true));
    assert_eq!(rates(&cc), (50_000, 100_000));
    (11..60).for_each(|us| cc.on_ack(path().at_ps(us * US), &mark(true)));
    assert_eq!(rates(&cc), (50_000, 100_000));
    cc.on_ack(path().at_ps(60 * US), &mark(true));
    assert_eq!(rates(&cc), (25_000, 50_000), "alpha is still 1");
    cc.on_loss(path().at_ps(111 * US), 1_000, LossCause::Timeout);
    assert_eq!(rates(&cc), (12_500, 25_000), "a loss cuts, too");
    //= docs/specs/dcqcn.md#DQN-8 losses
    cc.on_go_back(1_000);
    assert_eq!(rates(&cc), (12_500, 25_000), "go-back-N retransmissions after a loss do not cut");
    let mut cc = Dcqcn::make(&DcqcnConfig { losses: false, ..DcqcnConfig::default() }, &path());
    cc.on_loss(path().at_ps(0), 1_000, LossCause::Timeout);
    assert_eq!(rates(&cc).0, 100_000);
}

//= docs/specs/dcqcn.md#DQN-10 a learned rate
#[test]
fn a_learned_rate_applies_until_the_first_notification() {
    let mut cc = Dcqcn::make(&DcqcnConfig::default(), &Path::new(8 * US, LINK / 10, 1_000));
    assert_eq!(rates(&cc), (10_000, 10_000));
    cc.on_start(&path());
    assert_eq!(rates(&cc), (100_000, 100_000));
    cc.on_ack(path().at_ps(10 * US), &mark(true));
    cc.on_start(&path());
    assert_eq!(rates(&cc), (50_000, 100_000));
}

#[test]
fn the_rate_recovers_with_time() {
    //= docs/specs/dcqcn.md#DQN-5 triggers of a rate increase
    //= docs/specs/dcqcn.md#DQN-6 size of a rate increase
    let mut cc = Dcqcn::make(&DcqcnConfig::default(), &path());
    cc.on_ack(path().at_ps(0), &mark(true));
    cc.on_ack(path().at_ps(51 * US), &mark(true));
    let after = |cc: &mut Dcqcn, timers: u64| {
        cc.on_ack(path().at_ps(51 * US + timers * 55 * US), &mark(false));
        rates(cc)
    };
    assert_eq!(after(&mut cc, 1), (37_500, 50_000));
    assert_eq!(after(&mut cc, 2), (43_750, 50_000));
    assert_eq!(after(&mut cc, 5), (49_218, 50_000), "three events at once");
    assert_eq!(after(&mut cc, 6), (49_659, 50_100), "additive: the target moves by 100 Mb/s");
    assert_eq!(after(&mut cc, 7), (49_929, 50_200));
    assert_eq!(after(&mut cc, 500).1, 50_200 + 100 * 256, "an idle period counts for at most 256 events");
}

#[test]
fn timer_and_byte_counter_together_increase_faster() {
    //= docs/specs/dcqcn.md#DQN-6 size of a rate increase
    let own = DcqcnConfig { counter_bytes: ByteSize::new(1_000), ..DcqcnConfig::default() };
    let mut cc = Dcqcn::make(&own, &path());
    cc.on_ack(path().at_ps(0), &mark(true));
    cc.on_ack(path().at_ps(51 * US), &mark(true));
    (0..6).for_each(|_| cc.on_send(path().at_ps(51 * US), 1_000));
    assert_eq!(rates(&cc).1, 50_100, "six by bytes, none by time");
    cc.on_ack(path().at_ps(51 * US + 5 * 55 * US), &mark(false));
    assert_eq!(rates(&cc).1, 50_600, "five more by time: additive");
    cc.on_ack(path().at_ps(51 * US + 6 * 55 * US), &mark(false));
    assert_eq!(rates(&cc).1, 51_600, "both past five: a hundredth of the link");
    cc.on_send(path().at_ps(51 * US + 6 * 55 * US), 1_000);
    assert_eq!(rates(&cc).1, 52_600, "the lesser count decides");
    cc.on_ack(path().at_ps(51 * US + 7 * 55 * US), &mark(false));
    assert_eq!(rates(&cc).1, 54_600, "two steps");
}

#[test]
fn a_learned_rate_replaces_the_initial_one() {
    //= docs/specs/dcqcn.md#DQN-10 a learned rate
    let (mut cc, learned) = (Dcqcn::make(&DcqcnConfig::default(), &path()), Path { link_bps: LINK / 4, ..path() });
    cc.on_start(&learned);
    assert_eq!(rates(&cc), (25_000, 25_000));
    cc.on_ack(learned.at_ps(10 * US), &mark(true));
    cc.on_start(&path());
    assert_eq!(rates(&cc), (12_500, 25_000), "not after a notification");
}

#[test]
fn alpha_decays_by_time() {
    //= docs/specs/dcqcn.md#DQN-4 decrease of alpha
    let mut cc = Dcqcn::make(&DcqcnConfig::default(), &path());
    cc.on_ack(path().at_ps(0), &mark(true));
    cc.on_ack(path().at_ps(55 * US * 256), &mark(false));
    let alpha = f64::from(cc.state.alpha) / f64::from(1 << 30);
    assert!((alpha - (255.0 / 256.0f64).powi(256)).abs() < 1e-6, "{alpha}");
}

/// The specification in floating point: rates in bits per second, every timer event handled
/// separately.
#[derive(Debug)]
struct Literal {
    rc: f64,
    rt: f64,
    alpha: f64,
    link: f64,
    cnp: Option<u64>,
    alpha_at: u64,
    timer_at: u64,
    t: u32,
    bc: u32,
    bytes: u64,
    counter: u64,
}

impl Literal {
    fn new(counter: u64) -> Self {
        let link = LINK as f64;
        Self {
            rc: link,
            rt: link,
            alpha: 1.0,
            link,
            cnp: None,
            alpha_at: 0,
            timer_at: 0,
            t: 0,
            bc: 0,
            bytes: 0,
            counter,
        }
    }

    fn run(&mut self, now: u64) {
        while self.cnp.is_some() && self.alpha_at + 55 * US <= now {
            self.alpha_at += 55 * US;
            self.alpha *= 255.0 / 256.0;
        }
        while self.cnp.is_some() && self.timer_at + 55 * US <= now {
            self.timer_at += 55 * US;
            self.t += 1;
            self.increase();
        }
    }

    fn increase(&mut self) {
        let (most, least) = (self.t.max(self.bc), self.t.min(self.bc));
        if least > 5 {
            self.rt += f64::from(least - 5) * self.link / 100.0;
        } else if most > 5 {
            self.rt += self.link / 1000.0;
        }
        self.rt = self.rt.min(self.link);
        self.rc = (self.rc + self.rt) / 2.0;
    }

    fn on_mark(&mut self, now: u64) {
        if self.cnp.is_none_or(|at| now - at >= 50 * US) {
            self.rt = self.rc;
            self.rc = (self.rc * (1.0 - self.alpha / 2.0)).max(self.link / 1000.0);
            self.alpha = 255.0 / 256.0 * self.alpha + 1.0 / 256.0;
            (self.cnp, self.alpha_at, self.timer_at) = (Some(now), now, now);
            (self.t, self.bc, self.bytes) = (0, 0, 0);
        }
    }

    fn on_send(&mut self, bytes: u64) {
        self.bytes += bytes;
        if self.bytes >= self.counter && self.cnp.is_some() {
            self.bytes = 0;
            self.bc += 1;
            self.increase();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// DQN-1 to DQN-8: within a millionth of the specification in floating point with one event per
    /// timer.
    //= docs/specs/dcqcn.md#DQN-7 lazy timers
    #[test]
    fn dcqcn_agrees_with_its_specification_in_floating_point(
        counter in 1_000..200_000u64,
        steps in prop::collection::vec((0..200 * US / Time::STEP_PS, 0..4u8, 1..50_000u32), 1..300),
    ) {
        let own = DcqcnConfig { counter_bytes: ByteSize::new(counter), ..DcqcnConfig::default() };
        let (mut cc, mut literal) = (Dcqcn::make(&own, &path()), Literal::new(counter));
        let mut now_ps = 0;
        for (step, event, bytes) in steps {
            now_ps += step * Time::STEP_PS;
            literal.run(now_ps);
            match event {
                0 | 1 => {
                    cc.on_send(path().at_ps(now_ps), bytes);
                    literal.on_send(bytes.into());
                }
                2 => cc.on_ack(path().at_ps(now_ps), &mark(false)),
                _ => {
                    cc.on_ack(path().at_ps(now_ps), &mark(true));
                    literal.on_mark(now_ps);
                }
            }
            let alpha = f64::from(cc.state.alpha) / f64::from(1 << 30);
            prop_assert!((alpha - literal.alpha).abs() < 1e-5, "{alpha}, literally {}", literal.alpha);
            for (ours, theirs) in [(cc.state.rate_bps, literal.rc), (cc.state.target_bps, literal.rt)] {
                prop_assert!((ours as f64 / theirs - 1.0).abs() < 1e-4, "{ours}, literally {theirs}");
            }
        }
    }
}
