//! The thread that polls the hosts, and the thread that monitors it.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use spray_nic::driver::DriverOptions;
use spray_nic::sys::monotonic_ns;

use super::emulation::{DilatedClock, poll_all};
use super::flows::{Completion, Flows};
use super::hosts::HostRun;
use spray_switch::RunError;

/// When a run is over.
pub(super) struct StopCondition<'a> {
    pub plan: &'a Flows,
    /// Virtual time limit.
    pub until_ps: u64,
}

/// Progress of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report {
    /// Virtual time that the hosts have reached.
    pub now_ps: u64,
    /// Payload bytes placed at their receivers.
    pub delivered_bytes: u64,
    /// Number of messages received.
    pub arrived: u64,
}

pub(super) struct Outcome {
    /// By number.
    pub hosts: Vec<HostRun>,
    /// Virtual time at the end.
    pub end_ps: u64,
    /// Real time, including the lead-in.
    pub wall: Duration,
    /// Real over virtual time, without the lead-in.
    pub dilation: f64,
}

/// Progress of the polling thread, for the monitor.
#[derive(Debug, Default)]
struct Board {
    now_ps: AtomicU64,
    placed_bytes: AtomicU64,
}

const LOOK: Duration = Duration::from_millis(2);
/// Rounds between two counts of the placed bytes.
const ROUNDS_PER_COUNT: u32 = 16;

/// Runs `hosts` by the time of `clock`, until `goal` or until `watch` stops it.
pub(super) fn drive(
    hosts: Vec<HostRun>,
    clock: DilatedClock,
    goal: &StopCondition<'_>,
    watch: &mut dyn FnMut(&Report) -> Result<ControlFlow<()>, RunError>,
) -> Result<Outcome, RunError> {
    let (stop, board) = (AtomicBool::new(false), Board::default());
    let begun_ns = monotonic_ns();
    let (hosts, watched) = std::thread::scope(|scope| {
        let poll = || poll(hosts, clock, goal.plan, &board, &stop);
        let thread = std::thread::Builder::new().spawn_scoped(scope, poll).map_err(RunError::thread)?;
        // Also if `watch` panics: the scope joins the thread.
        let stopping = StopOnDrop(&stop);
        let watched = watch_until_over(goal, &board, || thread.is_finished(), watch);
        drop(stopping);
        let hosts = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok::<_, RunError>((hosts, watched))
    })?;
    let wall = Duration::from_nanos(monotonic_ns() - begun_ns);
    watched.map(|(end_ps, dilation)| Outcome { hosts, end_ps, wall, dilation })
}

/// Returns the virtual time at the end, and real over virtual time since the lead-in.
fn watch_until_over(
    goal: &StopCondition<'_>,
    board: &Board,
    ended: impl Fn() -> bool,
    watch: &mut dyn FnMut(&Report) -> Result<ControlFlow<()>, RunError>,
) -> Result<(u64, f64), RunError> {
    let mut lead_in_ns = None;
    loop {
        std::thread::sleep(LOOK);
        let Completion { arrived, over } = goal.plan.completion();
        let report = Report {
            now_ps: board.now_ps.load(Ordering::Relaxed),
            delivered_bytes: board.placed_bytes.load(Ordering::Relaxed),
            arrived,
        };
        let at_ns = monotonic_ns();
        if report.now_ps >= goal.plan.lead_in_ps {
            lead_in_ns.get_or_insert(at_ns);
        }
        let enough = watch(&report)?.is_break();
        // The thread ends early only by a panic, which joining it propagates.
        if over || enough || report.now_ps >= goal.until_ps || ended() {
            let real_ps = (at_ns - lead_in_ns.unwrap_or(at_ns)) as f64 * 1000.0;
            let virtual_ps = report.now_ps.saturating_sub(goal.plan.lead_in_ps).max(1);
            return Ok((report.now_ps, real_ps / virtual_ps as f64));
        }
    }
}

/// Polls the hosts until `stop`, and returns them.
fn poll(hosts: Vec<HostRun>, mut clock: DilatedClock, plan: &Flows, board: &Board, stop: &AtomicBool) -> Vec<HostRun> {
    // Without SCHED_IDLE a run is slower, but correct.
    let _ = DriverOptions::default().apply();
    let numbers: Vec<_> = hosts.iter().map(|running| running.host).collect();
    let (mut endpoints, mut books): (Vec<_>, Vec<_>) =
        hosts.into_iter().map(|running| (running.endpoint, running.book)).unzip();
    let (mut rounds, is_static) = (0u32, plan.is_static());
    let (mut now_ps, mut activity) = (clock.tick(0), 0);
    loop {
        let handled_ps = poll_all(&mut endpoints, now_ps, |host, endpoint| {
            let event_ps = endpoint.device().now_ps().unwrap_or(now_ps);
            let paths_changed = books[host].update_paths(endpoint, event_ps);
            books[host].take(endpoint, plan) | paths_changed
        });
        if !is_static {
            plan.advance(now_ps);
            for ((host, endpoint), book) in numbers.iter().zip(endpoints.iter_mut()).zip(&mut books) {
                book.start(*host, endpoint, plan, now_ps);
            }
        }
        board.now_ps.store(now_ps, Ordering::Relaxed);
        rounds = rounds.wrapping_add(1);
        let is_last = stop.load(Ordering::Relaxed);
        if is_last || rounds.is_multiple_of(ROUNDS_PER_COUNT) {
            let placed = endpoints.iter().zip(&books).map(|(endpoint, book)| book.placed_bytes(endpoint)).sum();
            board.placed_bytes.store(placed, Ordering::Relaxed);
        }
        if is_last {
            break;
        }
        let active = endpoints.iter().map(|endpoint| endpoint.device().activity).sum();
        if std::mem::replace(&mut activity, active) == active {
            // Yields the core after an idle round: a busy loop would slow its other hyperthread.
            (0..SPINS).for_each(|_| std::hint::spin_loop());
            std::thread::yield_now();
        }
        now_ps = clock.tick(handled_ps);
    }
    let hosts = numbers.into_iter().zip(endpoints).zip(books);
    hosts.map(|((host, endpoint), book)| HostRun { host, endpoint, book }).collect()
}

/// Pauses of some nanoseconds each.
const SPINS: u32 = 64;

/// Sets the stop flag of other threads when it is dropped, also on errors and panics.
#[derive(Debug)]
pub struct StopOnDrop<'a>(pub &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
