//! What the switch program costs per frame and hop, by the kernel's test run.

use super::switch::SwitchProgram;
use super::{ProgramError, object};
use libbpf_rs::{MapCore, MapFlags, ProgramInput};
use spray_fabric::{ChassisSpec, Fabric, Host, Node, Port, RouteEpoch, Switch, Thresholds};
use spray_wire::{Body, Common, DSCP_DATA, Data, Ecn, Envelope, emit};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// Costs of one frame in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerHop {
    /// A program that only redirects.
    pub redirect_ns: f64,
    /// The switch program when the frame crosses [`PerHop::HOPS`] switches.
    pub switch_ns: f64,
    /// The same for one switch.
    pub one_hop_ns: f64,
}

impl PerHop {
    /// Switches of the long path.
    pub const HOPS: u32 = 6;

    /// Cost of a hop over a bare redirect, the parsing and writing that a frame needs once spread over the hops.
    pub fn per_hop_ns(&self) -> f64 {
        (self.switch_ns - self.redirect_ns) / f64::from(Self::HOPS)
    }

    /// Cost of one further hop.
    pub fn further_hop_ns(&self) -> f64 {
        (self.switch_ns - self.one_hop_ns) / f64::from(Self::HOPS - 1)
    }
}

const FRAME_PAYLOAD: u16 = 3_000;
/// 3,114 bytes at 100 Gb/s take 249 ns: a load of 90 %.
const GAP_PS: u64 = 277_000;
const START_PS: u64 = 1_000_000_000;
const SWITCH: &str = "bench_switch";
const REDIRECT: &str = "bench_redirect";

/// Measures all three over `repeat` frames each.
///
/// # Errors
/// The programs are missing or refused.
pub fn bench_per_hop(repeat: u32) -> Result<PerHop, ProgramError> {
    let bench = HopBench::new()?;
    let nanoseconds = |mean: Duration| mean.as_nanos() as f64;
    Ok(PerHop {
        redirect_ns: nanoseconds(bench.redirect(repeat)?),
        switch_ns: nanoseconds(bench.switch(PerHop::HOPS, repeat)?),
        one_hop_ns: nanoseconds(bench.switch(1, repeat)?),
    })
}

/// The loaded programs of the measurement.
#[derive(Debug)]
pub struct HopBench {
    program: SwitchProgram,
}

impl HopBench {
    /// Loads a chain of [`PerHop::HOPS`] switches and the bare redirect.
    ///
    /// # Errors
    /// The programs are missing or refused.
    pub fn new() -> Result<Self, ProgramError> {
        let fabric = chain(PerHop::HOPS as usize);
        let program = SwitchProgram::load_programs(&ChassisSpec::whole(&fabric), &[SWITCH, REDIRECT])?;
        Ok(Self { program })
    }

    /// Mean time of a program that only redirects.
    ///
    /// # Errors
    /// The kernel refuses the test run.
    pub fn redirect(&self, repeat: u32) -> Result<Duration, ProgramError> {
        self.run(REDIRECT, 0, repeat)
    }

    /// Mean time for a frame to cross `hops` switches (1 to [`PerHop::HOPS`]), frames in order at a load of 90 %.
    ///
    /// Every repetition is another frame: the benchmark's entry point advances the virtual time by the gap, changes the
    /// source port and restores the TTL before the switch runs, and that time counts as the switch's.
    ///
    /// # Errors
    /// The kernel refuses the test run, or a frame was not forwarded.
    pub fn switch(&self, hops: u32, repeat: u32) -> Result<Duration, ProgramError> {
        let mean = self.run(SWITCH, PerHop::HOPS.saturating_sub(hops) as usize, repeat)?;
        let sent = self.program.chassis_counters()?.forwarded;
        if sent != u64::from(repeat) {
            return Err(ProgramError::Fabric(format!("{sent} of {repeat} frames were forwarded")));
        }
        Ok(mean)
    }

    fn run(&self, name: &'static str, ingress: usize, repeat: u32) -> Result<Duration, ProgramError> {
        self.program.reset()?;
        self.program.prepare_test(ingress)?;
        let clock = object::map(self.program.object(), "bench")?;
        let start = [START_PS, GAP_PS].map(u64::to_ne_bytes).concat();
        clock.update(&[0; 4], &start, MapFlags::ANY).map_err(ProgramError::map("bench"))?;
        let frame = frame();
        let input = ProgramInput { data_in: Some(&frame), repeat, ..Default::default() };
        let output = self.program.program(name)?.test_run(input).map_err(ProgramError::TestRun)?;
        Ok(output.duration)
    }
}

/// `hops` switches in a row; one host, behind the last.
fn chain(hops: usize) -> Fabric {
    let queue = Thresholds {
        limit_bytes: 400_000,
        mark_min_bytes: 80_000,
        mark_max_bytes: 320_000,
        control_limit_bytes: 100_000,
        trim: true,
    };
    let far_end = |switch| if switch + 1 == hops { Node::Host(0) } else { Node::Switch(switch + 1) };
    let port = |switch| Port {
        name: format!("s{switch}"),
        switch,
        to: far_end(switch),
        rate_bps: 100_000_000_000,
        latency_ps: 1_000_000,
        queue,
        changes: Vec::new(),
    };
    let host = Host { name: "h0".into(), v4: Ipv4Addr::new(10, 0, 0, 2), v6: Ipv6Addr::UNSPECIFIED, mac: [2; 6] };
    let switch = |salt| Switch { name: format!("s{salt}"), salt };
    let groups = (0..hops).map(|switch| vec![vec![switch]]).collect();
    Fabric {
        seed: 1,
        hosts: vec![host],
        switches: (0..hops as u32).map(switch).collect(),
        ports: (0..hops).map(port).collect(),
        routes: vec![RouteEpoch { valid_from_ps: 0, groups }],
    }
}

fn frame() -> Vec<u8> {
    let address = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
    let (src, dst) = (address(1), address(2));
    let envelope = Envelope {
        src_mac: [2; 6],
        dst_mac: [2; 6],
        src,
        dst,
        src_port: spray_wire::EvPort::new(50_000),
        dscp: DSCP_DATA,
        ecn: Ecn::Ect0,
        ttl: 64,
    };
    let common = Common { connection: 1, cookie: 2, virtual_time_ps: 1 };
    let data = Data {
        psn: 0,
        timestamp_ps: 0,
        message: 0,
        offset: 0,
        message_bytes: FRAME_PAYLOAD.into(),
        payload_bytes: FRAME_PAYLOAD,
        ack_now: false,
        ..Data::default()
    };
    let mut out = vec![0; 4_096];
    let len = emit(&mut out, &envelope, &common, &Body::Data(data), &[7; FRAME_PAYLOAD as usize]);
    out.truncate(len.expect("the buffer is larger"));
    out
}
