//! Packet-in/packet-out tables, run on the pipeline in memory and in the kernel.

use super::build::{FULL, LATENCY_PS, PS_PER_BYTE, START_PS, Spec, fabric, routes, trimmed, uplinks};
use spray_fabric::{ChassisSpec, Fabric, Flap, LinkState, MAX_RATE_BPS, MIN_RATE_PPM};
use spray_pipeline::Cause::{self, Down, HopLimit, Malformed, NoRoute, Queue, Random, Silent, Ttl};
use spray_pipeline::Verdict::{self, Drop, Pass};
use spray_pipeline::shim::SHIM_BYTES;
use spray_wire::Ecn;

/// A row of a table.
pub(super) struct Case {
    pub(super) description: &'static str,
    pub(super) fabric: Fabric,
    /// The only switch of the chassis; `None` for all.
    pub(super) switch: Option<usize>,
    /// Frames sent before, to fill queues.
    pub(super) before: Vec<Vec<u8>>,
    pub(super) frame: Vec<u8>,
    pub(super) verdict: Verdict,
    /// The resulting frame, if it is redirected.
    pub(super) expected: Option<Vec<u8>>,
}

impl Case {
    fn new(description: &'static str, frame: Vec<u8>, verdict: Verdict) -> Self {
        Self { description, fabric: fabric(), switch: None, before: Vec::new(), frame, verdict, expected: None }
    }

    /// Creates a row in which a frame leaves from `port` as `after`.
    fn sent(description: &'static str, before: Spec, port: u32, after: Spec) -> Self {
        let verdict = Verdict::Redirect { port, trimmed_len: 0 };
        Self { expected: Some(after.frame()), ..Self::new(description, before.frame(), verdict) }
    }

    /// Returns the chassis that the frame enters.
    pub(super) fn chassis(&self) -> ChassisSpec<'_> {
        ChassisSpec { switch: self.switch, ..ChassisSpec::whole(&self.fabric) }
    }

    fn on(mut self, change: impl FnOnce(&mut Fabric)) -> Self {
        change(&mut self.fabric);
        self
    }

    /// Makes leaf 0 a chassis of its own, with one uplink in use (2).
    fn one_hop(mut self) -> Self {
        self.switch = Some(0);
        self.on(|fabric| fabric.routes = vec![routes(0, &[0])])
    }

    /// Fills the queue of leaf 0's uplink first. With one switch in the chassis, the exact times
    /// are easy to compute.
    fn behind(mut self, count: usize, spec: Spec) -> Self {
        self.before = vec![spec.frame(); count];
        self.one_hop()
    }
}

const SEALED: Spec = Spec { sealed: true, ..Spec::DATA };
const SEALED_ACK: Spec = Spec { sealed: true, ..Spec::ACK };

/// Returns the time after `hops` idle ports.
fn after(spec: Spec, hops: u64) -> u64 {
    spec.time_ps + hops * (spec.len() * PS_PER_BYTE + LATENCY_PS)
}

/// Returns the frame after `hops` idle ports.
fn crossed(spec: Spec, hops: u8) -> Spec {
    Spec { ttl: spec.ttl - hops, time_ps: after(spec, hops.into()), ..spec }
}

const V6: Spec = Spec { v6: true, ..Spec::DATA };
/// To h1 at the same leaf, which crosses only the last port.
const NEAR: Spec = Spec { to: 1, ..Spec::DATA };
const NEAR_V6: Spec = Spec { v6: true, ..NEAR };

pub(super) fn cases() -> Vec<Case> {
    [forwarding(), foreign(), malformed(), links(), queues(), times()].into_iter().flatten().collect()
}

