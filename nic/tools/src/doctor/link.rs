//! The kind and state of an interface.

use spray_nic::net::Support;
use spray_nic::net::drivers::{mtu_limit, one_buffer_mtu};

use super::change::{Change, Setting};
use super::check::Check;
use super::subject::Subject;

pub(super) fn checks(subject: &Subject) -> Vec<Check> {
    if is_of_no_use(subject) {
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

/// Whether the interface cannot be used at all, so that it is neither changed nor probed.
pub(super) fn is_of_no_use(subject: &Subject) -> bool {
    matches!(subject.interface.support(&subject.all), Support::None(_))
}

fn kind(subject: &Subject) -> Check {
    match (subject.interface.support(&subject.all), subject.interface.kind.as_deref()) {
        (Support::None(limit), _) => {
            let udp = "or `--device udp` on all hosts";
            Check::fail("kind", format!("{}: {}", limit.is, limit.why), format!("{}, {udp}", limit.instead))
        }
        (Support::Slow(limit), _) => Check::warn("kind", format!("{}: {}", limit.is, limit.why), limit.instead),
        (Support::Full, Some(kind)) => Check::ok("kind", kind),
        (Support::Full, None) if subject.device_file("physfn/uevent").is_some() => {
            Check::ok("kind", "virtual function of a NIC (SR-IOV): the physical one decides what it may do")
        }
        (Support::Full, None) => Check::ok("kind", "NIC"),
    }
}

fn master(subject: &Subject) -> Check {
    if let Some(bridge) = &subject.interface.bridge {
        let (bridge, name) = (&bridge.name, subject.name());
        let found = format!("{bridge} (bridge), whose addresses and routes it has; peers have to be behind {name}");
        return Check::ok("part of", found);
    }
    let Some(master) = subject.master() else { return Check::ok("part of", "not a member of a bridge or bond") };
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
        (true, false) => {
            let remedy = "connect the cable, or set the other side up; `ip link` shows LOWER_UP then";
            Check::fail("link", "up, without a signal", remedy)
        }
        (true, true) => Check::ok("link", format!("up, {rate}, changed {} times", interface.carrier_changes)),
    }
}

fn addresses(subject: &Subject) -> Check {
    let station = subject.interface.l3_interface();
    let addresses: Vec<String> = station.addresses.iter().map(ToString::to_string).collect();
    match addresses.as_slice() {
        [] => Check::warn("addresses", "none", format!("`ip address add ADDRESS/BITS dev {}`", station.name)),
        some => Check::ok("addresses", some.join(", ")),
    }
}

const DEFAULT_MTU: u32 = 1500;

fn mtu(subject: &Subject) -> Check {
    let (mtu, driver) = (subject.interface.mtu, &subject.driver.name);
    let (known, limit) = (mtu_limit(driver), one_buffer_mtu(driver));
    // Both ends of a veth are on this machine. Between NICs, longer packets may not pass.
    let is_default = mtu == DEFAULT_MTU && driver == "veth";
    if mtu <= limit && !is_default {
        let found = known.map_or(format!("{mtu}; no limit of {driver} is known: the probe tells"), |known| {
            format!("{mtu}, of {known} at most with native XDP on {driver}")
        });
        return Check::ok("MTU", found);
    }
    if mtu > limit && subject.declared.is_some_and(|declared| declared.fragments()) {
        let found = format!("{mtu}: {driver} declares native XDP with frames of several buffers");
        let remark = format!("packets of spray have at most {limit}, and `spray switch` needs that MTU");
        return Check::ok("MTU", format!("{found}; {remark}"));
    }
    let change = Change { from: Setting::Mtu(mtu), to: Setting::Mtu(limit) };
    let remedy = format!("`ip link set {} mtu {limit}`, the same on the other side", subject.name());
    let check = if is_default {
        let found = format!("{mtu}, of {limit} with native XDP on {driver}: longer packets cost less a byte");
        Check::warn("MTU", found, remedy)
    } else {
        Check::warn("MTU", format!("{mtu}: {driver} takes native XDP up to {limit} (ebpf-docs)"), remedy)
    };
    check.mended_by([change])
}
