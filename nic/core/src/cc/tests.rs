//! Tests of congestion control. Clauses are those of `docs/specs/dctcp.md`; modules in `tests/`
//! name their own specifications.

mod dcqcn;
mod loops;
mod mswift;
mod nscc;
mod nscc_eqds;

use std::string::ToString;

use proptest::prelude::*;

use super::*;
use crate::feedback::Ev;
use crate::link::bdp_bytes;
use crate::tests::{at, at_step};

const BASE_RTT_PS: u64 = 8_337_000;
const LINK_BPS: u64 = 400_000_000_000;
const PACKET: u32 = 4150;

fn reference() -> Path {
    Path::new(BASE_RTT_PS, LINK_BPS, PACKET)
}

fn dctcp(initial_window_bytes: u64) -> Dctcp {
    Dctcp::make(&DctcpConfig::default(), &Path { initial_window_bytes, ..reference() })
}

fn acks(bytes: u64, packets: u16, marked_packets: u16) -> AckInfo {
    AckInfo {
        ev: Ev::new(0),
        marked: marked_packets > 0,
        packets,
        marked_packets,
        bytes,
        rtt_ps: BASE_RTT_PS,
        hops: 3,
        ..AckInfo::default()
    }
}

#[test]
fn names_are_displayed_and_parsed() {
    for kind in CcKind::ALL {
        assert_eq!(CcKind::named(&kind.to_string()), Some(kind));
    }
    assert_eq!(CcKind::named("bbr"), None);
}

#[test]
fn the_reference_windows_follow_from_the_path() {
    //= docs/specs/dctcp.md#DCTCP-4 bounds of the window
    //= docs/specs/dctcp.md#DCTCP-6 the first window
    assert_eq!(bdp_bytes(BASE_RTT_PS, LINK_BPS), 416_850);
    assert_eq!(reference().initial_window_bytes, 626_650);
    assert_eq!(reference().max_window_bytes, 625_275);
    let mut cc = Dctcp::make(&DctcpConfig::default(), &reference());
    assert_eq!(cc.window_bytes(&reference()), 626_650);
    cc.on_ack(reference().at_ps(0), &acks(4150, 1, 0));
    assert_eq!(cc.window_bytes(&reference()), 625_275);
}

#[test]
fn a_window_of_unmarked_bytes_adds_about_a_packet() {
    //= docs/specs/dctcp.md#DCTCP-1 growth
    let mut cc = dctcp(100 * 4150);
    (0..100).for_each(|_| cc.on_ack(reference().at_ps(0), &acks(4150, 1, 0)));
    let grown = cc.window_bytes(&reference()) - 100 * 4150;
    assert!((4100..=4150).contains(&grown), "{grown}");
}

#[test]
fn the_published_rule_treats_an_ack_as_marked_or_unmarked() {
    //= docs/specs/dctcp.md#DCTCP-8 mark of the triggering packet
    let config = Path { initial_window_bytes: 100 * 4150, ..reference() };
    let mut cc = Dctcp::make(&DctcpConfig { marked_by_trigger: true }, &config);
    cc.on_ack(reference().at_ps(0), &acks(8 * 4150, 8, 1));
    assert_eq!(cc.window_bytes(&reference()), 98 * 4150, "a quarter of all eight");
    cc.on_ack(reference().at_ps(0), &AckInfo { marked: false, ..acks(8 * 4150, 8, 1) });
    assert!(cc.window_bytes(&reference()) > 98 * 4150, "growth, although one packet was marked");
}

#[test]
fn growth_below_a_byte_accumulates() {
    //= docs/specs/dctcp.md#DCTCP-7 integers
    let config = Path { packet_bytes: 64, initial_window_bytes: 600_000, ..reference() };
    let mut cc = Dctcp::make(&DctcpConfig::default(), &config);
    (0..1000).for_each(|_| cc.on_ack(config.at_ps(0), &acks(64, 1, 0)));
    assert_eq!(cc.window_bytes(&config), 600_006);
}

#[test]
fn a_marked_ack_takes_a_quarter_of_its_bytes() {
    //= docs/specs/dctcp.md#DCTCP-2 cut for marks
    let mut cc = dctcp(400_000);
    cc.on_ack(reference().at_ps(0), &acks(4150, 1, 1));
    cc.on_ack(reference().at_ps(0), &acks(4150, 1, 1));
    assert_eq!(cc.window_bytes(&reference()), 400_000 - 2075);
}

