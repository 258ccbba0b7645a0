//! Out-of-order handling at both ends, chosen by name.

use super::{GoBackNConfig, IrnConfig};
use crate::settings::settings;

settings! {
    /// Out-of-order handling, and the signal of a gap to the sender.
    #[derive(Default)]
    pub enum ReceiverKind {
        /// Stored; a gap is a loss by `sack_gap_packets` and `sack_rule`: for many paths.
        #[default]
        Selective,
        /// Dropped; the sender retransmits all from the gap, as RoCE NICs do (`go-back-n.md`).
        GoBackN,
        /// Stored; begins a recovery that retransmits what is missing (`irn.md`).
        Irn,
    }
}

/// The settings of all receivers that have any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Receivers {
    /// Stores nothing out of order, as RoCE NICs.
    #[serde(rename = "go-back-n")]
    pub go_back_n: GoBackNConfig,
    /// Retransmits what is missing, once in each recovery, as IRN.
    pub irn: IrnConfig,
}

/// A receiver and its settings.
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
    /// Selects its settings from those of all receivers.
    pub fn config(self, all: &Receivers) -> ReceiverConfig {
        match self {
            Self::Selective => ReceiverConfig::Selective,
            Self::GoBackN => ReceiverConfig::GoBackN(all.go_back_n),
            Self::Irn => ReceiverConfig::Irn(all.irn),
        }
    }
}

impl From<ReceiverKind> for ReceiverConfig {
    fn from(kind: ReceiverKind) -> Self {
        kind.config(&Receivers::default())
    }
}
