//! `spray serve` and `spray perf`: goodput and latency between two machines (docs/perf.md).

mod board;
mod client;
mod cpu;
mod format;
mod interval;
mod measured;
mod plan;
mod pump;
mod serve;
#[cfg(test)]
mod tests;

use spray_nic::EndpointConfig;

pub use self::client::perf;
pub use self::serve::serve;

/// Of a message.
pub const MOST_BYTES: u32 = 16 << 20;

fn adjust(config: &mut EndpointConfig) {
    config.flow.max_message_bytes = u64::from(MOST_BYTES);
}
