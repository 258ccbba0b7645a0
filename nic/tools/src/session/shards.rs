//! A session on several threads: one for each shard of its host.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use spray_nic::device::Nic;
use spray_nic::driver::Idle;
use spray_nic::{Endpoint, Time};

use super::{NAP, Session, Step};
use crate::failure::{Failure, Outcome};
use crate::stop::Stop;

impl Session {
    /// How many shards its host has.
    pub fn shards(&self) -> usize {
        1 + self.others.len()
    }

    /// As [`run`](Self::run), with a step for each shard, in their order: each is called on its shard's thread, the first one on this. When one
    /// ends the command, all end.
    pub fn run_all<S>(&mut self, stop: &Stop, steps: Vec<S>) -> Outcome
    where
        S: FnMut(&mut Endpoint<Nic>, Time) -> Step + Send,
    {
        let (is_over, failure) = (AtomicBool::new(false), Mutex::new(None));
        let mut others = std::mem::take(&mut self.others);
        let mut steps = steps.into_iter();
        let Some(mut first) = steps.next() else { return Ok(()) };
        let outcome = std::thread::scope(|scope| {
            let (is_over, failure) = (&is_over, &failure);
            for (host, mut step) in others.iter_mut().zip(steps) {
                scope.spawn(move || {
                    // Only the first one follows routes, on a thread that it has begun.
                    let _ = host.run(Idle::Sleep(NAP), &[], |endpoint, now| {
                        endpoint.drain_log().for_each(drop);
                        if is_over.load(Ordering::Relaxed) {
                            return ControlFlow::Break(());
                        }
                        step(endpoint, now).map_break(|outcome| end(is_over, failure, outcome))
                    });
                });
            }
            let outcome = self.run(stop, |endpoint, now| match is_over.load(Ordering::Relaxed) {
                true => ControlFlow::Break(Ok(())),
                false => first(endpoint, now),
            });
            is_over.store(true, Ordering::Relaxed);
            outcome
        });
        self.others = others;
        outcome.and_then(|()| failure.into_inner().unwrap_or_default().map_or(Ok(()), Err))
    }
}

/// The command ends, with this outcome of a shard's.
fn end(is_over: &AtomicBool, failure: &Mutex<Option<Failure>>, outcome: Outcome) {
    if let (Err(error), Ok(mut failure)) = (outcome, failure.lock()) {
        failure.get_or_insert(error);
    }
    is_over.store(true, Ordering::Relaxed);
}
