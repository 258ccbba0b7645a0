//! What becomes of packets out of order, at both ends: chosen by name.

use super::{GoBackNConfig, IrnConfig};
use crate::settings::settings;

settings! {
    /// What becomes of packets that arrive out of order, and what a gap tells the sender.
    #[derive(Default)]
    pub enum ReceiverKind {
        /// They are kept, and a gap is a loss by `sack_gap_packets` and `sack_rule`: for packets over many paths.
        #[default]
        Selective,
        /// They are dropped, and the sender sends everything from the gap on again, as RoCE NICs do (`go-back-n.md`).
        GoBackN,
        /// They are kept, and the first one begins a recovery in which the sender sends again what is missing (`irn.md`).
        Irn,
    }
}

/// The settings of all receivers that have any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Receivers {
    /// Keeps nothing that is out of order, as RoCE NICs.
    #[serde(rename = "go-back-n")]
    pub go_back_n: GoBackNConfig,
    /// Sends again what is missing, once in each recovery, as IRN.
    pub irn: IrnConfig,
}

/// One receiver and its settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiverConfig {
    /// [`ReceiverKind::Selective`].
    #[default]
    Selective,
    /// [`ReceiverKind::GoBackN`].
    GoBackN(GoBackNConfig),
    /// [`ReceiverKind::Irn`].
    Irn(IrnConfig),
}

impl ReceiverKind {
    /// Its settings out of those of all.
    pub fn config(self, all: &Receivers) -> ReceiverConfig {
        match self {
            Self::Selective => ReceiverConfig::Selective,
            Self::GoBackN => ReceiverConfig::GoBackN(all.go_back_n),
            Self::Irn => ReceiverConfig::Irn(all.irn),
        }
    }
}

impl From<ReceiverKind> for ReceiverConfig {
    /// The published settings.
    fn from(kind: ReceiverKind) -> Self {
        kind.config(&Receivers::default())
    }
}
