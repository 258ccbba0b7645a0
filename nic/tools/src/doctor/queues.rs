//! Queues, rings, RSS and steering rules of the NIC.

use spray_nic::Ports;
use spray_nic::device::XskConfig;
use spray_nic::net::drivers;
use spray_nic::net::ethtool::{Channels, Feature, HashFields, RingSizes, Rule, UdpFlow};
use spray_nic::xdp::SteerProgram;

use super::change::{Change, Setting};
use super::check::Check;
use super::subject::Subject;

pub(super) fn checks(subject: &Subject) -> Vec<Check> {
    let (ethtool, name) = (&subject.ethtool, subject.name());
    let ours = XskConfig::new("", 0).fill_ring;
    let by_flow = |flow| match ethtool.hash_fields(flow) {
        Ok(fields) => hashing(flow, fields, subject.queues(), name),
        Err(_) => Check::ok(title(flow), "the driver does not report its RSS hash fields"),
    };
    let [v4, v6] = UdpFlow::ALL.map(by_flow);
    let rings = match ethtool.rings() {
        Ok(sizes) => rings(sizes, ours, name),
        Err(_) => Check::ok("rings", "the driver has none to set"),
    };
    let (ntuple, present) = (ethtool.feature(Feature::NTUPLE).ok().flatten(), ethtool.rules().unwrap_or_default());
    let rules = rules(ntuple, &subject.driver.name, &present, name);
    vec![queues(subject.channels, name), rings, v4, v6, rules]
}

fn queues(channels: Channels, name: &str) -> Check {
    let queues = channels.rx_queues().max(1);
    if queues > SteerProgram::QUEUES {
        let kind = if channels.combined > 0 { "combined" } else { "rx" };
        let remedy = format!("`ethtool -L {name} {kind} {}` or less", SteerProgram::QUEUES);
        return Check::fail("queues", format!("{queues}, and {} can be served", SteerProgram::QUEUES), remedy);
    }
    if channels.combined == 0 && channels.rx > channels.tx && channels.tx > 0 {
        let found =
            format!("{} receive and {} send: some sockets cannot send (firedancer#1427)", channels.rx, channels.tx);
        return Check::warn("queues", found, format!("`ethtool -L {name} rx N tx N`, as many of each"));
    }
    let most = channels.max[0].max(channels.max[3]).max(queues);
    let small = if queues > 8 { "; beyond 8, each socket has fewer frames" } else { "" };
    Check::ok("queues", format!("{queues} of {most} at most{small}"))
}

/// The rings of the NIC should be at least as long as our sockets' (`ours`), which grow with them.
fn rings(rings: RingSizes, ours: u32, name: &str) -> Check {
    let found = format!("rx {} tx {}, of {} and {} at most", rings.rx, rings.tx, rings.max_rx, rings.max_tx);
    let rx = rings.rx.max(ours.min(rings.max_rx));
    let tx = rings.tx.max(ours.min(rings.max_tx));
    let (from, to) = (Setting::Rings { rx: rings.rx, tx: rings.tx }, Setting::Rings { rx, tx });
    if from == to {
        return Check::ok("rings", found);
    }
    let remedy = format!("`ethtool -G {name} rx {rx} tx {tx}`");
    Check::warn("rings", format!("{found}; a burst overflows short ones"), remedy).mended_by([Change { from, to }])
}

fn hashing(flow: UdpFlow, fields: HashFields, queues: u32, name: &str) -> Check {
    let check = title(flow);
    if fields.has_ports() {
        return Check::ok(check, format!("by {fields}"));
    }
    if queues == 1 {
        return Check::ok(check, "nothing to spread: there is one queue");
    }
    let to = HashFields::ADDRESSES_AND_PORTS;
    let found =
        format!("by {fields}, without the ports: all packets between two hosts come to one queue (firedancer#5253)");
    let remedy = format!("`ethtool -N {name} rx-flow-hash {} {to}`", flow.name());
    let [from, to] = [fields, to].map(|fields| Setting::HashFields { flow, fields });
    Check::warn(check, found, remedy).mended_by([Change { from, to }])
}

const fn title(flow: UdpFlow) -> &'static str {
    match flow {
        UdpFlow::V4 => "RSS udp4",
        UdpFlow::V6 => "RSS udp6",
    }
}

