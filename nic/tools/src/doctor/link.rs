//! What the interface is, what it is part of, and whether it is ready.

use spray_nic::net::Interface;
use spray_nic::net::drivers::mtu_limit;

use super::change::{Change, Setting};
use super::check::Check;
use super::subject::Subject;

pub(super) fn checks(subject: &Subject) -> Vec<Check> {
    if is_of_no_use(&subject.interface) {
        return vec![names(subject), kind(subject)];
    }
    vec![names(subject), kind(subject), master(subject), state(subject), addresses(subject), mtu(subject)]
}

fn names(subject: &Subject) -> Check {
    let (asked, name) = (&subject.asked, subject.name());
    if asked != name {
        return Check::ok("name", format!("{asked} is another name of {name}, which all below goes by"));
    }
    match subject.interface.altnames.as_slice() {
        [] => Check::ok("name", name),
        others => Check::ok("name", format!("{name}, also {}", others.join(", "))),
    }
}

/// Kinds of interfaces made of others, and of those on top of another one.
const OF_MEMBERS: [&str; 3] = ["bond", "team", "bridge"];
const ON_ANOTHER: [&str; 7] = ["vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "macsec", "vxlan"];

/// Whether the interface is none to use at all, so that nothing of it is changed or probed: its frames are those of other interfaces, on
/// which a program has to be, or it has none.
pub(super) fn is_of_no_use(interface: &Interface) -> bool {
    is_loopback(interface)
        || interface.kind.as_deref().is_some_and(|kind| OF_MEMBERS.contains(&kind) || ON_ANOTHER.contains(&kind))
}

fn is_loopback(interface: &Interface) -> bool {
    interface.index == 1 && interface.name == "lo"
}

fn kind(subject: &Subject) -> Check {
    match subject.interface.kind.as_deref() {
        None if is_loopback(&subject.interface) => {
            Check::fail("kind", "loopback: no frames, and no native XDP", "give a NIC; `ip link` lists all interfaces")
        }
        Some(kind) if OF_MEMBERS.contains(&kind) => instead(kind, subject.interface.members(&subject.all)),
        Some(kind) if ON_ANOTHER.contains(&kind) => instead(kind, subject.lower().into_iter()),
        Some(kind) => Check::ok("kind", kind),
        None if subject.device_file("physfn/uevent").is_some() => {
            Check::ok("kind", "virtual function of a NIC (SR-IOV): the physical one decides what it may do")
        }
        None => Check::ok("kind", "NIC"),
    }
}

fn instead<'a>(kind: &str, others: impl Iterator<Item = &'a Interface>) -> Check {
    let names: Vec<&str> = others.map(|other| other.name.as_str()).collect();
    let remedy = match names.as_slice() {
        [] => "give the NIC below it: `ip -d link` tells which that is".into(),
        [name] => format!("give {name} instead"),
        names => format!("give one of {} instead", names.join(", ")),
    };
    let found = format!("{kind}: it has no native XDP of its own (cilium#30072, #32699, firedancer#7138)");
    Check::fail("kind", found, remedy)
}

fn master(subject: &Subject) -> Check {
    let Some(master) = subject.master() else { return Check::ok("part of", "nothing") };
    let (name, kind) = (subject.name(), master.kind.as_deref().unwrap_or("interface"));
    Check::warn(
        "part of",
        format!("{} ({kind}): what spray takes does not reach that, and the addresses are there", master.name),
        format!("`ip link set {name} nomaster`, or give spray the address by --from"),
    )
}

fn state(subject: &Subject) -> Check {
    let (interface, name) = (&subject.interface, subject.name());
    let rate = interface.link_bps.map_or("rate unknown".into(), |bps| format!("{} Gb/s", bps as f64 / 1e9));
    match (interface.up, interface.carrier) {
        (false, _) => Check::fail("link", "down", format!("`ip link set {name} up`")),
        (true, false) => Check::fail(
            "link",
            "up, without a signal",
            "put the cable in, or set the other side up; `ip link` shows LOWER_UP then",
        ),
        (true, true) => Check::ok("link", format!("up, {rate}, changed {} times", interface.carrier_changes)),
    }
}

fn addresses(subject: &Subject) -> Check {
    let addresses: Vec<String> = subject.interface.addresses.iter().map(ToString::to_string).collect();
    match addresses.as_slice() {
        [] => Check::warn("addresses", "none", format!("`ip address add ADDRESS/BITS dev {}`", subject.name())),
        some => Check::ok("addresses", some.join(", ")),
    }
}

/// What a frame of ours holds: a page without the kernel's head room and the Ethernet header.
const PAGE_LIMIT: u32 = 4096 - 256 - 14;

fn mtu(subject: &Subject) -> Check {
    let (mtu, driver) = (subject.interface.mtu, &subject.driver.name);
    let known = mtu_limit(driver);
    let limit = known.unwrap_or(PAGE_LIMIT).min(PAGE_LIMIT);
    if mtu <= limit {
        let found = known.map_or(format!("{mtu}; no limit of {driver} is known: the probe tells"), |known| {
            format!("{mtu}, of {known} at most with native XDP on {driver}")
        });
        return Check::ok("MTU", found);
    }
    let change = Change { from: Setting::Mtu(mtu), to: Setting::Mtu(limit) };
    let remedy = format!("`ip link set {} mtu {limit}`, the same on the other side", subject.name());
    let check = if mtu > PAGE_LIMIT {
        Check::fail("MTU", format!("{mtu}, and a frame of a page holds {PAGE_LIMIT}"), remedy)
    } else {
        Check::warn("MTU", format!("{mtu}: {driver} takes native XDP up to {limit} (ebpf-docs)"), remedy)
    };
    check.mended_by([change])
}

#[cfg(test)]
mod tests {
    use super::super::check::Status;
    use super::*;

    fn named(name: &str) -> Interface {
        let mut interface = Interface::default();
        interface.name = name.into();
        interface
    }

    /// No kernel at hand may have bonds.
    #[test]
    fn what_is_of_no_use_names_them() {
        let (one, two) = (named("eth0"), named("eth1"));
        let check = instead("bond", [&one, &two].into_iter());
        assert_eq!((check.status, check.remedy.as_str()), (Status::Fail, "give one of eth0, eth1 instead"));
        assert_eq!(instead("vlan", [&one].into_iter()).remedy, "give eth0 instead");
        assert!(instead("vlan", [].into_iter()).remedy.contains("ip -d link"));
        for (kind, expected) in [(Some("bond"), true), (Some("macvlan"), true), (Some("veth"), false), (None, false)] {
            let mut interface = named("x");
            interface.kind = kind.map(Into::into);
            assert_eq!(is_of_no_use(&interface), expected);
        }
    }
}