#[test]
fn every_loss_cuts_its_bytes_down_to_one_packet() {
    //= docs/specs/dctcp.md#DCTCP-3 cut for losses
    //= docs/specs/dctcp.md#DCTCP-4 bounds of the window
    for cause in [LossCause::Trimmed, LossCause::SackGap, LossCause::Timeout] {
        let mut cc = dctcp(3 * 4150);
        cc.on_loss(reference().at_ps(0), PACKET, cause);
        assert_eq!(cc.window_bytes(&reference()), 2 * 4150);
        cc.on_loss(reference().at_ps(0), PACKET, cause);
        cc.on_loss(reference().at_ps(0), PACKET, cause);
        assert_eq!(cc.window_bytes(&reference()), 4150);
    }
}

#[test]
fn a_coalesced_ack_splits_by_the_marked_share() {
    //= docs/specs/dctcp.md#DCTCP-5 coalesced ACKs
    let (mut one, mut apart) = (dctcp(400_000), dctcp(400_000));
    one.on_ack(reference().at_ps(0), &acks(4 * 4150, 4, 1));
    apart.on_ack(reference().at_ps(0), &acks(3 * 4150, 3, 0));
    apart.on_ack(reference().at_ps(0), &acks(4150, 1, 1));
    assert_eq!(one.window_bytes(&reference()), apart.window_bytes(&reference()));
    let mut lying = dctcp(400_000);
    lying.on_ack(reference().at_ps(0), &acks(4 * 4150, 4, 9));
    assert_eq!(lying.window_bytes(&reference()), 400_000 - 4150);
}

#[test]
fn a_late_sender_catches_up_if_configured() {
    // 8 Gb/s is one byte per nanosecond: 4,150 bytes every 4.15 us. The thread polls every 10 us,
    // and once 1 ms late.
    let own = FixedRateConfig { rate_gbps: Some(Gbps::new(8)) };
    for (catch_up_packets, sent) in [(0, 100), (32, 240)] {
        let path = Path { catch_up_packets, ..reference() };
        let mut cc = AnyCc::new(&ControlConfig::FixedRate(own), &path);
        let mut send = |now_ps| {
            let mut packets = 0;
            while cc.poll_send(path.at_ps(now_ps)) <= at(now_ps) {
                cc.on_send(path.at_ps(now_ps), 4_150);
                packets += 1;
            }
            packets
        };
        send(0);
        assert_eq!((1..=100).map(|poll| send(poll * 10_000_000)).sum::<u32>(), sent);
        assert_eq!(send(2_000_000_000), 1 + catch_up_packets);
    }
}

#[test]
fn fixed_rate_paces_without_drift() {
    let own = FixedRateConfig { rate_gbps: Some(Gbps::new(30)) };
    let path = Path { max_window_bytes: u64::MAX, ..reference() };
    let mut cc = FixedRate::make(&own, &path);
    assert_eq!(cc.window_bytes(&path), u64::MAX);
    let mut now = at(1_000_000);
    for _ in 0..30_000 {
        cc.on_send(reference().at(now), 1000);
        now = cc.poll_send(reference().at(now));
    }
    // 30 MB at 30 Gb/s; the time of a byte is rounded to 2^-16 ps, 450 ps in total, and the sum to
    // a step of time.
    assert!(now.ps().abs_diff(8_000_000_000 + 1_000_000) <= 458 + Time::STEP_PS, "{now:?}");
}

#[test]
fn a_late_sender_does_not_catch_up() {
    let mut cc = FixedRate::make(&FixedRateConfig { rate_gbps: Some(Gbps::new(8)) }, &reference());
    cc.on_send(reference().at_ps(0), 1000);
    assert_eq!(cc.poll_send(reference().at_ps(0)), at(1_000_000));
    cc.on_send(reference().at_ps(5_000_000), 1000);
    assert_eq!(cc.poll_send(reference().at_ps(5_000_000)), at(6_000_000));
    assert_eq!(cc.window_bytes(&reference()), 625_275);
}

