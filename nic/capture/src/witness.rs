//! Orders sightings and passes them to a capture and a tracer.

use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spray_core::event::Event;

use super::{Capture, Rows, Sighting, Tracer, Written};

/// A witness shared by several hosts, parts or threads.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Mutex<Witness>>);

/// Receives sightings from any thread.
#[derive(Debug)]
pub struct Witness {
    /// Sightings that an earlier one may still precede.
    pending: Vec<Sighting>,
    capture: Option<Capture<BufWriter<File>>>,
    tracer: Option<Tracer>,
}

impl Shared {
    /// Creates a witness with a capture, a tracer, or both.
    pub fn new(capture: Option<Capture<BufWriter<File>>>, tracer: Option<Tracer>) -> Self {
        Self(Arc::new(Mutex::new(Witness { pending: Vec::new(), capture, tracer })))
    }

    /// Locks the witness.
    pub fn lock(&self) -> MutexGuard<'_, Witness> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sightings per batch of a single observer.
const BATCH: usize = 4_096;

impl Witness {
    /// Adds a sighting. Sightings of an interface come in order of time; with `alone`, all do.
    pub fn see(&mut self, sighting: Sighting, alone: bool) {
        let at_ps = sighting.at_ps;
        self.pending.push(sighting);
        if alone && self.pending.len() >= BATCH {
            self.settle(at_ps);
        }
    }

    /// Passes on the sightings from before `until_ps`, as no more of them can come.
    pub fn settle(&mut self, until_ps: i64) {
        // Arrivals precede departures.
        self.pending.sort_by_key(|sighting| (sighting.at_ps, sighting.outbound, sighting.interface));
        let settled = self.pending.partition_point(|sighting| sighting.at_ps < until_ps);
        for sighting in self.pending.drain(..settled) {
            if let Some(tracer) = &mut self.tracer {
                tracer.on_sighting(&sighting);
            }
            if let Some(capture) = &mut self.capture {
                capture.write(&sighting);
            }
        }
    }

    /// Returns the tracer, if there is one.
    pub fn tracer(&mut self) -> Option<&mut Tracer> {
        self.tracer.as_mut()
    }

    /// Records what a sender's algorithm reported of the connection of flow `first`.
    pub fn report(&mut self, at_ps: i64, first: usize, event: &Event) {
        if let Some(tracer) = &mut self.tracer {
            tracer.report(at_ps, first, event);
        }
    }

    /// Ends the observation. Returns the capture's counts or first error, and the rows.
    pub fn finish(&mut self) -> io::Result<(Option<Written>, Rows)> {
        self.settle(i64::MAX);
        let written = self.capture.take().map(Capture::finish).transpose();
        let rows = self.tracer.take().map(Tracer::finish).unwrap_or_default();
        Ok((written?, rows))
    }
}
