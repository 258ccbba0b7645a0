//! Orders records and passes them to a capture and a tracer.

use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spray_core::event::Event;

use super::{Capture, CaptureStats, FrameRecord, Rows, Tracer};

/// An observer shared by several hosts, parts or threads.
#[derive(Clone, Debug)]
pub struct Observer(Arc<Mutex<ObserverState>>);

/// Receives records from any thread.
#[derive(Debug)]
pub struct ObserverState {
    /// Records that an earlier one may still precede.
    pending: Vec<FrameRecord>,
    capture: Option<Capture<BufWriter<File>>>,
    tracer: Option<Tracer>,
}

impl Observer {
    /// Creates an observer with a capture, a tracer, or both.
    pub fn new(capture: Option<Capture<BufWriter<File>>>, tracer: Option<Tracer>) -> Self {
        Self(Arc::new(Mutex::new(ObserverState { pending: Vec::new(), capture, tracer })))
    }

    /// Locks the observer.
    pub fn lock(&self) -> MutexGuard<'_, ObserverState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records per batch of a single observer.
const BATCH: usize = 4_096;

impl ObserverState {
    /// Adds a record. Records of an interface come in order of time; with `alone`, all do.
    pub fn observe(&mut self, record: FrameRecord, alone: bool) {
        let at_ps = record.at_ps;
        self.pending.push(record);
        if alone && self.pending.len() >= BATCH {
            self.flush(at_ps);
        }
    }

    /// Passes on the records from before `until_ps`, as no more of them can come.
    pub fn flush(&mut self, until_ps: i64) {
        // Arrivals precede departures.
        self.pending.sort_by_key(|record| (record.at_ps, record.outbound, record.interface));
        let settled = self.pending.partition_point(|record| record.at_ps < until_ps);
        for record in self.pending.drain(..settled) {
            if let Some(tracer) = &mut self.tracer {
                tracer.on_record(&record);
            }
            if let Some(capture) = &mut self.capture {
                capture.write(&record);
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
    pub fn finish(&mut self) -> io::Result<(Option<CaptureStats>, Rows)> {
        self.flush(i64::MAX);
        let written = self.capture.take().map(Capture::finish).transpose();
        let rows = self.tracer.take().map(Tracer::finish).unwrap_or_default();
        Ok((written?, rows))
    }
}