#[test]
fn a_fixed_window_is_the_configured_one() {
    //= docs/specs/fixed-window.md#FXW-1 the window
    //= docs/specs/fixed-window.md#FXW-2 no feedback
    for (configured, window) in [(Some(2_500_000), 2_500_000), (None, 625_275), (Some(1), 4150)] {
        let own = FixedWindowConfig { window_bytes: configured.map(ByteSize::new) };
        let mut cc = AnyCc::new(&ControlConfig::FixedWindow(own), &reference());
        cc.on_ack(reference().at_ps(1_000), &acks(4150, 1, 1));
        cc.on_send(reference().at_ps(2_000), PACKET);
        cc.on_loss(reference().at_ps(3_000), PACKET, LossCause::Timeout);
        assert_eq!(
            (cc.window_bytes(&reference()), cc.poll_send(reference().at_ps(4_000))),
            (window, at(4_000)),
            "{configured:?}"
        );
    }
}

#[test]
fn sizes_of_states_are_as_documented() {
    let bytes = |kind: &CcKind| (kind.name(), kind.state_bytes());
    let sizes: std::vec::Vec<_> = CcKind::ALL.iter().map(bytes).collect();
    let known = [("dctcp", 8), ("fixed-rate", 16), ("fixed-window", 0), ("mswift", 172), ("nscc", 104), ("dcqcn", 80)];
    assert!(known.iter().all(|size| sizes.contains(size)), "{sizes:?}");
}

/// The rule in floating point.
struct Literal {
    window: f64,
    packet: f64,
    max: f64,
}

impl Literal {
    fn on_ack(&mut self, unmarked: f64, marked: f64) {
        self.window += unmarked * self.packet / self.window; // DCTCP-1
        self.window -= marked / 4.0; // DCTCP-2
        self.clamp();
    }

    fn on_loss(&mut self, bytes: f64) {
        self.window -= bytes; // DCTCP-3
        self.clamp();
    }

