//! The settings of `reps-plus`. `whole_acks`, `even_exploring` and `futile_losses` each turn one difference from REPS
//! off.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Micros, Ratio};

/// The settings of [`RepsPlus`](crate::path::RepsPlus).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct RepsPlusConfig {
    /// Entropy values that the buffer holds.
    #[schemars(range(min = 1, max = 20))]
    pub buffer: u8,
    /// Least time spent frozen. After a freeze that did not help, the connection does not freeze for as long.
    #[schemars(range(min = 1, max = 2_000_000))]
    pub freezing_timeout_us: Micros,
    /// Without trimming, a loss after an RTT of at least this many base RTTs is congestion, not a failure.
    #[schemars(range(min = 1, max = 100))]
    pub congestion_rtt: Ratio,
    /// Recycle the entropy values of all packets that an acknowledgement covers, not only that of the packet that
    /// triggered it.
    pub whole_acks: bool,
    /// Explore in an even sequence. Otherwise exploring draws at random.
    pub even_exploring: bool,
    /// So many losses in a row despite freezing end it. 0 is never.
    pub futile_losses: u8,
}

impl Default for RepsPlusConfig {
    fn default() -> Self {
        Self {
            buffer: 20,
            freezing_timeout_us: Micros::new(10_000),
            congestion_rtt: Ratio::permille(1_650),
            whole_acks: true,
            even_exploring: true,
            futile_losses: 1,
        }
    }
}
