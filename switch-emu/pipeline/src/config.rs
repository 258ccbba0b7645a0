//! The configuration of a chassis, with the same layout in the kernel's maps and in memory.

use crate::bins::BinScale;
use crate::link::{LinkChange, LinkState, PortState};
pub use crate::units::{NEVER, PS_FRACTION_BITS, PS_PER_BYTE_AT_1_BPS, UNIT_BITS};
use spray_wire::{DSCP_TRIMMED, DSCP_TRIMMED_LAST};

/// Maximum number of routing epochs; a scenario reroutes a few times.
pub const MAX_EPOCHS: usize = 8;
/// Maximum number of timed changes of one link.
pub const MAX_CHANGES: usize = 8;
/// Maximum number of switches on a path in a chassis; a three-tier fat tree has five.
pub const MAX_HOPS: usize = 8;
/// [`PortConfig::next`] of a port that leaves the chassis for a switch of another one.
pub const OUTSIDE: u32 = u32::MAX;
/// [`PortConfig::next`] of a port that leads to a host, which runs the port for emulated frames.
pub const HOST: u32 = u32::MAX - 1;

/// Largest queue limit: a backlog in units must fit 32 bits for both classes together.
pub const MAX_LIMIT_BYTES: u32 = (16 << 20) - 65_536;
/// Lowest rate of a port's cable.
pub const MIN_RATE_BPS: u64 = 10_000_000;
/// Lowest share of that rate, in millionths, for which a slot's drain is rounded by at most 0.03 %.
pub const MIN_RATE_PPM: u32 = 1_000;
/// Highest rate of a cable: times are whole picoseconds, and a full frame takes 332.
pub const MAX_RATE_BPS: u64 = 100_000_000_000_000;

/// Constants of the chassis.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Globals {
    /// Random seed.
    pub seed: u64,
    /// Start of each routing epoch; unused ones are [`NEVER`].
    pub epoch_from_ps: [u64; MAX_EPOCHS],
    /// Number of switches in the fabric.
    pub switches: u32,
    /// Number of hosts in the fabric.
    pub hosts: u32,
    /// 1 = an emulated frame returns to its host before each further switch; 0 = it does not.
    pub hop_by_hop: u64,
    /// The bins of each port.
    pub bins: BinScale,
}

impl Globals {
    /// Returns the routing epoch of `t_ps`.
    #[inline(always)]
    pub fn epoch(&self, t_ps: u64) -> u32 {
        // By the sign: the verifier would follow both outcomes of each comparison.
        let mut later = 0;
        for from in &self.epoch_from_ps[1..] {
            later += t_ps.wrapping_sub(*from) >> 63;
        }
        (MAX_EPOCHS - 1) as u32 - later as u32
    }

    /// Returns the index of the group of `switch` toward `host` during `epoch`.
    #[inline(always)]
    pub fn group_index(&self, epoch: u32, switch: u32, host: u32) -> u32 {
        epoch.wrapping_mul(self.switches).wrapping_add(switch).wrapping_mul(self.hosts).wrapping_add(host)
    }
}

/// Limits and marking thresholds of a queue, in the kernel up to [`MAX_LIMIT_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Limit of queued data in bytes; a frame beyond it is trimmed or dropped.
    pub limit_bytes: u32,
    /// Lower marking threshold in bytes of queued data.
    pub mark_min_bytes: u32,
    /// Upper threshold; between both, the probability grows linearly to `mark_ppm`.
    pub mark_max_bytes: u32,
    /// The probability of a mark just below `mark_max_bytes`, in millionths.
    pub mark_ppm: u32,
    /// Whether frames are marked at departure instead of arrival. Only the simulator can.
    pub mark_departing: bool,
    /// Limit of queued control frames (acknowledgements, trimmed headers) in bytes.
    pub control_limit_bytes: u32,
    /// Whether a data frame beyond the limit is trimmed to its header instead of dropped.
    pub trim: bool,
    /// Whether the last port of a path trims with a different DSCP.
    pub trim_tells_last: bool,
    /// Shared buffer of a switch, in bytes; 0: every port has its own. Only the simulator can.
    pub shared_bytes: u64,
    /// Dynamic threshold: the free shared buffer times this, in millionths, limits each port.
    pub alpha_ppm: u32,
}

impl Thresholds {
    /// No room, marks everything queued, no shared buffer: for others to build on.
    pub const NONE: Self = Self {
        limit_bytes: 0,
        mark_min_bytes: 0,
        mark_max_bytes: 0,
        mark_ppm: 1_000_000,
        mark_departing: false,
        control_limit_bytes: 0,
        trim: false,
        trim_tells_last: false,
        shared_bytes: 0,
        alpha_ppm: 1_000_000,
    };

    /// The DSCP of trimmed frames; 0: they are dropped.
    //= docs/specs/switch.md#SW-21 two DSCPs of trimmed frames
    const fn trim_dscp(&self, is_last: bool) -> u8 {
        match (self.trim, self.trim_tells_last && is_last) {
            (false, _) => 0,
            (true, false) => DSCP_TRIMMED,
            (true, true) => DSCP_TRIMMED_LAST,
        }
    }

