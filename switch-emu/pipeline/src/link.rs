//! Link states, and their form in a port's table.

use crate::packed::packed;
use crate::units::{NEVER, PS_FRACTION_BITS, PS_PER_BYTE_AT_1_BPS, UNIT_BITS};

/// A timed change of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkChange {
    /// Start of the state.
    pub at_ps: u64,
    /// The complete new state.
    pub state: LinkState,
}

/// The state of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// False: administratively down.
    pub up: bool,
    /// True: drops every frame, unseen by routing.
    pub silent_drop: bool,
    /// Available share of the line rate, in millionths.
    pub rate_ppm: u32,
    /// Probability of dropping a frame, in millionths.
    pub loss_ppm: u32,
    /// Periodic outages.
    pub flap: Option<Flap>,
    /// Losses by frame count; only in the simulator.
    pub drop_every: Option<DropEvery>,
}

impl LinkState {
    /// Up and unimpaired.
    pub const UP: Self =
        Self { up: true, silent_drop: false, rate_ppm: 1_000_000, loss_ppm: 0, flap: None, drop_every: None };

    /// Returns the available rate of a link of `line_bps`.
    pub fn rate_bps(&self, line_bps: u64) -> u64 {
        (u128::from(line_bps) * u128::from(self.rate_ppm) / 1_000_000) as u64
    }
}

impl Default for LinkState {
    fn default() -> Self {
        Self::UP
    }
}

/// Periodic outage, in the first `down_ps` of every `period_ps`, counted from the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flap {
    /// Length of a cycle, above 0.
    pub period_ps: u64,
    /// Length of the outage.
    pub down_ps: u64,
}

/// Periodic loss of the last `lose` of every `pass + lose` frames, counted from the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropEvery {
    /// Frames that pass.
    pub pass: u32,
    /// Frames dropped after these.
    pub lose: u32,
}

/// [`PortState::flags`]: the link is up.
pub const FLAG_UP: u64 = 1;
/// [`PortState::flags`]: there are outages.
pub const FLAG_OUT: u64 = 2;
/// [`PortState::flags`]: losses by frame count, see [`DropEvery`].
pub const FLAG_COUNTED: u64 = 4;

packed! {
    /// The capacity of a link.
    pub struct Share {
        /// Units drained per slot.
        slot_units: u32 in 32,
        /// A frame is dropped when 32 random bits are below this.
        loss: u32 in 32,
    }
}

/// A [`LinkChange`] in a port's table; first what every frame needs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortState {
    /// Picoseconds per unit, with [`PS_FRACTION_BITS`] of fraction.
    pub ps_per_unit: u64,
    /// [`Share`]: one word, to save room on the kernel's small stack.
    pub share: u64,
    /// [`FLAG_UP`], [`FLAG_OUT`], [`FLAG_COUNTED`].
    pub flags: u64,
    /// Start of the state.
    pub at_ps: u64,
    /// Cycle of the outages; 0 = none.
    pub flap_period_ps: u64,
    /// Length of the outage at the start of each cycle.
    pub flap_down_ps: u64,
}

impl PortState {
    pub(crate) fn never() -> Self {
        Self { at_ps: NEVER, ..Self::default() }
    }

    /// Encodes `change` on a link of `line_bps` with slots of `1 << slot_shift` ps.
    pub(crate) fn new(line_bps: u64, slot_shift: u16, change: &LinkChange) -> Self {
        let LinkChange { at_ps, state } = *change;
        let bps = u128::from(state.rate_bps(line_bps)).max(1);
        // Both are rounded to nearest.
        let slot_units =
            ((bps << (u32::from(slot_shift) + UNIT_BITS)) + PS_PER_BYTE_AT_1_BPS / 2) / PS_PER_BYTE_AT_1_BPS;
        let ps_per_unit = ((PS_PER_BYTE_AT_1_BPS << (PS_FRACTION_BITS - UNIT_BITS)) + bps / 2) / bps;
        // A silent drop is a permanent outage.
        let flap = if state.silent_drop { Some(Flap { period_ps: 1, down_ps: 1 }) } else { state.flap };
        let flag = |set: bool, flag| if set { flag } else { 0 };
        let share = Share {
            slot_units: slot_units as u32,
            loss: ((u64::from(state.loss_ppm.min(1_000_000)) << 32) / 1_000_000).min(u64::from(u32::MAX)) as u32,
        };
        Self {
            ps_per_unit: ps_per_unit as u64,
            share: share.pack(),
            flags: flag(state.up, FLAG_UP)
                | flag(flap.is_some(), FLAG_OUT)
                | flag(state.drop_every.is_some(), FLAG_COUNTED),
            at_ps,
            flap_period_ps: flap.map_or(0, |flap| flap.period_ps),
            flap_down_ps: flap.map_or(0, |flap| flap.down_ps),
        }
    }

    /// Returns whether the link drops no frame.
    #[inline]
    pub fn is_healthy(&self) -> bool {
        self.flags == FLAG_UP && Share::unpack(self.share).loss == 0
    }
}
