//! The list of congestion controls: their names, and one type that is any of them.

use spray_wire::PullRequest;

use super::{
    CcConfigOf, CongestionControl, Dcqcn, Dctcp, DctcpConfig, Eqds, EqdsConfig, FixedRate, FixedWindow, MSwift, Nscc,
    Scheme, bdp_bytes,
};
use crate::feedback::{AckInfo, LossCause};
use crate::kinds::{UnknownName, forward, kinds};

kinds! {
    /// Names the congestion controls.
    CcKind, "congestion control";
    /// Any of the congestion controls, dispatched without allocation or vtable.
    // A tag of its own: one hidden in a control's fields would take several instructions to read at every call.
    #[repr(u8)]
    AnyCc;
    /// The settings of one congestion control.
    ControlConfig;
    /// The settings of every congestion control, under its name.
    CcSchemes;
    /// The DCTCP variant of the REPS paper (REPS §4.1), as MPRDMA's.
    Dctcp "dctcp" dctcp Dctcp;
    /// EQDS: the receiver grants credit; the first window goes without it (REPS §4.5.3).
    Eqds "eqds" eqds Eqds;
    /// A constant rate, whatever the network says: the ideal control.
    FixedRate "fixed-rate" fixed_rate FixedRate;
    /// A window that never moves.
    FixedWindow "fixed-window" fixed_window FixedWindow;
    /// Swift's delay-based window with the median of recent delays, as the OFAN paper runs it (OFAN §8.3).
    MSwift "mswift" mswift MSwift;
    /// Ultra Ethernet's window control by delay and marks.
    Nscc "nscc" nscc Nscc;
    /// RoCE's rate control by marks, for Reunion's setting (Reunion §4).
    Dcqcn "dcqcn" dcqcn Dcqcn;
}

impl AnyCc {
    /// Makes the configured congestion control.
    pub fn new(config: &CcConfig) -> Self {
        make!(&config.control, own => (own, config))
    }

    /// Takes from `fresh`, a control of the same kind, what its settings make of the path; see [`Scheme::adopt`].
    pub fn adopt(&mut self, fresh: Self, starting: bool) {
        pair!((self, fresh), known, fresh => known.adopt(fresh, starting));
    }
}

/// How one connection controls congestion: by one of these.
pub type CcConfig = CcConfigOf<ControlConfig>;

impl CcConfig {
    /// The reference settings for a path: DCTCP with a window of at most 1.5 bandwidth-delay products (BDP). The
    /// first window is that, rounded up to whole packets.
    ///
    /// At 8.337 us and 400 Gb/s with 4,150-byte packets: BDP 416,850, largest 625,275, initial 151 x 4,150 = 626,650.
    //= docs/specs/dctcp.md#DCTCP-6 the first window
    pub const fn for_path(base_rtt_ps: u64, link_bps: u64, packet_bytes: u32) -> Self {
        let bdp_bytes = bdp_bytes(base_rtt_ps, link_bps);
        let max_window_bytes = bdp_bytes.saturating_add(bdp_bytes / 2);
        let packet = if packet_bytes == 0 { 1 } else { packet_bytes as u64 };
        Self {
            control: ControlConfig::Dctcp(DctcpConfig { marked_by_trigger: false }),
            packet_bytes,
            base_rtt_ps,
            link_bps,
            initial_window_bytes: max_window_bytes.div_ceil(packet).saturating_mul(packet),
            max_window_bytes,
            catch_up_packets: 0,
        }
    }

    /// The settings of one of `count` equal parts of the connection: its share of all windows and rates.
    pub fn share(&self, count: u16) -> Self {
        let count = u64::from(count.max(1));
        let part = |value: u64| (value / count).max(1);
        Self {
            link_bps: part(self.link_bps),
            initial_window_bytes: part(self.initial_window_bytes),
            max_window_bytes: if self.max_window_bytes == u64::MAX { u64::MAX } else { part(self.max_window_bytes) },
            control: self.control.share(count),
            ..*self
        }
    }
}

impl ControlConfig {
    /// The settings of one of `count` equal parts of a connection: that share of all bytes and rates.
    fn share(&self, count: u64) -> Self {
        map!(self, own, Of => <Of as Scheme>::share(own, count))
    }

    /// How a receiving host grants credit to this connection: by its settings if they are those of EQDS, else by the
    /// defaults.
    pub fn eqds(&self) -> EqdsConfig {
        if let Self::Eqds(own) = self { *own } else { EqdsConfig::default() }
    }
}

impl CongestionControl for AnyCc {
    forward! {
        #[inline(always)]
        fn on_ack(&mut self, now_ps: u64, ack: &AckInfo);
        fn on_loss(&mut self, now_ps: u64, bytes: u32, cause: LossCause);
        fn on_gone_back(&mut self, bytes: u32);
        #[inline(always)]
        fn on_send(&mut self, now_ps: u64, bytes: u32);
        #[inline]
        fn window_bytes(&self) -> u64;
        #[inline]
        fn poll_send(&self, now_ps: u64) -> u64;
        #[inline]
        fn uses_credit(&self) -> bool;
        #[inline]
        fn has_credit(&self) -> bool;
        #[inline]
        fn on_queued(&mut self, bytes: u64, idle: bool);
        #[inline]
        fn on_pull(&mut self, credit_bytes: u64) -> bool;
        #[inline]
        fn poll_request(&mut self, again: bool) -> Option<PullRequest>;
    }
}