    fn clamp(&mut self) {
        self.window = self.window.clamp(self.packet, self.max); // DCTCP-4
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    /// DCTCP-1 to DCTCP-5: within one byte of the rule in floating point. A small window amplifies
    /// earlier rounding errors.
    #[test]
    fn dctcp_agrees_with_the_rule_in_floating_point(
        packet in 64..=9000u32,
        windows in (1..400u64, 1..400u64),
        feedback in prop::collection::vec((1..=16u16, 0..=16u16, prop::bool::weighted(0.05)), 1..400),
    ) {
        let (initial, max) = (windows.0 * u64::from(packet), windows.1 * u64::from(packet));
        let config = Path { packet_bytes: packet, initial_window_bytes: initial, max_window_bytes: max, ..reference() };
        let mut cc = Dctcp::make(&DctcpConfig::default(), &config);
        let mut literal = Literal { window: initial as f64, packet: packet.into(), max: max as f64 };
        for (packets, marked, lost) in feedback {
            if lost {
                cc.on_loss(config.at_ps(0), packet, LossCause::Timeout);
                literal.on_loss(packet.into());
            } else {
                let (marked, bytes) = (marked.min(packets), u64::from(packets) * u64::from(packet));
                cc.on_ack(config.at_ps(0), &acks(bytes, packets, marked));
                let marked_bytes = f64::from(marked) * f64::from(packet);
                literal.on_ack(bytes as f64 - marked_bytes, marked_bytes);
            }
            let ours = cc.window as f64 / 65_536.0;
            prop_assert!((ours - literal.window).abs() < 1.0, "{ours}, literally {}", literal.window);
        }
    }

    /// Any history under any settings: no panic, and a window of at least one packet.
    #[test]
    fn no_history_breaks_the_bounds_of_a_window(
        (packet_bytes, initial_window_bytes, max_window_bytes) in any::<(u32, u64, u64)>(),
        (fixed_rate_bps, kind) in (any::<u64>(), prop::sample::select(&CcKind::ALL[..])),
        (base_rtt_ps, link_bps, catch_up_packets) in any::<(u64, u64, u32)>(),
        feedback in prop::collection::vec(any::<(u64, u64, u32, u16, u16, bool, (u64, u8, u64))>(), 1..100),
    ) {
        let schemes = CcSchemes {
            fixed_rate: FixedRateConfig { rate_gbps: Some(Gbps::from_bps(fixed_rate_bps)) },
            ..CcSchemes::default()
        };
        let control = kind.config(&schemes);
        let windows = Path { initial_window_bytes, max_window_bytes, ..reference() };
        let path = Path { packet_bytes, base_rtt_ps, link_bps, catch_up_packets, ..windows }.clamped();
        let mut cc = AnyCc::new(&control, &path);
        for (steps, bytes, lost, packets, marked_packets, marked, (rtt_ps, hops, in_flight_bytes)) in feedback {
            let now = path.at(at_step(steps));
            let ack = AckInfo { marked, rtt_ps, hops, in_flight_bytes, ..acks(bytes, packets, marked_packets) };
            cc.on_ack(now, &ack);
            prop_assert!(cc.window_bytes(&path) >= u64::from(path.packet_bytes));
            cc.on_loss(now, lost, LossCause::SackGap);
            prop_assert!(cc.window_bytes(&path) >= u64::from(path.packet_bytes));
            cc.on_send(now, lost);
            prop_assert!(cc.poll_send(now) >= now.time);
        }
    }
}

/// With default settings every congestion control follows its paper.
#[test]
fn defaults_are_the_published_settings() {
    let published = "
        [dctcp]
        marked_by_trigger = false
        [eqds]
        pull_rate = 0.99
        [fixed-rate]
        [fixed-window]
        [mswift]
        samples = 16
        queue_bytes = 113000
        queue_hops = 5
        ai = 1
        beta = 0.8
        max_mdf = 0.5
        flow_range = 5
        flow_min_window = 0.1
        min_window = 0.01
        reset_timeouts = 5
        [nscc]
        quick_delay = 4
        quick_gate = 3
        proportional = 4
        fair = 5
        fast = 0.25
        fast_delay_us = 1
        eta = 0.15
        gamma = 0.8
        max_decrease = 0.5
        average = 80
        adjust_packets = 8
        [dcqcn]
        cnp_interval_us = 50
        alpha_timer_us = 55
        rate_timer_us = 55
        counter_bytes = 10000000
        fast_recovery = 5
        gain = 256
        losses = true
    ";
    let written = toml::Value::try_from(CcSchemes::default()).unwrap();
    assert_eq!(written, toml::from_str::<toml::Value>(published).unwrap());
    assert_eq!(written.try_into::<CcSchemes>().unwrap(), CcSchemes::default());
}

#[test]
fn a_subflow_has_its_share_of_bytes_and_rates() {
    let schemes = CcSchemes {
        eqds: EqdsConfig {
            pull_bytes: Some(ByteSize::new(100)),
            request_bytes: Some(ByteSize::new(1)),
            ..EqdsConfig::default()
        },
        fixed_rate: FixedRateConfig { rate_gbps: Some(Gbps::new(100)) },
        fixed_window: FixedWindowConfig { window_bytes: Some(ByteSize::new(4_001)) },
        dcqcn: DcqcnConfig { min_rate_gbps: Some(Gbps::new(4)), ..DcqcnConfig::default() },
        ..CcSchemes::default()
    };
    let shares = CcSchemes {
        eqds: EqdsConfig { pull_bytes: Some(ByteSize::new(64)), ..schemes.eqds },
        fixed_rate: FixedRateConfig { rate_gbps: Some(Gbps::new(25)) },
        fixed_window: FixedWindowConfig { window_bytes: Some(ByteSize::new(1_000)) },
        mswift: MSwiftConfig { queue_bytes: ByteSize::new(28_250), ..schemes.mswift },
        dcqcn: DcqcnConfig {
            counter_bytes: ByteSize::new(2_500_000),
            min_rate_gbps: Some(Gbps::new(1)),
            ..DcqcnConfig::default()
        },
        ..schemes
    };
    for kind in CcKind::ALL {
        assert_eq!(kind.config(&schemes).share(4), kind.config(&shares));
    }
    assert_eq!(reference().share(4).link_bps, LINK_BPS / 4);
    assert_eq!(Path { max_window_bytes: u64::MAX, ..reference() }.share(4).max_window_bytes, u64::MAX);
}
