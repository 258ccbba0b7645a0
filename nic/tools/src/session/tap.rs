//! Captures the frames of a session.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use spray_capture::{Capture, Content, FrameRecord, Observer, PortAction};
use spray_nic::{Time, endpoint};

use crate::captures::{Captures, Watching};
use crate::failure::{Failure, Outcome};
use crate::progress::now;

#[derive(Clone, Debug)]
pub struct Tap {
    watch: Observer,
    begun: Instant,
}

/// The file is opened before privileges are given up.
pub fn begin(captures: &Captures, interface: &str) -> Outcome<Option<Watching>> {
    let Some(file) = captures.file("") else { return Ok(None) };
    Captures::prepare(&file)?;
    let watch = open(&file, interface, captures.pcap_frames)
        .map_err(|error| Failure::refused(format!("--pcap: cannot write {}: {error}", file.display())))?;
    Ok(Some(Watching::new(file, watch)))
}

#[expect(clippy::disallowed_methods, reason = "times of a capture are for people to read; nothing decides by them")]
fn open(file: &Path, interface: &str, frames: u64) -> io::Result<Observer> {
    let output = BufWriter::new(File::create_new(file)?);
    let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Observer::new(Some(Capture::new(output, [interface], epoch, frames)?), None))
}

impl Tap {
    pub fn new(watch: Observer) -> Self {
        Self { watch, begun: now() }
    }

    fn see(&self, frame: &[u8], outbound: bool) {
        // 63 bits of picoseconds are some 100 days.
        let at_ps = (now().duration_since(self.begun).as_nanos() as i64).saturating_mul(1_000);
        let content = Content::of(frame, false);
        let record =
            FrameRecord { at_ps, interface: 0, outbound, content, action: PortAction::default(), waiting_bytes: None };
        self.watch.lock().observe(record, true);
    }
}

impl endpoint::Tap for Tap {
    fn on_sent(&mut self, _now: Time, frame: &[u8]) {
        self.see(frame, true);
    }

    fn on_received(&mut self, _now: Time, frame: &[u8]) {
        self.see(frame, false);
    }
}
