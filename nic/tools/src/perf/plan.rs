//! What is to be measured, as the command line says.

use spray_core::link::PS_PER_S;

use super::format::{Request, What};
use crate::args;
use crate::failure::{Failure, Outcome};

/// How much longer than asked for the server may send: its clock begins later.
const SPARE_S: u32 = 5;
/// Longest measurement, and so how long a number of bytes may take.
pub const LONGEST_S: u32 = 86_400;
/// Sizes of a sweep: powers of two, as `ib_write_bw -a` has them.
const SWEEP: std::ops::RangeInclusive<u32> = 6..=23;

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Of each connection, but for the bytes that it may send.
    pub request: Request,
    /// Connections.
    pub parallel: u32,
    /// Connections that send meanwhile, and are not measured themselves.
    pub load: u32,
    pub time_ps: u64,
    pub omit_ps: u64,
    pub interval_ps: u64,
    /// Bytes of all connections after which it ends, each way.
    pub number: Option<u64>,
    /// Lines are JSON, as they come.
    pub streams: bool,
    /// A row of a table: nothing is said while it runs.
    pub is_row: bool,
    pub server_output: bool,
}

impl Plan {
    /// One, or one for each size.
    pub(super) fn all(arguments: &args::Perf) -> Vec<Self> {
        match arguments.all {
            true => SWEEP.map(|bits| Self::new(arguments, Some(1 << bits))).collect(),
            false => vec![Self::new(arguments, None)],
        }
    }

    fn new(arguments: &args::Perf, size: Option<u32>) -> Self {
        let what = match arguments {
            args::Perf { bare: true, .. } => What::Bare,
            args::Perf { latency: true, reverse: true, .. } => What::LatencyDown,
            args::Perf { latency: true, .. } => What::Latency,
            args::Perf { bidirectional: true, .. } => What::Both,
            args::Perf { reverse: true, .. } => What::Down,
            _ => What::Up,
        };
        let args::Perf { omit, bitrate, number, .. } = *arguments;
        let time = arguments.time.unwrap_or(if size.is_some() { 1 } else { 10 });
        // A row's peak is of a tenth of its time.
        let interval = arguments.interval.unwrap_or(if size.is_some() { f64::from(time) / 10.0 } else { 1.0 });
        let seconds = if number.is_some() { LONGEST_S } else { omit + time + SPARE_S };
        let bytes = size.or(arguments.length).unwrap_or_else(|| usual_bytes(what, bitrate));
        Self {
            request: Request { what, bytes, seconds, omit, rate_bps: bitrate, most: u64::MAX },
            parallel: arguments.parallel,
            load: arguments.load,
            time_ps: u64::from(if number.is_some() { LONGEST_S } else { time }) * PS_PER_S,
            omit_ps: u64::from(omit) * PS_PER_S,
            interval_ps: (interval * PS_PER_S as f64) as u64,
            number,
            streams: arguments.json_stream,
            is_row: size.is_some(),
            server_output: arguments.get_server_output,
        }
    }

    /// Has bare frames be as long as the device takes them, where nobody says how long.
    ///
    /// # Errors
    /// 2 for a length that it does not take.
    pub(super) fn fit(&mut self, [least, most]: [usize; 2]) -> Outcome {
        let Request { what, bytes, .. } = &mut self.request;
        match *bytes as usize {
            _ if *what != What::Bare => Ok(()),
            0 => {
                *bytes = most as u32;
                Ok(())
            }
            given if (least..=most).contains(&given) => Ok(()),
            _ => Err(Failure::refused(format!(
                "--bare takes frames of {least} to {most} bytes here, from the Ethernet header on: --length"
            ))),
        }
    }

    /// The connections of all threads.
    pub(super) fn connections(&self) -> usize {
        (self.parallel + self.load) as usize
    }

    /// What a connection asks for: the last ones are the load.
    pub(super) fn request(&self, connection: usize) -> Request {
        let (place, parallel) = (connection as u64, u64::from(self.parallel));
        if place >= parallel {
            return Request { what: What::Up, bytes: usual_bytes(What::Up, 0), ..self.request };
        }
        let share = |number| number / parallel + u64::from(place < number % parallel);
        Request { most: self.number.map_or(u64::MAX, share), ..self.request }
    }

    /// The ways that payload goes.
    pub(super) fn ways(&self) -> What {
        if self.request.what.is_latency() && self.load > 0 { What::Up } else { self.request.what }
    }
}

/// The size of a message where nobody gives one: with a rate what goes in 10 ms, so that it is kept.
fn usual_bytes(what: What, rate_bps: u64) -> u32 {
    match rate_bps {
        _ if what.is_latency() => 64,
        // As the device says.
        _ if what == What::Bare => 0,
        0 => 1 << 20,
        _ => (rate_bps / 800).clamp(1024, 1 << 20) as u32,
    }
}