/// `heeds` is whether rules are enabled, `None` if unsupported. Commands replace rules for our
/// ports.
fn rules(heeds: Option<bool>, driver: &str, there: &[Rule], name: &str) -> Check {
    let there = match there.iter().filter(|rule| Ports::DEFAULT.contain(rule.port)).count() {
        0 => String::new(),
        rules => format!("; {rules} are there for our ports, of another program or a killed command"),
    };
    match heeds {
        None => Check::ok("rules", "the driver has none: threads forward frames to each other"),
        Some(true) => {
            Check::ok("rules", format!("on: commands with several threads or --queue set and remove 64{there}"))
        }
        Some(false) if drivers::resets_link_for_rules(driver) => {
            let feature = |on| Setting::Feature { name: Feature::NTUPLE, on };
            let found =
                format!("off, and {driver} resets its link to enable them: threads forward frames to each other");
            Check::warn("rules", found, format!("`ethtool -K {name} ntuple on`"))
                .mended_by([Change { from: feature(false), to: feature(true) }])
        }
        Some(false) => {
            Check::ok("rules", format!("off: commands with several threads or --queue enable them meanwhile{there}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Status;
    use super::*;

    #[test]
    fn rules_are_reported_with_the_change_they_need() {
        let rule = |port| Rule::new([10, 0, 0, 1].into(), port, 0);
        let there = [rule(80), rule(61_440), rule(61_503)];
        let check = rules(Some(true), "ice", &there, "eth0");
        assert!(check.status == Status::Ok && check.found.contains("; 2 are there for our ports"), "{}", check.found);
        for (heeds, driver) in [(None, "igb"), (Some(false), "mlx5_core"), (Some(true), "ixgbe")] {
            let check = rules(heeds, driver, &[], "eth0");
            assert!(check.status == Status::Ok && check.changes.is_empty() && !check.found.contains("there for"));
        }
        let check = rules(Some(false), "ixgbe", &[], "eth0");
        assert_eq!(check.changes[0].to, Setting::Feature { name: "rx-ntuple-filter", on: true });
    }

    #[test]
    fn queues_without_socket_or_transmission_are_reported() {
        let channels = |rx, tx, combined| Channels { rx, tx, combined, max: [128, 128, 0, 128], ..Channels::default() };
        let check = queues(channels(0, 0, 96), "eth0");
        assert_eq!((check.status, check.remedy.as_str()), (Status::Fail, "`ethtool -L eth0 combined 64` or less"));
        assert_eq!(queues(channels(4, 2, 0), "eth0").status, Status::Warn);
        assert_eq!(queues(channels(4, 4, 0), "eth0").found, "4 of 128 at most");
        assert_eq!(queues(Channels::default(), "eth0").found, "1 of 1 at most");
    }

    #[test]
    fn rings_are_enlarged_to_at_least_ours() {
        let of = |rx, tx| rings(RingSizes { rx, tx, max_rx: 8192, max_tx: 1024 }, 2048, "eth0");
        let to = |check: &Check| check.changes.first().map(|change| change.to);
        assert_eq!(to(&of(512, 512)), Some(Setting::Rings { rx: 2048, tx: 1024 }));
        assert_eq!(to(&of(4096, 512)), Some(Setting::Rings { rx: 4096, tx: 1024 }));
        assert_eq!(of(512, 512).remedy, "`ethtool -G eth0 rx 2048 tx 1024`");
        assert_eq!((to(&of(4096, 1024)), to(&of(2048, 1024))), (None, None));
    }

    #[test]
    fn packets_are_spread_by_their_ports() {
        let of = |fields, queues| hashing(UdpFlow::V6, HashFields(fields), queues, "eth0");
        let check = of(0x30, 4);
        assert_eq!((check.status, check.remedy.as_str()), (Status::Warn, "`ethtool -N eth0 rx-flow-hash udp6 sdfn`"));
        let settings = [0x30, 0xf0].map(|fields| Setting::HashFields { flow: UdpFlow::V6, fields: HashFields(fields) });
        assert_eq!([check.changes[0].from, check.changes[0].to], settings);
        assert_eq!((of(0x30, 1).status, of(0xf0, 4).status), (Status::Ok, Status::Ok));
    }
}