//= docs/specs/switch.md#SW-2 a chassis of switches
//= docs/specs/switch.md#SW-3 ttl at every port
//= docs/specs/switch.md#SW-4 routes and epochs
fn forwarding() -> Vec<Case> {
    let ack_v6 = Spec { v6: true, ..Spec::ACK };
    let short = Spec { payload: Some(0), ..Spec::DATA };
    vec![
        Case::sent("IPv4 data crosses two ports to the last", Spec::DATA, 4, crossed(Spec::DATA, 2)),
        Case::sent("IPv6 data crosses two ports to the last", V6, 4, crossed(V6, 2)),
        Case::sent("one port, where that leaves the chassis", Spec::DATA, 2, crossed(Spec::DATA, 1)).one_hop(),
        Case::sent("a frame under the same leaf is at the last at once", NEAR, 1, NEAR),
        Case::sent("an acknowledgement over IPv4", Spec::ACK, 4, crossed(Spec::ACK, 2)),
        Case::sent("an acknowledgement over IPv6", ack_v6, 4, crossed(ack_v6, 2)),
        Case::sent("data without payload", short, 4, crossed(short, 2)),
        Case::sent(
            "the last hop may use the last of the TTL",
            Spec { ttl: 3, ..Spec::DATA },
            4,
            Spec { ttl: 1, ..crossed(Spec::DATA, 2) },
        ),
        Case::new("the TTL runs out at once", Spec { ttl: 1, ..Spec::DATA }.frame(), Drop(Ttl)),
        Case::new("the TTL runs out on the way", Spec { ttl: 2, ..Spec::DATA }.frame(), Drop(Ttl)),
        Case::new("a TTL of zero", Spec { ttl: 0, ..V6 }.frame(), Drop(Ttl)),
        Case::sent(
            "at the last port the TTL is the host's business",
            Spec { ttl: 1, ..NEAR },
            1,
            Spec { ttl: 1, ..NEAR },
        ),
        Case::new("an address that is no host's", Spec { to: 77, ..Spec::DATA }.frame(), Drop(NoRoute)),
        Case::new("a host that routing has lost", Spec::DATA.frame(), Drop(NoRoute)).on(|fabric| {
            fabric.routes[0].groups[0][2].clear();
        }),
        Case::new("a routing loop", Spec::DATA.frame(), Drop(HopLimit)).on(|fabric| {
            fabric.routes[0].groups[2][2] = vec![8];
            fabric.routes[0].groups[3][2] = vec![10];
        }),
    ]
}

/// Returns the frame, modified after its shim.
fn edited(spec: Spec, edit: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut shim = spec.frame();
    let mut frame = shim.split_off(SHIM_BYTES);
    edit(&mut frame);
    [shim, frame].concat()
}

//= docs/specs/switch.md#SW-1 accepted frames
fn foreign() -> Vec<Case> {
    let pass = |description, frame| Case::new(description, frame, Pass);
    vec![
        pass("a frame without a shim", NEAR.frame().split_off(SHIM_BYTES)),
        pass("a shim cut off", NEAR.frame()[..SHIM_BYTES - 1].to_vec()),
        pass("ARP", edited(NEAR, |frame| frame[13] = 0x06)),
        pass("another UDP port", edited(NEAR, |frame| frame[36] ^= 1)),
        pass("another UDP port over IPv6", edited(NEAR_V6, |frame| frame[56] ^= 1)),
        pass("TCP", edited(NEAR, |frame| frame[23] = 6)),
        pass("ICMPv6", edited(NEAR_V6, |frame| frame[20] = 58)),
        pass("IPv4 options", edited(NEAR, |frame| frame[14] = 0x46)),
        pass("the first fragment", edited(NEAR, |frame| frame[20] = 0x20)),
        pass("a later fragment", edited(NEAR, |frame| frame[21] = 1)),
        pass("another version of the transport", edited(NEAR, |frame| frame[42] = 3)),
        pass("another version of the transport over IPv6", edited(NEAR_V6, |frame| frame[62] = 0)),
        pass("an Ethernet header alone", edited(NEAR, |frame| frame.truncate(14))),
        pass("an IPv6 header alone", edited(NEAR_V6, |frame| frame.truncate(54))),
    ]
}