    /// Returns a port's data limit, with `waiting` bytes there and `used` bytes in the switch.
    //= docs/specs/switch.md#SW-20 shared buffer
    pub fn limit_within(&self, used: u64, waiting: u64) -> u32 {
        let free = self.shared_bytes.saturating_sub(used);
        let share = u128::from(free) * u128::from(self.alpha_ppm) / 1_000_000;
        let most = u128::from(waiting.saturating_add(free)).min(share);
        most.min(u128::from(self.limit_bytes)) as u32
    }
}

/// An egress port of a chassis, whose link has timed changes.
pub type PortConfig = PortSettings<{ MAX_CHANGES + 1 }>;

/// An egress port with `STATES` link states. What most frames need comes first.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSettings<const STATES: usize> {
    /// Propagation delay of the cable.
    pub latency_ps: u64,
    /// Limit of queued data in bytes.
    pub limit: u32,
    /// Limit of queued control frames in bytes.
    pub control_limit: u32,
    /// RED's lower threshold, bytes.
    pub mark_min: u32,
    /// A slot lasts `1 << slot_shift` picoseconds.
    pub slot_shift: u16,
    /// 1 = frames are marked at departure, not by [`PortConfig::transmit`].
    pub mark_departing: u8,
    /// 1 = frames are counted in the port's bins.
    pub counts: u8,
    /// The state from time 0, then the timed changes.
    pub states: [PortState; STATES],
    /// `2^48 * p / (mark_max - mark_min)`, for a `p` of 1 a multiple of 2^16: probability per byte.
    pub mark_slope: u64,
    /// RED's upper threshold, bytes.
    pub mark_max: u64,
    /// Switch at the far end when it is of this chassis, else [`HOST`] or [`OUTSIDE`].
    pub next: u32,
    /// The DSCP of frames that are trimmed instead of dropped; 0 = they are dropped.
    pub trim: u32,
}

impl<const STATES: usize> PortSettings<STATES> {
    /// Creates a port. `frame_bytes` is the size of a full frame: a slot holds about three.
    pub fn new(rate_bps: u64, latency_ps: u64, thresholds: &Thresholds, next: u32, frame_bytes: u32) -> Self {
        let span = thresholds.mark_max_bytes.saturating_sub(thresholds.mark_min_bytes).max(2);
        let probability = u64::from(thresholds.mark_ppm.min(1_000_000));
        let mut port = Self {
            latency_ps,
            limit: thresholds.limit_bytes.min(MAX_LIMIT_BYTES),
            control_limit: thresholds.control_limit_bytes.min(MAX_LIMIT_BYTES),
            mark_min: thresholds.mark_min_bytes,
            slot_shift: slot_shift(rate_bps, frame_bytes),
            mark_departing: thresholds.mark_departing.into(),
            counts: 0,
            states: [PortState::never(); STATES],
            mark_slope: ((((1 << 32) / u64::from(span)) * probability) << 12) / (1_000_000 >> 4),
            mark_max: thresholds.mark_max_bytes.into(),
            next,
            trim: thresholds.trim_dscp(next == HOST).into(),
        };
        port.set(rate_bps, &LinkChange { at_ps: 0, state: LinkState::UP });
        port
    }

    /// Replaces the first state, for callers that apply changes at their time.
    pub fn set(&mut self, rate_bps: u64, change: &LinkChange) {
        self.states[0] = PortState::new(rate_bps, self.slot_shift, change);
    }
}

impl PortConfig {
    /// Appends a timed change; returns false when the table is full.
    pub fn push(&mut self, rate_bps: u64, change: &LinkChange) -> bool {
        let state = PortState::new(rate_bps, self.slot_shift, change);
        let free = self.states[1..].iter_mut().find(|entry| entry.at_ps == NEVER);
        free.map(|entry| *entry = state).is_some()
    }

    /// Appends `change` and drops those planned after it, for a link that changes at run time.
    pub fn amend(&mut self, rate_bps: u64, change: &LinkChange) {
        let state = PortState::new(rate_bps, self.slot_shift, change);
        let past = self.states.iter().take_while(|entry| entry.at_ps < state.at_ps).count();
        let mut states = [PortState::never(); MAX_CHANGES + 1];
        if let Some(present) = past.checked_sub(1) {
            // Keeps its start, which flapping counts from.
            states[0] = self.states[present];
        }
        states[past.min(1)] = state;
        self.states = states;
    }
}

/// Slot length as a power of two of picoseconds: the nearest by ratio to three full frames.
//= docs/specs/virtual-queue.md#VQ-1 slots
fn slot_shift(rate_bps: u64, frame_bytes: u32) -> u16 {
    let wanted = 3 * u128::from(frame_bytes.clamp(64, 65_536)) * PS_PER_BYTE_AT_1_BPS / u128::from(rate_bps.max(1));
    // Compares with 2^(n + 1/2).
    let floor = 127 - wanted.max(1).leading_zeros();
    let upper = wanted * wanted > (1u128 << (2 * floor + 1));
    (floor + u32::from(upper)) as u16
}
