//! Settings that `--fix` changes.

use std::fmt;
use std::io;

use spray_nic::net::ethtool::{Ethtool, HashFields, UdpFlow};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    Mtu(u32),
    Feature { name: &'static str, on: bool },
    Rings { rx: u32, tx: u32 },
    HashFields { flow: UdpFlow, fields: HashFields },
}

impl Setting {
    pub(super) fn apply(&self, ethtool: &Ethtool) -> io::Result<()> {
        match self {
            Self::Mtu(mtu) => ethtool.set_mtu(*mtu),
            Self::Feature { name, on } => ethtool.set_feature(name, *on),
            Self::Rings { rx, tx } => ethtool.set_rings(*rx, *tx),
            Self::HashFields { flow, fields } => ethtool.set_hash_fields(*flow, *fields),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mtu(mtu) => write!(f, "mtu {mtu}"),
            Self::Feature { name, on } => write!(f, "{name} {}", if *on { "on" } else { "off" }),
            Self::Rings { rx, tx } => write!(f, "rings rx {rx} tx {tx}"),
            Self::HashFields { flow, fields } => write!(f, "rx-flow-hash {} {fields}", flow.name()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) from: Setting,
    pub(super) to: Setting,
}

impl Change {
    pub(super) fn turn_off(name: &'static str) -> Self {
        let feature = |on| Setting::Feature { name, on };
        Self { from: feature(true), to: feature(false) }
    }
}
