//! Who takes sightings: puts them in order, and hands them to a capture and a tracer.

use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spray_core::event::Event;

use super::{Capture, Rows, Sighting, Tracer, Written};

/// A witness of several hosts, parts or threads.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Mutex<Witness>>);

/// Takes what is seen, from any thread.
#[derive(Debug)]
pub struct Witness {
    /// What may still come after something later.
    pending: Vec<Sighting>,
    capture: Option<Capture<BufWriter<File>>>,
    tracer: Option<Tracer>,
}

impl Shared {
    /// A witness with a capture, a tracer, or both.
    pub fn new(capture: Option<Capture<BufWriter<File>>>, tracer: Option<Tracer>) -> Self {
        Self(Arc::new(Mutex::new(Witness { pending: Vec::new(), capture, tracer })))
    }

    /// The witness, for as long as nobody else has it.
    pub fn lock(&self) -> MutexGuard<'_, Witness> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sightings that wait for their turn where all come in order.
const BATCH: usize = 4_096;

impl Witness {
    /// Takes a sighting. Those of one interface come in the order of their times, and with `alone` so do all.
    pub fn see(&mut self, sighting: Sighting, alone: bool) {
        let at_ps = sighting.at_ps;
        self.pending.push(sighting);
        if alone && self.pending.len() >= BATCH {
            self.settle(at_ps);
        }
    }

    /// Nothing comes any more from before `until_ps`.
    pub fn settle(&mut self, until_ps: i64) {
        // What has arrived somewhere comes before what leaves there.
        self.pending.sort_by_key(|sighting| (sighting.at_ps, sighting.outbound, sighting.interface));
        let settled = self.pending.partition_point(|sighting| sighting.at_ps < until_ps);
        for sighting in self.pending.drain(..settled) {
            if let Some(tracer) = &mut self.tracer {
                tracer.see(&sighting);
            }
            if let Some(capture) = &mut self.capture {
                capture.write(&sighting);
            }
        }
    }

    /// The tracer, if there is one.
    pub fn tracer(&mut self) -> Option<&mut Tracer> {
        self.tracer.as_mut()
    }

    /// Takes what a sender's algorithm reported of the connection that begins with flow `first`.
    pub fn report(&mut self, at_ps: i64, first: usize, event: &Event) {
        if let Some(tracer) = &mut self.tracer {
            tracer.report(at_ps, first, event);
        }
    }

    /// Ends it: what the capture holds, if there is one, and what the tracer has found.
    ///
    /// # Errors
    /// The first error of the capture's file.
    pub fn finish(&mut self) -> io::Result<(Option<Written>, Rows)> {
        self.settle(i64::MAX);
        let written = self.capture.take().map(Capture::finish).transpose();
        let rows = self.tracer.take().map(Tracer::finish).unwrap_or_default();
        Ok((written?, rows))
    }
}
