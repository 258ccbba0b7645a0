//! The queues of the NIC: how many, how long their rings are, and what spreads packets over them.

use spray_nic::device::XskConfig;
use spray_nic::net::ethtool::{HashFields, RingSizes, UdpFlow};
use spray_nic::xdp::SteerProgram;

use super::change::{Change, Setting};
use super::check::Check;
use super::subject::Subject;

pub(super) fn checks(subject: &Subject) -> Vec<Check> {
    let mut checks = vec![queues(subject), rings(subject)];
    checks.extend(UdpFlow::ALL.map(|flow| hashing(subject, flow)));
    checks.push(table(subject));
    checks
}

fn queues(subject: &Subject) -> Check {
    let (queues, channels, name) = (subject.queues(), subject.channels, subject.name());
    if queues > SteerProgram::QUEUES {
        let remedy = format!("`ethtool -L {name} combined {}` or less", SteerProgram::QUEUES);
        return Check::fail("queues", format!("{queues}, and {} can be served", SteerProgram::QUEUES), remedy);
    }
    if channels.combined == 0 && channels.rx > channels.tx && channels.tx > 0 {
        let found =
            format!("{} receive and {} send: some sockets cannot send (firedancer#1427)", channels.rx, channels.tx);
        return Check::warn("queues", found, format!("`ethtool -L {name} rx N tx N`, as many of each"));
    }
    let most = channels.most[0].max(channels.most[3]);
    let small = if queues > 8 { "; beyond 8, each socket has fewer frames" } else { "" };
    Check::ok("queues", format!("{queues} of {} at most{small}", most.max(queues)))
}

/// The rings of the NIC, beside those of our sockets. A longer one than ours loses buffers in some drivers (agave#6836).
fn rings(subject: &Subject) -> Check {
    let Ok(rings) = subject.ethtool.rings() else { return Check::ok("rings", "the driver has none to set") };
    let ours = XskConfig::new("", 0).fill_ring;
    let wanted = RingSizes { rx: ours.min(rings.most_rx), tx: ours.min(rings.most_tx), ..rings };
    let found = format!("rx {} tx {}, of {} and {} at most", rings.rx, rings.tx, rings.most_rx, rings.most_tx);
    let too_long = rings.rx > ours && subject.declared.is_some_and(|declared| declared.zero_copy());
    let too_short = rings.rx < wanted.rx || rings.tx < wanted.tx;
    if !too_long && !too_short {
        return Check::ok("rings", found);
    }
    let why = if too_long {
        format!("; sockets fill {ours}, and some drivers lose buffers where theirs are longer (agave#6836)")
    } else {
        "; a burst overflows short ones".into()
    };
    // What is long enough stays.
    let tx = rings.tx.max(wanted.tx);
    let rx = if too_long { ours } else { rings.rx.max(wanted.rx) };
    let change = Change { from: Setting::Rings { rx: rings.rx, tx: rings.tx }, to: Setting::Rings { rx, tx } };
    Check::warn("rings", found + &why, format!("`ethtool -G {} rx {rx} tx {tx}`", subject.name())).mended_by([change])
}

fn hashing(subject: &Subject, flow: UdpFlow) -> Check {
    let check = match flow {
        UdpFlow::V4 => "RSS udp4",
        UdpFlow::V6 => "RSS udp6",
    };
    let Ok(fields) = subject.ethtool.hash_fields(flow) else {
        return Check::ok(check, "the driver does not tell by what it spreads packets");
    };
    if fields.has_ports() || subject.queues() == 1 {
        return Check::ok(check, format!("by {fields}"));
    }
    let to = HashFields::ADDRESSES_AND_PORTS;
    let found =
        format!("by {fields}, without the ports: all packets between two hosts come to one queue (firedancer#5253)");
    let remedy = format!("`ethtool -N {} rx-flow-hash {} {to}`", subject.name(), flow.name());
    let [from, to] = [fields, to].map(|fields| Setting::hash_fields(flow, fields));
    Check::warn(check, found, remedy).mended_by([Change { from, to }])
}

fn table(subject: &Subject) -> Check {
    let Ok(table) = subject.ethtool.indirection() else { return Check::ok("RSS table", "the driver has none") };
    let mut used = table.queues.clone();
    used.sort_unstable();
    used.dedup();
    let function = if table.function & 1 == 1 { "Toeplitz" } else { "another hash than Toeplitz" };
    let entries = table.queues.len();
    Check::ok("RSS table", format!("{entries} entries for {} of {} queues, {function}", used.len(), subject.queues()))
}
