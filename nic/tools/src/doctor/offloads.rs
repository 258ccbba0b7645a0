//! Offloads that modify frames before the program.

use spray_nic::net::ethtool::Pause;

use super::change::Change;
use super::check::Check;
use super::subject::Subject;

pub(super) fn checks(subject: &Subject) -> Vec<Check> {
    let pause = match subject.ethtool.pause() {
        Ok(settings) => pause(settings, subject.name()),
        Err(_) => Check::ok("pause", "the driver has no pause frames"),
    };
    vec![merging(subject), generic_merging(subject), vlan(subject), pause]
}

/// Features that merge packets.
const MERGING: [&str; 4] = ["rx-lro", "rx-gro-hw", "rx-udp-gro-forwarding", "rx-gro-list"];

fn merging(subject: &Subject) -> Check {
    let on = subject.on(&MERGING);
    if on.is_empty() {
        return Check::ok("merging", format!("none of {} is on", MERGING.join(", ")));
    }
    let why = "packets are merged, or native XDP is refused (firedancer, ethtool-offloads.c; bcc#1833)";
    off("merging", subject, &on, why)
}

/// GRO comes after native XDP, and before generic XDP.
fn generic_merging(subject: &Subject) -> Check {
    let native = subject.declared.is_none_or(|declared| declared.native());
    match subject.on(&["rx-gro"]) {
        on if on.is_empty() => Check::ok("GRO", "off"),
        _ if native => Check::ok("GRO", "on, which comes after native XDP"),
        on => off("GRO", subject, &on, "without native XDP, packets are merged before the program sees them"),
    }
}

fn off(check: &'static str, subject: &Subject, on: &[&'static str], why: &str) -> Check {
    let found = format!("{} on: {why}", on.join(", "));
    Check::warn(check, found, turn_off(subject, on)).mended_by(on.iter().map(|name| Change::turn_off(name)))
}

fn turn_off(subject: &Subject, features: &[&str]) -> String {
    let arguments: Vec<String> = features.iter().map(|name| format!("{name} off")).collect();
    format!("`ethtool -K {} {}`", subject.name(), arguments.join(" "))
}

/// `--fix` leaves these, since they affect the interfaces of VLANs.
fn vlan(subject: &Subject) -> Check {
    let is_on_it = |other: &&spray_nic::net::Interface| {
        other.kind.as_deref() == Some("vlan") && other.lower == Some(subject.interface.index)
    };
    let vlans: Vec<&str> = subject.all.iter().filter(is_on_it).map(|vlan| vlan.name.as_str()).collect();
    let on: Vec<_> = ["rx-vlan-hw-parse", "rx-vlan-filter"].into_iter().filter(|name| subject.is_on(name)).collect();
    if vlans.is_empty() {
        return Check::ok("VLAN", "none on this interface");
    }
    let vlans = vlans.join(", ");
    if on.is_empty() {
        return Check::ok("VLAN", format!("{vlans} on it; tags stay in the frames, which go to the kernel"));
    }
    let found = format!("{vlans} on it, and {}: the program sees no tags, or no frames (p4c-xdp#38)", on.join(", "));
    Check::warn("VLAN", found, format!("{}, if peers are in a VLAN", turn_off(subject, &on)))
}

/// The operator decides whether the fabric is lossless.
fn pause(settings: Pause, name: &str) -> Check {
    if !settings.rx && !settings.tx {
        return Check::ok("pause", "off");
    }
    let remedy = format!("`ethtool -A {name} autoneg off rx off tx off`, unless the fabric is meant to be lossless");
    Check::warn("pause", "on: pause frames stop all traffic when one receiver is slow", remedy)
}

#[cfg(test)]
mod tests {
    use spray_nic::net::Interface;
    use spray_nic::net::ethtool::Feature;
    use spray_nic::net::xdp_features::XdpFeatures;

    use super::super::check::Status;
    use super::*;

    /// Returns the loopback interface with these features.
    fn with(names: &[&str]) -> Subject {
        let on = |name: &&str| Feature { name: (*name).into(), on: true, fixed: false };
        Subject { features: names.iter().map(on).collect(), ..Subject::find("lo").unwrap() }
    }

    #[test]
    fn all_packet_merging_is_turned_off() {
        let check = merging(&with(&["rx-lro", "rx-gro", "rx-gro-hw"]));
        assert_eq!((check.status, check.remedy.as_str()), (Status::Warn, "`ethtool -K lo rx-lro off rx-gro-hw off`"));
        assert_eq!(check.changes, ["rx-lro", "rx-gro-hw"].map(Change::turn_off));
        let mut subject = with(&["rx-gro"]);
        for (xdp, status) in [(0, Status::Warn), (1, Status::Ok)] {
            subject.declared = Some(XdpFeatures { xdp, ..XdpFeatures::default() });
            assert_eq!(generic_merging(&subject).status, status);
        }
    }

    #[test]
    fn vlan_offloads_matter_only_with_vlans() {
        let mut subject = with(&["rx-vlan-filter"]);
        assert_eq!(vlan(&subject).status, Status::Ok);
        let mut tagged = Interface::default();
        (tagged.name, tagged.kind, tagged.lower) = ("lo.5".into(), Some("vlan".into()), Some(1));
        subject.all.push(tagged);
        let check = vlan(&subject);
        assert!(check.status == Status::Warn && check.found.starts_with("lo.5 on it, and rx-vlan-filter"), "{check:?}");
        subject.features.clear();
        assert_eq!(vlan(&subject).status, Status::Ok);
    }

    #[test]
    fn pause_frames_are_reported_and_left_unchanged() {
        let check = pause(Pause { tx: true, ..Pause::default() }, "eth0");
        assert!(check.status == Status::Warn && check.changes.is_empty(), "{check:?}");
        assert_eq!(pause(Pause::default(), "eth0").status, Status::Ok);
    }
}
