//! The threads of a session: one for each shard of its host.

use std::ops::ControlFlow;
use std::os::fd::RawFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use spray_nic::device::Nic;
use spray_nic::driver::Idle;
use spray_nic::{Endpoint, Host, Time};

use super::tap::Tap;
use super::{Freezes, NAP, Session, Step, strays};
use crate::failure::{Failure, Outcome};
use crate::metrics::{self, Metrics};
use crate::progress::now;
use crate::stop::Stop;

/// A shard of the host, with what its thread counts.
pub(super) struct Seat {
    pub(super) host: Host<Nic>,
    pub(super) freezes: Freezes,
    metrics: metrics::session::Session,
    /// What else ends a sleep, when it is readable.
    wakers: Vec<RawFd>,
}

impl Seat {
    pub(super) fn new(mut host: Host<Nic>, metrics: &Metrics, tap: Option<Tap>) -> Self {
        let metrics = metrics::session::Session::new(metrics.part());
        if let Some(tap) = tap {
            host.endpoint = host.endpoint.with_tap(Box::new(tap));
        }
        Self { host, freezes: Freezes::default(), metrics, wakers: Vec::new() }
    }

    /// Polls the endpoint, and calls `step` after every poll, until that ends the command or another shard has.
    fn run(&mut self, over: &Over, mut step: impl FnMut(&mut Endpoint<Nic>, Time) -> Step) {
        let Self { host, freezes, metrics, wakers } = self;
        let ran = host.run(Idle::Sleep(NAP), wakers, |endpoint, at| {
            endpoint.drain_log().for_each(|entry| freezes.take(&entry.event));
            metrics.update(endpoint, freezes, strays, now());
            if over.is() {
                return ControlFlow::Break(());
            }
            step(endpoint, at).map_break(|outcome| over.end(outcome))
        });
        if let Err(error) = ran {
            over.end(Err(Failure::failed(format!("cannot follow the kernel's routes: {error}"))));
        }
    }
}

/// Whether the command is over, and how it ended: as the first shard says that ends it.
struct Over {
    is: AtomicBool,
    outcome: Mutex<Option<Outcome>>,
}

impl Over {
    fn is(&self) -> bool {
        self.is.load(Ordering::Relaxed)
    }

    fn end(&self, outcome: Outcome) {
        if let Ok(mut place) = self.outcome.lock() {
            place.get_or_insert(outcome);
        }
        self.is.store(true, Ordering::Relaxed);
    }
}

impl Session {
    /// How many shards its host has.
    pub fn shards(&self) -> usize {
        self.seats.len()
    }

    /// Has a sleep of a shard end when `waker` is readable.
    pub fn wake(&mut self, shard: usize, waker: RawFd) {
        self.seats[shard].wakers.push(waker);
    }

    /// Runs the endpoint, and calls `step` after every poll, until a step ends the command or the user stops it.
    pub fn run(&mut self, stop: &Stop, step: impl FnMut(&mut Endpoint<Nic>, Time) -> Step + Send) -> Outcome {
        self.run_all(stop, vec![step])
    }

    /// As [`run`](Self::run), with a step for each shard, in their order: each is called on its shard's thread, the first one on this. When one
    /// ends the command, all end.
    pub fn run_all<S>(&mut self, stop: &Stop, steps: Vec<S>) -> Outcome
    where
        S: FnMut(&mut Endpoint<Nic>, Time) -> Step + Send,
    {
        self.metrics.start()?;
        let over = Over { is: AtomicBool::new(false), outcome: Mutex::new(None) };
        let Self { seats, outage, mtu, .. } = self;
        let mut seats = seats.iter_mut().zip(steps);
        let Some((first, mut step)) = seats.next() else { return Ok(()) };
        std::thread::scope(|scope| {
            for (seat, step) in seats {
                let over = &over;
                scope.spawn(move || seat.run(over, step));
            }
            first.run(&over, |endpoint, at| {
                mtu.check();
                if stop.is_set() {
                    return ControlFlow::Break(Err(Failure::stopped()));
                }
                outage.check(endpoint, now())?;
                step(endpoint, at)
            });
        });
        let outcome = over.outcome.into_inner().unwrap_or_default().unwrap_or(Ok(()));
        outcome.map_err(|failure| mtu.explain(failure))
    }
}
