//! The entropy values of the connections that are watched: how they were chosen over time, and which they were.

use spray_core::event::Choice;
use spray_fabric::{BANDS, BINS, EvLife};

use super::us;

/// The entropy values of a connection's data packets, over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConnectionEvs {
    /// The connection: its sender and its receiver, as in `h0->h4`.
    pub connection: String,
    /// When the first bin begins; less than 0 if the connection sent before the run began.
    pub begin_us: f64,
    /// How long a bin is.
    pub bin_us: f64,
    /// Up to the last that has a packet.
    pub bins: Vec<EvBin>,
}

/// Data packets of a bin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvBin {
    /// By [`Choice`].
    pub packets: [u64; 4],
    /// By band of entropy values, of which there are [`ConnectionEvs::BANDS`] of equal width, packets by [`Choice`]; without bands that
    /// have none.
    pub bands: Vec<(u8, [u32; 4])>,
}

impl ConnectionEvs {
    /// Bands into which the range of entropy values is cut.
    pub const BANDS: usize = BANDS;
    /// What [`EvBin::packets`] count.
    pub const CHOICES: [Choice; 4] = Choice::ALL;

    /// What an engine saw of the connection.
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
