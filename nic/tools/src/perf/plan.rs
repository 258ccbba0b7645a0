//! The measurement that the command line requests.

use spray_core::link::PS_PER_S;

use super::format::{Request, What};
use crate::args;

/// The server's clock starts later.
const SPARE_S: u32 = 5;
/// Limit of a measurement by the number of bytes.
pub const LONGEST_S: u32 = 86_400;
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub request: Request,
    pub parallel: u32,
    /// Additional connections that are not measured.
    pub load: u32,
    pub time_ps: u64,
    pub omit_ps: u64,
    pub interval_ps: u64,
    /// For each direction, over all connections.
    pub number: Option<u64>,
}

impl Plan {
    pub(super) fn new(arguments: &args::Perf) -> Self {
        let what = match arguments {
            args::Perf { latency: true, .. } => What::Latency,
            args::Perf { bidirectional: true, .. } => What::Both,
            args::Perf { reverse: true, .. } => What::Down,
            _ => What::Up,
        };
        let args::Perf { omit, bitrate, number, time, parallel, load, .. } = *arguments;
        let seconds = if number.is_some() { LONGEST_S } else { omit + time + SPARE_S };
        let bytes = arguments.length.unwrap_or_else(|| usual_bytes(what, bitrate));
        Self {
            request: Request { what, bytes, seconds, omit, rate_bps: bitrate, most: u64::MAX },
            parallel,
            load,
            time_ps: u64::from(if number.is_some() { LONGEST_S } else { time }) * PS_PER_S,
            omit_ps: u64::from(omit) * PS_PER_S,
            interval_ps: (arguments.interval * PS_PER_S as f64) as u64,
            number,
        }
    }

    pub(super) fn connections(&self) -> usize {
        (self.parallel + self.load) as usize
    }

    /// The last `load` connections are the load.
    pub(super) fn request(&self, connection: usize) -> Request {
        let (place, parallel) = (connection as u64, u64::from(self.parallel));
        if place >= parallel {
            return Request { what: What::Up, bytes: usual_bytes(What::Up, 0), ..self.request };
        }
        let share = |number| number / parallel + u64::from(place < number % parallel);
        Request { most: self.number.map_or(u64::MAX, share), ..self.request }
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