//= docs/specs/switch.md#SW-1 accepted frames
fn malformed() -> Vec<Case> {
    let drop = |description, frame| Case::new(description, frame, Drop(Malformed));
    vec![
        drop("an IPv4 header of ours cut off", edited(NEAR, |frame| frame.truncate(61))),
        drop("an IPv6 header of ours cut off", edited(NEAR_V6, |frame| frame.truncate(81))),
        drop("a frame shorter than its IPv4 length", edited(NEAR, |frame| frame.truncate(1_000))),
        drop("a frame shorter than its IPv6 length", edited(NEAR_V6, |frame| frame.truncate(1_000))),
        drop("a UDP length that differs from IPv4's", edited(NEAR, |frame| frame[39] ^= 1)),
        drop("a UDP length that differs from IPv6's", edited(NEAR_V6, |frame| frame[59] ^= 1)),
        drop(
            "a data frame without room for its header",
            edited(Spec { payload: Some(0), ..NEAR }, |frame| {
                frame[17] -= 1;
                frame[39] -= 1;
            }),
        ),
        drop("an IPv4 length below its own header", edited(NEAR, |frame| (frame[16], frame[17]) = (0, 10))),
    ]
}

//= docs/specs/switch.md#SW-6 states of a link
fn links() -> Vec<Case> {
    let state = |description, cause: Cause, state| {
        Case::new(description, Spec::DATA.frame(), Drop(cause)).on(|fabric| uplinks(fabric, START_PS, state))
    };
    let up = LinkState::UP;
    let flap = LinkState { flap: Some(Flap { period_ps: 10_000_000, down_ps: 5_000_000 }), ..up };
    let slow = LinkState { rate_ppm: 500_000, ..up };
    let slower = Spec { time_ps: after(Spec::DATA, 2) + Spec::DATA.len() * PS_PER_BYTE, ..crossed(Spec::DATA, 2) };
    // One link has the minimum share of its rate, and one the maximum rate, at 0.8 ps per byte.
    let least = LinkState { rate_ppm: MIN_RATE_PPM, ..up };
    let len = Spec::DATA.len();
    let longest = Spec { time_ps: after(Spec::DATA, 2) + 999 * len * PS_PER_BYTE, ..crossed(Spec::DATA, 2) };
    let shortest = Spec { time_ps: after(Spec::DATA, 2) - len * PS_PER_BYTE + len * 8 / 100, ..crossed(Spec::DATA, 2) };
    let sent = |description| Case::sent(description, Spec::DATA, 4, crossed(Spec::DATA, 2));
    vec![
        state("administratively down", Down, LinkState { up: false, ..up }),
        state("silently dropping", Silent, LinkState { silent_drop: true, ..up }),
        state("losing everything at random", Random, LinkState { loss_ppm: 1_000_000, ..up }),
        state("in the outage of a flap", Silent, flap),
        sent("between the outages of a flap").on(|fabric| uplinks(fabric, START_PS - 5_000_000, flap)),
        sent("before the link goes down").on(|fabric| {
            uplinks(fabric, START_PS + 1, LinkState { up: false, ..up });
        }),
        sent("after the link came back").on(|fabric| {
            uplinks(fabric, 1, LinkState { up: false, ..up });
            uplinks(fabric, START_PS, up);
        }),
        Case::sent("at half rate", Spec::DATA, 4, slower).on(|fabric| uplinks(fabric, START_PS, slow)),
        Case::sent("at a thousandth of the rate", Spec::DATA, 4, longest).on(|fabric| uplinks(fabric, START_PS, least)),
        Case::sent("at 100 Tb/s", Spec::DATA, 4, shortest)
            .on(|fabric| fabric.ports[2..4].iter_mut().for_each(|port| port.rate_bps = MAX_RATE_BPS)),
        sent("rerouted around a dead uplink").on(|fabric| {
            fabric.ports[2].changes.push(spray_fabric::LinkChange { at_ps: 1, state: LinkState { up: false, ..up } });
            fabric.routes.push(routes(START_PS, &[1]));
        }),
        Case::new("not rerouted yet", Spec::DATA.frame(), Drop(Down)).on(|fabric| {
            fabric.routes = vec![routes(0, &[0]), routes(START_PS + 1, &[1])];
            fabric.ports[2].changes.push(spray_fabric::LinkChange { at_ps: 1, state: LinkState { up: false, ..up } });
        }),
    ]
}

