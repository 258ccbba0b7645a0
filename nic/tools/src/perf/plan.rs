//! The measurement that the command line requests.

use spray_core::link::PS_PER_S;

use super::format::{Request, What};
use crate::args;

/// The server's clock starts later.
const SPARE_S: u32 = 5;

#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub request: Request,
    pub parallel: u32,
    /// Additional connections that are not measured.
    pub load: u32,
    pub time_ps: u64,
    pub interval_ps: u64,
}

impl Plan {
    pub(super) fn new(arguments: &args::Perf) -> Self {
        let what = match arguments {
            args::Perf { latency: true, .. } => What::Latency,
            args::Perf { bidirectional: true, .. } => What::Both,
            args::Perf { reverse: true, .. } => What::Down,
            _ => What::Up,
        };
        let args::Perf { bitrate, time, parallel, load, .. } = *arguments;
        let bytes = arguments.length.unwrap_or_else(|| usual_bytes(what, bitrate));
        Self {
            request: Request { what, bytes, seconds: time + SPARE_S, rate_bps: bitrate },
            parallel,
            load,
            time_ps: u64::from(time) * PS_PER_S,
            interval_ps: (arguments.interval * PS_PER_S as f64) as u64,
        }
    }

    pub(super) fn connections(&self) -> usize {
        (self.parallel + self.load) as usize
    }

    /// The last `load` connections are the load.
    pub(super) fn request(&self, connection: usize) -> Request {
        if connection >= self.parallel as usize {
            return Request { what: What::Up, bytes: usual_bytes(What::Up, 0), ..self.request };
        }
        self.request
    }

    pub(super) fn ways(&self) -> What {
        if self.request.what == What::Latency && self.load > 0 { What::Up } else { self.request.what }
    }
}

/// With a rate, what it sends in 10 ms.
fn usual_bytes(what: What, rate_bps: u64) -> u32 {
    match rate_bps {
        _ if what == What::Latency => 64,
        0 => 1 << 20,
        _ => (rate_bps / 800).clamp(1024, 1 << 20) as u32,
    }
}
