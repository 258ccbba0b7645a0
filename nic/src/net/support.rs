//! Whether an interface can be taken over: one rule for `Host::open` and `spray doctor`.

use super::drivers::{max_rx_packet, mtu_limit, one_buffer_mtu};
use super::ethtool::Ethtool;
use super::limitation::Limitation;
use super::xdp_features::XdpFeatures;
use super::{Interface, NetError};

/// Whether an interface can be taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// Yes.
    Full,
    /// Yes, by the kernel's slow path.
    Slow(Limitation),
    /// No.
    None(Limitation),
}

/// The longest packet in a frame of a page, less the kernel's headroom and the Ethernet header.
const PAGE_LIMIT: u32 = 4096 - 256 - 14;
/// Kinds of interfaces that aggregate others.
const SPREAD: [&str; 2] = ["bond", "team"];
/// Kinds of interfaces on top of another. Programs on them run behind the kernel's frame handling.
const ON_ANOTHER: [&str; 7] = ["vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "macsec", "vxlan"];

impl Interface {
    /// Returns whether it can be taken over. `all` are the interfaces of its network namespace, or
    /// empty if their names are irrelevant.
    pub fn support(&self, all: &[Self]) -> Support {
        let none =
            |is: &str, why, instead: &str| Support::None(Limitation { is: is.into(), why, instead: instead.into() });
        let kind = self.kind.as_deref().unwrap_or_default();
        let above = all.iter().find(|other| Some(other.index) == self.master);
        let of = above.and_then(|above| above.kind.as_deref()).filter(|kind| SPREAD.contains(kind));
        match (kind, above.zip(of)) {
            _ if self.is_loopback() => none("the loopback", "it sends no frames to a network", NIC_INSTEAD),
            ("dummy", _) => none("a dummy", "it drops all frames that it sends", NIC_INSTEAD),
            _ if !self.is_ethernet => {
                let kind = if kind.is_empty() { String::new() } else { format!(" ({kind})") };
                let is = format!("an interface without Ethernet{kind}");
                none(&is, "its packets have no Ethernet addresses", NIC_INSTEAD)
            }
            (kind, _) if SPREAD.contains(&kind) => Support::None(self.spread(kind, all)),
            (_, Some((above, kind))) => Support::None(part(self, above, kind)),
            ("bridge", _) => Support::Slow(slow(kind, "the member port that leads to all peers", self.members(all))),
            (kind, _) if ON_ANOTHER.contains(&kind) => Support::Slow(slow(
                kind,
                "the NIC below it, if it reaches the peers",
                all.iter().filter(|other| Some(other.index) == self.lower),
            )),
            _ => Support::Full,
        }
    }

    /// Returns the longest packet that it sends and receives: its MTU, or a limit of its driver or of
    /// a frame's buffer. Sockets do not receive frames of several buffers.
    pub fn longest_packet(&self) -> u32 {
        let driver = self.driver().unwrap_or_default();
        let may_split = XdpFeatures::query(self.index).map_or(true, |declared| declared.fragments());
        let buffer = if may_split { one_buffer_mtu(&driver) } else { PAGE_LIMIT };
        self.mtu.min(max_rx_packet(&driver).unwrap_or(u32::MAX)).min(buffer)
    }

    /// Returns driver and MTU limit of native XDP, if known and below the interface's MTU.
    pub fn exceeded_xdp_mtu(&self) -> Option<(String, u32)> {
        let driver = self.driver()?;
        mtu_limit(&driver).filter(|limit| *limit < self.mtu).map(|limit| (driver, limit))
    }

    fn driver(&self) -> Option<String> {
        Ethtool::open(&self.name).and_then(|nic| nic.driver()).ok().map(|driver| driver.name)
    }

    /// Checks that its kind can be taken over.
    ///
    /// # Errors
    /// What it is, why that cannot be taken over, and an alternative.
    pub fn check_kind(&self) -> Result<(), NetError> {
        match self.support(&Self::all()?) {
            Support::None(limitation) => Err(NetError::Unsuitable { interface: self.name.clone(), limitation }),
            _ => Ok(()),
        }
    }

    /// Returns whether it is on top of `lower`, where its frames have another format.
    pub(super) fn is_on(&self, lower: &Self) -> bool {
        self.lower == Some(lower.index) && self.kind.as_deref().is_some_and(|kind| ON_ANOTHER.contains(&kind))
    }

    fn is_loopback(&self) -> bool {
        self.index == 1 && self.name == "lo"
    }

    fn spread(&self, kind: &str, all: &[Self]) -> Limitation {
        let first = self.members(all).next();
        let member = first.map_or("MEMBER", |member| member.name.as_str());
        Limitation {
            is: format!("a {kind}"),
            why: "frames are received on its members, not on it",
            instead: format!("remove a member and use that and its address (`ip link set {member} nomaster`)"),
        }
    }
}

const NIC_INSTEAD: &str = "use a NIC: `ip link` lists all interfaces";

fn part(member: &Interface, above: &Interface, kind: &str) -> Limitation {
    Limitation {
        is: format!("a part of {} ({kind})", above.name),
        why: "its peers' frames arrive on any member, and the addresses are not its own",
        instead: format!("remove it and give it an address (`ip link set {} nomaster`)", member.name),
    }
}

fn slow<'a>(kind: &str, which: &str, others: impl Iterator<Item = &'a Interface>) -> Limitation {
    let names: Vec<&str> = others.map(|other| other.name.as_str()).collect();
    let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    Limitation {
        is: format!("a {kind}"),
        why: "it has no native XDP, so frames take the kernel's slow path",
        instead: format!("use {which}{names}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_kind(index: u32, name: &str, kind: &str) -> Interface {
        let kind = Some(kind.to_string()).filter(|kind| !kind.is_empty());
        Interface { index, name: name.into(), kind, is_ethernet: true, ..Interface::default() }
    }

    /// Without the kernel, which may not support bonds.
    #[test]
    fn every_kind_is_usable_or_names_an_alternative() {
        let nic = Interface { master: Some(9), ..of_kind(2, "eth0", "") };
        let verdict = |interface: &Interface, all: &[Interface]| match interface.support(all) {
            Support::Full => "good".to_string(),
            Support::Slow(limit) => format!("slow: {}: {}", limit.is, limit.instead),
            Support::None(limit) => format!("none: {}: {}", limit.is, limit.instead),
        };
        for kind in ["", "veth", "tun"] {
            assert_eq!(verdict(&of_kind(2, "eth0", kind), &[]), "good", "{kind}");
        }
        for kind in ["bond", "team"] {
            let all = [nic.clone(), of_kind(9, "up0", kind)];
            assert!(
                verdict(&all[1], &all).starts_with(&format!("none: a {kind}: remove a member")),
                "{}",
                verdict(&all[1], &all)
            );
            assert!(verdict(&all[1], &all).contains("`ip link set eth0 nomaster`"));
            assert!(verdict(&all[0], &all).starts_with(&format!("none: a part of up0 ({kind}): remove it")));
        }
        let all = [nic.clone(), of_kind(9, "br0", "bridge")];
        assert_eq!(verdict(&all[0], &all), "good");
        assert!(
            verdict(&all[1], &all).starts_with("slow: a bridge: use the member port")
                && verdict(&all[1], &all).contains("(eth0)")
        );
        for kind in ON_ANOTHER {
            let above = Interface { lower: Some(2), ..of_kind(5, "x", kind) };
            assert!(
                verdict(&above, &all).ends_with("(eth0)")
                    && verdict(&above, &all).starts_with(&format!("slow: a {kind}"))
            );
            assert!(above.is_on(&nic) && !nic.is_on(&above));
        }
        for (interface, is) in [
            (of_kind(1, "lo", ""), "the loopback"),
            (of_kind(3, "d", "dummy"), "a dummy"),
            (Interface { is_ethernet: false, ..of_kind(3, "t", "tun") }, "an interface without Ethernet (tun)"),
            (Interface { is_ethernet: false, ..of_kind(3, "ib0", "") }, "an interface without Ethernet"),
        ] {
            assert_eq!(verdict(&interface, &[]), format!("none: {is}: {NIC_INSTEAD}"));
        }
    }
}
