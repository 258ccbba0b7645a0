//! The state of a link in words, and as the numbers that a port computes with.

use crate::config::{MAX_RATE_BPS, MIN_RATE_BPS, NEVER, PS_FRACTION_BITS, PS_PER_BYTE_AT_1_BPS, UNIT_BITS};

/// A link's state from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkChange {
    /// When the state begins.
    pub at_ps: u64,
    /// The whole state, not a difference.
    pub state: LinkState,
}

/// What a link does with frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// False: administratively down; frames are dropped with the cause `down`.
    pub up: bool,
    /// True: every frame vanishes although the link looks healthy.
    pub silent_drop: bool,
    /// Share of the line rate that is left, in millionths.
    pub rate_ppm: u32,
    /// Probability that a frame vanishes, in millionths.
    pub loss_ppm: u32,
    /// Periodic outages.
    pub flap: Option<Flap>,
    /// Losses counted in frames; only the simulator plays them.
    pub drop_every: Option<DropEvery>,
}

impl LinkState {
    /// A healthy link.
    pub const UP: Self =
        Self { up: true, silent_drop: false, rate_ppm: 1_000_000, loss_ppm: 0, flap: None, drop_every: None };
}

impl Default for LinkState {
    fn default() -> Self {
        Self::UP
    }
}

/// Periodic outage: the link is out for the first `down_ps` of every `period_ps`, counted from the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flap {
    /// Length of a cycle, above 0.
    pub period_ps: u64,
    /// Part of the cycle during which every frame vanishes.
    pub down_ps: u64,
}

/// Periodic loss: of every `pass + lose` frames, counted from the change, the last `lose` vanish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropEvery {
    /// Frames that get through.
    pub pass: u32,
    /// Frames after them that vanish.
    pub lose: u32,
}

/// [`PortState::flags`]: the link is up.
pub const FLAG_UP: u64 = 1;
/// [`PortState::flags`]: everything vanishes.
pub const FLAG_SILENT: u64 = 2;

/// A [`LinkChange`] as a port's table holds it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortState {
    /// When it begins.
    pub at_ps: u64,
    /// Units that a queue drains in one slot.
    pub slot_units: u32,
    /// A frame vanishes when 32 random bits are below this.
    pub loss: u32,
    /// Picoseconds per unit, with [`PS_FRACTION_BITS`] of fraction.
    pub ps_per_unit: u64,
    /// Cycle of a flapping link; 0 = it does not flap.
    pub flap_period_ps: u64,
    /// The link is out for this first part of each cycle.
    pub flap_down_ps: u64,
    /// [`FLAG_UP`], [`FLAG_SILENT`].
    pub flags: u64,
}

impl PortState {
    /// A state that never comes.
    pub(crate) fn never() -> Self {
        Self { at_ps: NEVER, ..Self::default() }
    }

    /// The numbers of `change` on a link of `line_bps` whose slots last `1 << slot_shift` ps.
    pub(crate) fn new(line_bps: u64, slot_shift: u32, change: &LinkChange) -> Self {
        let LinkChange { at_ps, state } = *change;
        let bps = (u128::from(line_bps) * u128::from(state.rate_ppm) / 1_000_000) as u64;
        let bps = u128::from(bps.clamp(MIN_RATE_BPS, MAX_RATE_BPS));
        // Both are rounded to nearest.
        let slot_units = ((bps << (slot_shift + UNIT_BITS)) + PS_PER_BYTE_AT_1_BPS / 2) / PS_PER_BYTE_AT_1_BPS;
        let ps_per_unit = ((PS_PER_BYTE_AT_1_BPS << (PS_FRACTION_BITS - UNIT_BITS)) + bps / 2) / bps;
        let flap = state.flap.unwrap_or(Flap { period_ps: 0, down_ps: 0 });
        Self {
            at_ps,
            slot_units: slot_units.min(u128::from(u32::MAX)) as u32,
            loss: ((u64::from(state.loss_ppm.min(1_000_000)) << 32) / 1_000_000).min(u64::from(u32::MAX)) as u32,
            ps_per_unit: ps_per_unit as u64,
            flap_period_ps: flap.period_ps,
            flap_down_ps: flap.down_ps,
            flags: if state.up { FLAG_UP } else { 0 } | if state.silent_drop { FLAG_SILENT } else { 0 },
        }
    }
}
