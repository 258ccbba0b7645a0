//! Settings that `--fix` changes and `--undo` restores.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};
use spray_nic::net::ethtool::{Ethtool, HashFields, UdpFlow};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Setting {
    Mtu(u32),
    Feature { name: String, on: bool },
    Rings { rx: u32, tx: u32 },
    HashFields { flow: String, fields: u64 },
}

impl Setting {
    pub(super) fn hash_fields(flow: UdpFlow, fields: HashFields) -> Self {
        Self::HashFields { flow: flow.name().into(), fields: fields.0 }
    }

    pub(super) fn apply(&self, ethtool: &Ethtool) -> io::Result<()> {
        match self {
            Self::Mtu(mtu) => ethtool.set_mtu(*mtu),
            Self::Feature { name, on } => ethtool.set_feature(name, *on),
            Self::Rings { rx, tx } => ethtool.set_rings(*rx, *tx),
            Self::HashFields { flow, fields } => {
                let flow = UdpFlow::ALL.into_iter().find(|known| known.name() == flow);
                let flow = flow.ok_or_else(|| io::Error::other("neither udp4 nor udp6"))?;
                ethtool.set_hash_fields(flow, HashFields(*fields))
            }
        }
    }

    pub(super) fn is_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Feature { name, .. }, Self::Feature { name: other, .. }) => name == other,
            (Self::HashFields { flow, .. }, Self::HashFields { flow: other, .. }) => flow == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mtu(mtu) => write!(f, "mtu {mtu}"),
            Self::Feature { name, on } => write!(f, "{name} {}", if *on { "on" } else { "off" }),
            Self::Rings { rx, tx } => write!(f, "rings rx {rx} tx {tx}"),
            Self::HashFields { flow, fields } => write!(f, "rx-flow-hash {flow} {}", HashFields(*fields)),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) from: Setting,
    pub(super) to: Setting,
}

impl Change {
    pub(super) fn turn_off(name: &str) -> Self {
        let feature = |on| Setting::Feature { name: name.into(), on };
        Self { from: feature(true), to: feature(false) }
    }
}
