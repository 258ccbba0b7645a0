//! The state of a link in words, and as the numbers that a port computes with.

use crate::packed::packed;
use crate::units::{NEVER, PS_FRACTION_BITS, PS_PER_BYTE_AT_1_BPS, UNIT_BITS};

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

    /// What is left of a rate of `line_bps`.
    pub fn rate_bps(&self, line_bps: u64) -> u64 {
        (u128::from(line_bps) * u128::from(self.rate_ppm) / 1_000_000) as u64
    }
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
/// [`PortState::flags`]: there are outages.
pub const FLAG_OUT: u64 = 2;
/// [`PortState::flags`]: losses are counted in frames, see [`DropEvery`].
pub const FLAG_COUNTED: u64 = 4;

packed! {
    /// What a link carries.
    pub struct Share {
        /// Units that a queue drains in one slot.
        slot_units: u32 in 32,
        /// A frame vanishes when 32 random bits are below this.
        loss: u32 in 32,
    }
}

/// A [`LinkChange`] as a port's table holds it: first what every frame asks for.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortState {
    /// Picoseconds per unit, with [`PS_FRACTION_BITS`] of fraction.
    pub ps_per_unit: u64,
    /// [`Share`]: one word, since each more that a port goes by takes room on the kernel's small stack.
    pub share: u64,
    /// [`FLAG_UP`], [`FLAG_OUT`], [`FLAG_COUNTED`].
    pub flags: u64,
    /// When it begins.
    pub at_ps: u64,
    /// Cycle of the outages; 0 = there are none.
    pub flap_period_ps: u64,
    /// The link is out for this first part of each cycle.
    pub flap_down_ps: u64,
}

impl PortState {
    /// A state that never comes.
    pub(crate) fn never() -> Self {
        Self { at_ps: NEVER, ..Self::default() }
    }

    /// The numbers of `change` on a link of `line_bps` whose slots last `1 << slot_shift` ps.
    pub(crate) fn new(line_bps: u64, slot_shift: u16, change: &LinkChange) -> Self {
        let LinkChange { at_ps, state } = *change;
        let bps = u128::from(state.rate_bps(line_bps)).max(1);
        // Both are rounded to nearest.
        let slot_units =
            ((bps << (u32::from(slot_shift) + UNIT_BITS)) + PS_PER_BYTE_AT_1_BPS / 2) / PS_PER_BYTE_AT_1_BPS;
        let ps_per_unit = ((PS_PER_BYTE_AT_1_BPS << (PS_FRACTION_BITS - UNIT_BITS)) + bps / 2) / bps;
        // What drops silently is out all the time.
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

    /// Whether every frame gets over the link.
    #[inline]
    pub fn is_healthy(&self) -> bool {
        self.flags == FLAG_UP && Share::unpack(self.share).loss == 0
    }
}
