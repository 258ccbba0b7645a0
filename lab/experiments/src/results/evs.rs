//! Entropy values of sampled connections over time.

use spray_fabric::{BINS, EvLife};

use super::us;

/// Entropy values of a connection's data packets over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConnectionEvs {
    /// Sender and receiver: `h0->h4`.
    pub connection: String,
    /// Start of the first bin; negative if the connection sent before the run began.
    pub begin_us: f64,
    pub bin_us: f64,
    /// Bins up to the last with a packet.
    pub bins: Vec<EvBin>,
}

/// Data packets of a bin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvBin {
    /// Number of packets by [`Choice`](spray_core::event::Choice).
    pub packets: [u64; 4],
    /// Packets by choice in each non-empty band of [`BANDS`](spray_fabric::BANDS) equal ones.
    pub bands: Vec<(u8, [u32; 4])>,
}

impl ConnectionEvs {
    pub(crate) fn new(connection: &str, life: &EvLife, lead_in_ps: u64) -> Self {
        let mut bins: Vec<EvBin> = (0..BINS).map(|bin| EvBin::of(life.bin(bin))).collect();
        let used = bins.iter().rposition(|bin| !bin.bands.is_empty()).map_or(0, |last| last + 1);
        bins.truncate(used);
        Self {
            connection: connection.into(),
            begin_us: us(life.begin_ps) - us(lead_in_ps),
            bin_us: us(life.bin_ps),
            bins,
        }
    }
}

impl EvBin {
    fn of(counts: &[[u32; 4]]) -> Self {
        let bands = (0..).zip(counts).filter(|(_, counts)| counts.iter().any(|count| *count > 0));
        let bands: Vec<(u8, [u32; 4])> = bands.map(|(band, counts)| (band, *counts)).collect();
        let sum = |choice: usize| bands.iter().map(|(_, counts)| u64::from(counts[choice])).sum();
        Self { packets: std::array::from_fn(sum), bands }
    }
}
