//! What the switch program costs per frame and hop, by the kernel's test run.

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
/// A mask of the time by which a frame is earlier than its place among the others says.
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
    /// Switches in the chain.
    pub const HOPS: u32 = 6;

    /// Loads a chain of [`HopBench::HOPS`] switches and the bare redirect. Between two switches are so many `cables`, among which
    /// they choose by `switching`.
    ///
    /// # Errors
    /// The programs are missing or refused.
    pub fn new(switching: Switching, cables: u32) -> Result<Self, ProgramError> {
        let mut network = chain(cables);
        network.switching = Switching { flowlet_gap_ps: FLOWLET_GAP_PS, ..switching };
        let fabric = compile(&network, 1, |_| QUEUE, &[]).expect("a fabric without events");
        let mut program =
            SwitchProgram::load_programs(&ChassisSpec::whole(&fabric), &KernelClock::new()?, &[SWITCH, REDIRECT])?;
        // Every switch of the chain plays its port: those that lead to hosts count as ports to another chassis.
        program.tables.ports.iter_mut().filter(|port| port.next == HOST).for_each(|port| port.next = OUTSIDE);
        program.maps.write(&program.tables)?;
        let [first, .., last] = fabric.hosts.as_slice() else { unreachable!("a host at every switch") };
        Ok(Self { program, frame: data_frame(first, last, FRAME_PAYLOAD) })
    }

    /// Mean time of a program that only redirects.
    ///
    /// # Errors
    /// The kernel refuses the test run.
    pub fn redirect(&self, repeat: u32) -> Result<Duration, ProgramError> {
        self.prepare(1, 0, 1)?;
        self.measure(REDIRECT, repeat)
    }

    /// Mean time for a frame to cross `hops` switches (1 to [`HopBench::HOPS`]), frames in order at a load of 90 %.
    ///
    /// Every repetition is another frame: the benchmark's entry point advances the virtual time by the gap, changes the
    /// source port and restores the TTL before the switch runs, and that time counts as the switch's.
    ///
    /// # Errors
    /// The kernel refuses the test run, or a frame was not forwarded.
    pub fn switch(&self, hops: u32, repeat: u32) -> Result<Duration, ProgramError> {
        self.forwarded(hops, 0, repeat)
    }

    /// As [`HopBench::switch`], with frames that are up to 16.8 us out of order: queues walk over many slots.
    ///
    /// # Errors
    /// As [`HopBench::switch`].
    pub fn disorder(&self, hops: u32, repeat: u32) -> Result<Duration, ProgramError> {
        self.forwarded(hops, EARLY_PS, repeat)
    }

    /// As [`HopBench::switch`] and [`HopBench::redirect`], but this many CPUs run it at once, the first ones: a CPU's mean time.
    /// Together the frames are a load of 90 % at every port.
    ///
    /// # Errors
    /// As [`HopBench::switch`]; there are not so many CPUs.
    pub fn together(&self, cpus: usize, hops: Option<u32>, repeat: u32) -> Result<Duration, ProgramError> {
        self.prepare(hops.unwrap_or(1), 0, cpus as u64)?;
        self.on_cpus(cpus, if hops.is_some() { SWITCH } else { REDIRECT }, repeat)
    }

    /// Measures on the first CPUs at once; returns their mean. Each has a clock of its own, so a measurement stays on its CPU.
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

    /// Empties the queues, and sets the clocks: of so many streams each has its share of the load.
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

/// Frames of a flow are further apart: every other one begins a flowlet.
const FLOWLET_GAP_PS: u64 = 1_000_000;

/// [`HopBench::HOPS`] switches in a row, with a host each. Two are a group: from the first group to the last every way is over the other
/// one.
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
