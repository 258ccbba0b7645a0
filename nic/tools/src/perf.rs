//! `spray serve` and `spray perf`: goodput and latency between two machines, without files. docs/perf.md says what users see of it.
//!
//! | file | content |
//! |---|---|
//! | `format` | what the two say to each other |
//! | `serve` | the side that waits |
//! | `client` | the side that asks, and measures |
//! | `plan` | what is to be measured |
//! | `board` | what its threads have counted |
//! | `pump` | a connection that always has something to send |
//! | `interval` | what is counted between two looks |
//! | `measured` | what comes out: lines, tables and JSON |
//! | `cpu` | what the processor does for it |

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

/// Most bytes of a message.
pub const MOST_BYTES: u32 = 16 << 20;

/// Settings of an endpoint whose peers may send messages of that size.
fn adjust(config: &mut EndpointConfig) {
    config.flow.max_message_bytes = u64::from(MOST_BYTES);
}
