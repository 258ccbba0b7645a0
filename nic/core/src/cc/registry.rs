//! The registry of congestion controls: their names, and one type for all of them.

use alloc::boxed::Box;

use spray_wire::PullRequest;

use super::{
    AckInfo, CongestionControl, Dcqcn, Dctcp, Eqds, EqdsConfig, FixedRate, FixedWindow, LossCause, MSwift, Now, Nscc,
    NsccEqds, Path, Scheme, Time,
};
use crate::kinds::{Custom, UnknownName, forward, kinds};

kinds! {
    /// The congestion controls by name.
    CcKind, "congestion control";
    /// Any of the congestion controls, without a vtable except for those of other crates.
    // With an explicit tag: one hidden in a control's fields takes several instructions to read.
    #[repr(u8)]
    AnyCc or Box<dyn CongestionControl>;
    /// The settings of one congestion control.
    ControlConfig or CustomCc;
    /// The settings of every congestion control, under its name.
    CcSchemes;
    /// The DCTCP variant of the REPS paper (REPS §4.1), as MPRDMA's.
    Dctcp "dctcp" dctcp Dctcp;
    /// EQDS: the receiver grants credit; the first window needs none (REPS §4.5.3).
    Eqds "eqds" eqds Eqds;
    /// A constant rate, regardless of feedback: the ideal control.
    FixedRate "fixed-rate" fixed_rate FixedRate;
    /// A constant window.
    FixedWindow "fixed-window" fixed_window FixedWindow;
    /// Swift's delay-based window with the median of recent delays, as in OFAN (OFAN §8.3).
    MSwift "mswift" mswift MSwift;
    /// Ultra Ethernet's window control by delay and marks.
    Nscc "nscc" nscc Nscc;
    /// RoCE's rate control by marks, for Reunion's setting (Reunion §4).
    Dcqcn "dcqcn" dcqcn Dcqcn;
    pairs:
    /// NSCC and EQDS combined, as in Ultra Ethernet: window and credit must both permit a packet.
    NsccEqds "nscc-eqds" (nscc, eqds) NsccEqds;
}

/// The constructor of another crate's congestion control.
pub type CustomCc = Custom<MakeCc>;

/// Creates a congestion control for a new connection over a path.
pub type MakeCc = dyn Fn(&Path) -> Box<dyn CongestionControl> + Send + Sync;

impl AnyCc {
    /// Creates the configured congestion control.
    pub fn new(config: &ControlConfig, path: &Path) -> Self {
        make!(config, own => (own, path), (own.make)(path))
    }
}

impl ControlConfig {
    /// Returns the settings of one of `count` equal parts: its share of all bytes and rates.
    pub(crate) fn share(&self, count: u64) -> Self {
        map!(self, own, Of => <Of as Scheme>::share(own, count))
    }

    /// Returns how a receiving host grants credit: this connection's settings, or the defaults.
    pub fn eqds(&self) -> EqdsConfig {
        match self {
            Self::Eqds(own) | Self::NsccEqds((_, own)) => *own,
            _ => EqdsConfig::default(),
        }
    }
}

impl CongestionControl for AnyCc {
    forward! {
        #[inline(always)]
        fn on_ack(&mut self, now: Now<'_>, ack: &AckInfo);
        fn on_loss(&mut self, now: Now<'_>, bytes: u32, cause: LossCause);
        fn on_go_back(&mut self, bytes: u32);
        #[inline(always)]
        fn on_send(&mut self, now: Now<'_>, bytes: u32);
        fn window_bytes(&self, path: &Path) -> u64;
        fn on_start(&mut self, path: &Path);
        fn poll_send(&self, now: Now<'_>) -> Time;
        fn uses_credit(&self) -> bool;
        fn has_credit(&self) -> bool;
        fn on_queued(&mut self, path: &Path, bytes: u64, idle: bool);
        fn on_pull(&mut self, path: &Path, credit_bytes: u64) -> bool;
        fn poll_request(&mut self, path: &Path, again: bool) -> Option<PullRequest>;
    }
}
