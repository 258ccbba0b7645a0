//! What a chassis is told before it runs: plain data, the same bytes in the kernel's maps and in memory.

/// Most routing epochs; a scenario reroutes a handful of times.
pub const MAX_EPOCHS: usize = 8;
/// Most timed changes of one link.
pub const MAX_CHANGES: usize = 8;
/// Most switches that a frame crosses inside one chassis; a three-tier fat tree has five.
pub const MAX_HOPS: usize = 8;
/// `PortConfig::next` of a port that leaves the chassis.
pub const OUTSIDE: u32 = u32::MAX;

/// Start of a routing epoch that never comes.
pub const NEVER: u64 = i64::MAX as u64;

/// Queues count in 1/256 byte, so that a slot's drain is rounded by less than 1/256 byte.
pub const UNIT_BITS: u32 = 8;
/// Fraction bits of `PortState::ps_per_unit`.
pub const PS_FRACTION_BITS: u32 = 20;
/// Largest queue limit: a backlog in units must fit 32 bits for both classes together.
pub const MAX_LIMIT_BYTES: u32 = (8 << 20) - 65_536;
/// Lowest rate that a port may fall to: the time of a full backlog must fit 64 bits.
pub const MIN_RATE_BPS: u64 = 10_000_000;
/// Highest rate of a port.
pub const MAX_RATE_BPS: u64 = 1_000_000_000_000;

/// Constants of the chassis.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Globals {
    /// Root of all random decisions.
    pub seed: u64,
    /// Start of each routing epoch; unused ones are [`NEVER`].
    pub epoch_from_ps: [u64; MAX_EPOCHS],
    /// Number of switches in the fabric.
    pub switches: u32,
    /// Number of hosts in the fabric.
    pub hosts: u32,
}

impl Globals {
    /// The epoch whose routes hold at `t_ps`.
    #[inline(always)]
    pub fn epoch(&self, t_ps: u64) -> u32 {
        // By the sign of the difference instead of a comparison: the kernel's verifier would follow every outcome.
        let mut later = 0;
        for from in &self.epoch_from_ps[1..] {
            later += t_ps.wrapping_sub(*from) >> 63;
        }
        (MAX_EPOCHS - 1) as u32 - later as u32
    }

    /// Index of the group that `switch` uses toward `host` during `epoch`.
    #[inline(always)]
    pub fn group_index(&self, epoch: u32, switch: u32, host: u32) -> u32 {
        epoch.wrapping_mul(self.switches).wrapping_add(switch).wrapping_mul(self.hosts).wrapping_add(host)
    }
}

/// A run of `members`: the equal-cost egress ports toward a host.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Index of the first member.
    pub first: u32,
    /// Number of members; 0 = no route.
    pub count: u32,
}

impl Group {
    /// Index of the member that frames with the five-tuple digest `flow` use at a switch with `salt` (SW-5). There
    /// must be one.
    #[inline(always)]
    pub const fn choose(&self, flow: u64, salt: u64) -> u32 {
        let bits = (crate::hash::mix(flow ^ salt) >> 32) as u32;
        self.first.wrapping_add(crate::hash::pick(bits, self.count))
    }
}

/// A switch's own constants.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchConfig {
    /// Expanded salt of the path hash.
    pub salt: u64,
}

impl SwitchConfig {
    /// Expands a 32-bit salt so that neighbouring salts give unrelated choices.
    pub fn new(salt: u32) -> Self {
        Self { salt: crate::hash::mix(u64::from(salt) ^ 0x9e37_79b9_7f4a_7c15) }
    }
}

/// The link is up.
pub const FLAG_UP: u32 = 1;
/// Everything vanishes.
pub const FLAG_SILENT: u32 = 2;

/// What a link does from `at_ps` on.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortState {
    /// When it begins; `u64::MAX` = never.
    pub at_ps: u64,
    /// Units drained in one slot.
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
    pub flags: u32,
    /// 0; a value that the compiler and the kernel's verifier do not know.
    pub zero: u32,
}

/// A link's condition in human terms, from which [`PortState`] is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// When it begins.
    pub at_ps: u64,
    /// Administratively up.
    pub up: bool,
    /// Everything vanishes.
    pub silent_drop: bool,
    /// Share of the line rate in millionths.
    pub rate_ppm: u32,
    /// Loss probability in millionths.
    pub loss_ppm: u32,
    /// Cycle and outage of a flapping link, or zeros.
    pub flap: (u64, u64),
}

/// Limits and thresholds of a port's queue in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Data bytes that may wait.
    pub limit: u32,
    /// RED's lower threshold.
    pub mark_min: u32,
    /// RED's upper threshold.
    pub mark_max: u32,
    /// Control bytes that may wait.
    pub control_limit: u32,
    /// Trim instead of dropping.
    pub trim: bool,
}