/// Returns the frame after `count` full frames at one port.
fn behind(spec: Spec, count: u64) -> Spec {
    let full = Spec { payload: Some(FULL), ..spec }.len();
    let time_ps = spec.time_ps + (count * full + spec.len()) * PS_PER_BYTE + LATENCY_PS;
    Spec { time_ps, ttl: spec.ttl - 1, ..spec }
}

//= docs/specs/switch.md#SW-9 control before data
//= docs/specs/switch.md#SW-11 trimming
//= docs/specs/switch.md#SW-12 limit of control frames
fn queues() -> Vec<Case> {
    let plain = Spec { ecn: Ecn::NotEct, ..Spec::DATA };
    let cut = |spec: Spec| {
        let time_ps = spec.time_ps + (trimmed(spec.frame()).len() - SHIM_BYTES) as u64 * PS_PER_BYTE + LATENCY_PS;
        trimmed(Spec { time_ps, ttl: spec.ttl - 1, ..spec }.frame())
    };
    let cut_case = |description, spec: Spec| {
        let expected = cut(spec);
        let verdict = Verdict::Redirect { port: 2, trimmed_len: expected.len() as u32 };
        Case { expected: Some(expected), ..Case::new(description, spec.frame(), verdict) }
    };
    let no_trim = |fabric: &mut Fabric| fabric.ports.iter_mut().for_each(|port| port.queue.trim = false);
    vec![
        Case::sent("below the thresholds nothing is marked", Spec::DATA, 2, behind(Spec::DATA, 6))
            .behind(6, Spec::DATA),
        Case::sent("above them everything is", Spec::DATA, 2, Spec { ecn: Ecn::Ce, ..behind(Spec::DATA, 26) })
            .behind(26, Spec::DATA),
        Case::sent("over IPv6 too", V6, 2, Spec { ecn: Ecn::Ce, ..behind(V6, 26) }).behind(26, V6),
        Case::sent("but only what understands it", plain, 2, behind(plain, 26)).behind(26, Spec::DATA),
        Case::sent("control overtakes data", Spec::ACK, 2, crossed(Spec::ACK, 1)).behind(26, Spec::DATA),
        cut_case("over the limit a frame is trimmed", Spec::DATA).behind(32, Spec::DATA),
        cut_case("over IPv6 too, with its checksum", V6).behind(31, V6),
        cut_case("a sealed one keeps its header's tag", SEALED).behind(31, SEALED),
        cut_case("over IPv6 too", Spec { v6: true, ..SEALED }).behind(31, Spec { v6: true, ..SEALED }),
        Case::sent("sealed control passes as any", SEALED_ACK, 2, crossed(SEALED_ACK, 1)).one_hop(),
        cut_case("with the DSCP of the fabric, before the last port", Spec::DATA)
            .behind(32, Spec::DATA)
            .on(|fabric| fabric.ports.iter_mut().for_each(|port| port.queue.trim_tells_last = true)),
        Case::new("or dropped", Spec::DATA.frame(), Drop(Queue)).behind(32, Spec::DATA).on(no_trim),
        Case::new("nothing to trim", Spec { payload: Some(0), ..Spec::DATA }.frame(), Drop(Queue))
            .behind(32, Spec::DATA)
            .on(|fabric| {
                fabric.ports.iter_mut().for_each(|port| port.queue.limit_bytes = 99_450);
            }),
        Case::new("control has a limit of its own", Spec::ACK.frame(), Drop(Queue)).behind(74, Spec::ACK),
        Case::new("for trimmed frames too", Spec::DATA.frame(), Drop(Queue)).behind(130, Spec::DATA),
    ]
}

//= docs/specs/switch.md#SW-13 virtual time after a port
fn times() -> Vec<Case> {
    let plain = |spec| Spec { time_ps: 0, ..spec };
    vec![
        Case::sent("a frame that is not emulated stays so", plain(NEAR), 1, Spec { ttl: 63, ..plain(NEAR) }),
        Case::sent("over IPv6 too", plain(NEAR_V6), 1, Spec { ttl: 63, ..plain(NEAR_V6) }),
    ]
}
