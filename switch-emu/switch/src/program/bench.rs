//! Measures the cost of the switch program per frame and hop, with the kernel's test run.

use super::switch::SwitchProgram;
use super::{KernelClock, ProgramError};
use crate::frame::data_frame;
use libbpf_rs::ProgramInput;
use spray_fabric::{ChassisSpec, Groups, Network, Switching, Thresholds, compile};
use spray_nic::sys::pin_to_cpu;
use spray_pipeline::config::{HOST, OUTSIDE};
use std::io;
use std::sync::RwLock;
use std::time::Duration;

const FRAME_PAYLOAD: u16 = 3_000;
/// 3,114 bytes at 100 Gb/s take 249 ns: a load of 90 %.
const GAP_PS: u64 = 277_000;
const START_PS: u64 = 1_000_000_000;
/// A mask of the random time by which frames are out of order.
const EARLY_PS: u64 = (1 << 24) - 1;
const SWITCH: &str = "bench_switch";
const REDIRECT: &str = "bench_redirect";

/// The loaded programs of the measurement.
//= docs/specs/switch.md#SW-17 CPU cost of a switch
#[derive(Debug)]
pub struct HopBench {
    program: SwitchProgram,
    frame: Vec<u8>,
}

impl HopBench {
    /// The number of switches in the chain.
    pub const HOPS: u32 = 6;

    /// Loads a chain of [`HopBench::HOPS`] switches, joined by `cables` cables each, among which
    /// they choose by `switching`; and the bare redirect.
    pub fn new(switching: Switching, cables: u32) -> Result<Self, ProgramError> {
        let mut network = chain(cables);
        network.switching = Switching { flowlet_gap_ps: FLOWLET_GAP_PS, ..switching };
        let fabric = compile(&network, 1, |_| QUEUE, &[]).expect("a fabric without events");
        let mut program =
            SwitchProgram::load_programs(&ChassisSpec::whole(&fabric), &KernelClock::new()?, &[SWITCH, REDIRECT])?;
        // As ports to another chassis, so that every switch processes its port.
        program.tables.ports.iter_mut().filter(|port| port.next == HOST).for_each(|port| port.next = OUTSIDE);
        program.maps.write(&program.tables)?;
        let [first, .., last] = fabric.hosts.as_slice() else { unreachable!("a host at every switch") };
        Ok(Self { program, frame: data_frame(first, last, FRAME_PAYLOAD) })
    }

    /// Measures the mean time of a program that only redirects.
    pub fn redirect(&self, repeat: u32) -> Result<Duration, ProgramError> {
        self.prepare(1, 0, 1)?;
        self.measure(REDIRECT, repeat)
    }

    /// Measures a frame's mean time over 1 to [`HopBench::HOPS`] switches, in order at 90 % load.
    ///
    /// Every repetition is another frame: the entry point advances the virtual time, changes the
    /// source port and restores the TTL, which counts as the switch's time.
    ///
    /// # Errors
    /// The kernel refuses the test run, or a frame was not forwarded.
    pub fn switch(&self, hops: u32, repeat: u32) -> Result<Duration, ProgramError> {
        self.forwarded(hops, 0, repeat)
    }

    /// Measures as [`HopBench::switch`], with frames up to 16.8 us out of order.
    pub fn out_of_order(&self, hops: u32, repeat: u32) -> Result<Duration, ProgramError> {
        self.forwarded(hops, EARLY_PS, repeat)
    }

    /// Measures as [`HopBench::switch`], or as [`HopBench::redirect`] without `hops`, on the first
    /// `cpus` CPUs at once, which share a load of 90 %. Returns the mean time of a CPU.
    ///
    /// # Errors
    /// As [`HopBench::switch`]; also when there are fewer CPUs.
    pub fn concurrent(&self, cpus: usize, hops: Option<u32>, repeat: u32) -> Result<Duration, ProgramError> {
        self.prepare(hops.unwrap_or(1), 0, cpus as u64)?;
        self.on_cpus(cpus, if hops.is_some() { SWITCH } else { REDIRECT }, repeat)
    }