/// An egress port.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortConfig {
    /// Propagation delay of the cable.
    pub latency_ps: u64,
    /// A slot lasts `1 << slot_shift` picoseconds.
    pub slot_shift: u32,
    /// Switch at the far end when it is of this chassis, else [`OUTSIDE`].
    pub next: u32,
    /// Data bytes that may wait.
    pub limit: u32,
    /// RED's lower threshold, bytes.
    pub mark_min: u32,
    /// RED's upper threshold, bytes.
    pub mark_max: u32,
    /// `2^32 / (mark_max - mark_min)`: probability gained per byte.
    pub mark_slope: u32,
    /// Control bytes that may wait.
    pub control_limit: u32,
    /// 1 = trim instead of dropping.
    pub trim: u32,
    /// The healthy state from 0, then the timed changes.
    pub states: [PortState; MAX_CHANGES + 1],
}

impl PortConfig {
    /// A healthy port. `frame_bytes` is the size of a full frame: a slot holds about three of them.
    pub fn new(rate_bps: u64, latency_ps: u64, thresholds: &Thresholds, next: u32, frame_bytes: u32) -> Self {
        let slot_shift = slot_shift(rate_bps, frame_bytes);
        let span = thresholds.mark_max.saturating_sub(thresholds.mark_min).max(2);
        let never = PortState { at_ps: u64::MAX, ..PortState::default() };
        let mut port = Self {
            latency_ps,
            slot_shift,
            next,
            limit: thresholds.limit.min(MAX_LIMIT_BYTES),
            mark_min: thresholds.mark_min,
            mark_max: thresholds.mark_max,
            mark_slope: ((1u64 << 32) / u64::from(span)) as u32,
            control_limit: thresholds.control_limit.min(MAX_LIMIT_BYTES),
            trim: thresholds.trim as u32,
            states: [never; MAX_CHANGES + 1],
        };
        port.states[0] = port.state(rate_bps, &Condition::healthy());
        port
    }

    /// Appends a timed change; returns false when the table is full.
    pub fn push(&mut self, rate_bps: u64, condition: &Condition) -> bool {
        let state = self.state(rate_bps, condition);
        match self.states[1..].iter_mut().find(|entry| entry.at_ps == u64::MAX) {
            Some(entry) => {
                *entry = state;
                true
            }
            None => false,
        }
    }

    /// Replaces the first state, for callers that apply changes when their time comes.
    pub fn set(&mut self, rate_bps: u64, condition: &Condition) {
        self.states[0] = self.state(rate_bps, condition);
    }

    fn state(&self, line_bps: u64, condition: &Condition) -> PortState {
        let bps = (u128::from(line_bps) * u128::from(condition.rate_ppm) / 1_000_000) as u64;
        let bps = u128::from(bps.clamp(MIN_RATE_BPS, MAX_RATE_BPS));
        // bytes per slot = bps / 8 * 2^shift / 1e12, then in units, rounded to nearest
        let slot_units = ((bps << (self.slot_shift + UNIT_BITS)) + 4_000_000_000_000) / 8_000_000_000_000;
        let ps_per_unit = ((8_000_000_000_000u128 << (PS_FRACTION_BITS - UNIT_BITS)) + bps / 2) / bps;
        PortState {
            at_ps: condition.at_ps,
            slot_units: slot_units.min(u128::from(u32::MAX)) as u32,
            loss: ((u64::from(condition.loss_ppm.min(1_000_000)) << 32) / 1_000_000).min(u64::from(u32::MAX)) as u32,
            ps_per_unit: ps_per_unit as u64,
            flap_period_ps: condition.flap.0,
            flap_down_ps: condition.flap.1,
            flags: if condition.up { FLAG_UP } else { 0 } | if condition.silent_drop { FLAG_SILENT } else { 0 },
            zero: 0,
        }
    }
}

impl Condition {
    /// An unimpaired link from time 0.
    pub const fn healthy() -> Self {
        Self { at_ps: 0, up: true, silent_drop: false, rate_ppm: 1_000_000, loss_ppm: 0, flap: (0, 0) }
    }
}

/// Slot length as a power of two of picoseconds: the nearest (by ratio) to the time of three full frames.
fn slot_shift(rate_bps: u64, frame_bytes: u32) -> u32 {
    let rate = u128::from(rate_bps.clamp(MIN_RATE_BPS, MAX_RATE_BPS));
    let wanted = 3 * u128::from(frame_bytes.clamp(64, 65_536)) * 8_000_000_000_000 / rate;
    // nearest by ratio: compare with 2^(n + 1/2)
    let floor = 127 - wanted.max(1).leading_zeros();
    let upper = wanted * wanted > (1u128 << (2 * floor + 1));
    floor + upper as u32
}