    /// Measures on the first CPUs at once; returns the mean. Each CPU has its own virtual clock.
    fn on_cpus(&self, cpus: usize, name: &'static str, repeat: u32) -> Result<Duration, ProgramError> {
        let begins = RwLock::new(());
        let run = |cpu| {
            let pinned = pin_to_cpu(cpu);
            drop(begins.read());
            pinned.map_err(|error| ProgramError::Fabric(format!("no CPU {cpu}: {error}")))?;
            self.measure(name, repeat)
        };
        let times: Result<Vec<Duration>, ProgramError> = std::thread::scope(|scope| {
            let gate = begins.write();
            let start = |cpu| std::thread::Builder::new().spawn_scoped(scope, move || run(cpu));
            let threads: io::Result<Vec<_>> = (0..cpus).map(start).collect();
            let threads = threads.map_err(|error| ProgramError::Fabric(format!("no thread for each CPU: {error}")))?;
            drop(gate);
            threads.into_iter().map(|thread| thread.join().expect("a measurement does not panic")).collect()
        });
        Ok(times?.iter().sum::<Duration>() / cpus as u32)
    }

    fn forwarded(&self, hops: u32, early_ps: u64, repeat: u32) -> Result<Duration, ProgramError> {
        self.prepare(hops, early_ps, 1)?;
        let mean = self.on_cpus(1, SWITCH, repeat)?;
        let sent = self.program.chassis_counters()?.forwarded;
        if sent != u64::from(repeat) {
            return Err(ProgramError::Fabric(format!("{sent} of {repeat} frames were forwarded")));
        }
        Ok(mean)
    }

    /// Empties the queues, and sets the clocks of `streams` CPUs that share the load.
    fn prepare(&self, hops: u32, early_ps: u64, streams: u64) -> Result<(), ProgramError> {
        self.program.reset()?;
        self.program.prepare_test(Self::HOPS.saturating_sub(hops) as usize)?;
        let clock = |cpu| [START_PS + cpu as u64 * GAP_PS, streams * GAP_PS, early_ps].map(u64::to_ne_bytes).concat();
        self.program.maps.put_percpu("bench", clock)
    }

    fn measure(&self, name: &'static str, repeat: u32) -> Result<Duration, ProgramError> {
        let input = ProgramInput { data_in: Some(&self.frame), repeat, ..Default::default() };
        let output = self.program.program(name)?.test_run(input).map_err(ProgramError::TestRun)?;
        Ok(output.duration)
    }
}

const QUEUE: Thresholds = Thresholds {
    limit_bytes: 400_000,
    mark_min_bytes: 80_000,
    mark_max_bytes: 320_000,
    control_limit_bytes: 100_000,
    trim: true,
    ..Thresholds::NONE
};

/// Shorter than the gaps of a flow: every other frame begins a flowlet.
const FLOWLET_GAP_PS: u64 = 1_000_000;

/// [`HopBench::HOPS`] switches in a row with a host each, in groups of two.
fn chain(cables: u32) -> Network {
    const RATE_BPS: u64 = 100_000_000_000;
    const LATENCY_PS: u64 = 1_000_000;
    let mut network = Network::default();
    network.groups = Groups { count: (HopBench::HOPS / 2) as u16, switches: 2, hosts: 1 };
    let mut last = None;
    for number in 0..HopBench::HOPS {
        let (host, switch) = (network.add_host(format!("h{number}")), network.add_switch(format!("s{number}"), 0));
        network.add_cable(host, switch, RATE_BPS, LATENCY_PS);
        let between = last.map_or(0, |_| cables);
        (0..between).for_each(|_| network.add_cable(last.unwrap_or(switch), switch, RATE_BPS, LATENCY_PS));
        last = Some(switch);
    }
    network
}
