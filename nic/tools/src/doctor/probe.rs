//! Opens sockets on each queue in each mode, sends from them, and exchanges echoes with a peer.

use std::net::IpAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::SockRef;
use spray_nic::Ports;
use spray_nic::device::{BindMode, OpenError, XskConfig, XskDevice};
use spray_nic::net::Interface;
use spray_nic::net::drivers::{self, Kernel, Maturity};
use spray_nic::xdp::SteerProgram;

use super::check::Check;
use super::echo::{Echo, REQUESTS};
use super::link::is_of_no_use;
use super::subject::Subject;

/// Probes, unless that would disturb another program.
pub(super) fn checks(subject: &Subject, peer: Option<IpAddr>) -> Vec<Check> {
    let interface = &subject.interface;
    let why_not = match () {
        () if is_of_no_use(subject) => "the interface is not the one to use",
        () if !interface.up => "the interface is down",
        () if interface.xdp_program.is_some() => "another program is on the interface",
        () if subject.queues() > SteerProgram::QUEUES => "there are too many queues",
        () => return run(subject, peer),
    };
    vec![Check::warn("probe", format!("left out: {why_not}"), "mend what stands above, then run the doctor again")]
}

fn run(subject: &Subject, peer: Option<IpAddr>) -> Vec<Check> {
    let before = &subject.interface;
    // The number is limited; a probe works with any.
    let station = before.l3_interface();
    let addresses = &station.addresses[..station.addresses.len().min(SteerProgram::ADDRESSES)];
    let steer = match SteerProgram::load_on(before.index, station.mac, addresses, Ports::DEFAULT) {
        Ok(steer) => steer,
        Err(error) => return vec![Check::fail("attach", error.to_string(), "run as root; see also the lines above")],
    };
    let mut checks = vec![attach(steer.native_error(), subject)];
    wait_for_carrier(before);
    checks.extend(echoes(subject, peer));
    drop(steer);
    checks.push(resets(before));
    checks
}

fn attach(refusal: Option<&str>, subject: &Subject) -> Check {
    let also = if subject.driver.name == "veth" { " (of a veth, the other side's counts)" } else { "" };
    match refusal {
        None => Check::ok("attach", "native: the program runs in the driver"),
        Some(why) => {
            let remedy = format!("common reasons are a long MTU{also}, many queues and LRO: see above");
            Check::warn("attach", format!("generic (slow), since the driver refuses the program: {why}"), remedy)
        }
    }
}

/// Tries both modes on each queue, with echoes if there is a peer.
fn echoes(subject: &Subject, peer: Option<IpAddr>) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut unreachable =
        |error: String| checks.push(Check::fail("peer", error, "give the address of a host that answers `ping`"));
    let echo = peer.and_then(|peer| Echo::open(&subject.interface, peer).map_err(&mut unreachable).ok());
    for (check, mode) in [("copy", BindMode::Copy), ("zero-copy", BindMode::ZeroCopy)] {
        let attempt = |queue| (queue, try_queue(subject, queue, mode, echo.as_ref()));
        checks.push(match danger(&subject.driver.name, subject.kernel, mode) {
            Some(why) => Check::warn(check, format!("left out: {why}"), "give --copy to spray's commands"),
            None => summary(check, (0..subject.queues()).map(attempt).collect(), echo.is_some(), subject),
        });
    }
    checks
}

/// Why a mode is not tried: others lost the NIC or the machine by it.
fn danger(driver: &str, kernel: Kernel, mode: BindMode) -> Option<String> {
    match (mode, drivers::zero_copy(driver, kernel)) {
        (BindMode::ZeroCopy, Maturity::Broken { why, source }) => Some(format!("{why} ({source})")),
        _ => None,
    }
}

enum Trouble {
    NoMode,
    Failed(String),
}

/// Tries again without need-wakeup, which some drivers announce wrongly (bpf-examples#117).
fn try_queue(subject: &Subject, queue: u32, mode: BindMode, echo: Option<&Echo>) -> Result<(), Trouble> {
    let asked = XskConfig { mode, ..XskConfig::new(subject.name(), queue) };
    let mut device = open(&asked)?;
    // Some drivers bind a socket, but refuse to send (firedancer#273, #4266).
    match SockRef::from(&device.as_fd()).send_with_flags(&[], libc::MSG_DONTWAIT) {
        Err(error) if !matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS)) => {
            return Err(Trouble::Failed(format!("it binds, and does not send: {error}")));
        }
        _ => {}
    }
    let Some(echo) = echo else { return Ok(()) };
    echo.run(&mut device).map_err(|why| {
        drop(device);
        let awake = open(&XskConfig { need_wakeup: false, ..asked });
        let works = awake.is_ok_and(|mut device| echo.run(&mut device).is_ok());
        Trouble::Failed(if works { format!("{why}; all did without XDP_USE_NEED_WAKEUP") } else { why })
    })
}

fn open(config: &XskConfig) -> Result<XskDevice, Trouble> {
    XskDevice::open(config).map_err(|error| match error {
        OpenError::NoZeroCopy { .. } => Trouble::NoMode,
        error => Trouble::Failed(error.to_string()),
    })
}

fn summary(check: &'static str, outcomes: Vec<(u32, Result<(), Trouble>)>, echoed: bool, subject: &Subject) -> Check {
    let all = outcomes.len();
    if outcomes.iter().all(|(_, outcome)| matches!(outcome, Err(Trouble::NoMode))) {
        return no_mode(check, subject);
    }
    let failed = outcomes.into_iter().filter_map(|(queue, outcome)| match outcome {
        Ok(()) => None,
        Err(Trouble::NoMode) => Some(format!("queue {queue}: the driver has no {check} mode on it")),
        Err(Trouble::Failed(why)) => Some(format!("queue {queue}: {why}")),
    });
    let failed: Vec<String> = failed.collect();
    if failed.is_empty() {
        let answers = if echoed { format!(", {REQUESTS} echoes of each came back") } else { String::new() };
        return Check::ok(check, format!("{all} of {all} queues bind and send{answers}"));
    }
    match check {
        "copy" => Check::fail(check, failed.join("\n"), "every driver can do this: see the lines above for the reason"),
        _ => Check::warn(check, failed.join("\n"), "give --copy to spray's commands"),
    }
}

fn no_mode(check: &'static str, subject: &Subject) -> Check {
    match subject.declared {
        Some(declared) if declared.zero_copy() => {
            let remedy = "see MTU, queues and rings above, and `dmesg`; --copy does without";
            Check::warn(check, "the driver declares it, and refuses every queue", remedy)
        }
        _ => Check::ok(check, "the driver has none: the kernel copies"),
    }
}

/// Some drivers take the link down when a program is attached or a socket is bound.
fn resets(before: &Interface) -> Check {
    wait_for_carrier(before);
    let now = Interface::find(&before.name).map_or(before.carrier_changes, |now| now.carrier_changes);
    match now.saturating_sub(before.carrier_changes) {
        0 => Check::ok("link resets", "none while sockets came and went"),
        changes => {
            let found = format!("the link changed {changes} times meanwhile, losing frames (ipgen#46)");
            Check::warn("link resets", found, "start the receiver first, and enable portfast on the switch's port")
        }
    }
}

/// Waits up to ten seconds for the carrier, if it was there before.
pub(super) fn wait_for_carrier(before: &Interface) {
    let is_back = || !before.carrier || Interface::find(&before.name).is_ok_and(|now| now.carrier);
    for _ in 0..100 {
        if is_back() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Status;
    use super::*;

    #[test]
    fn probes_known_to_break_nics_are_skipped() {
        assert!(danger("ice", (6, 1), BindMode::ZeroCopy).is_some_and(|why| why.contains("ethernet-linux-ice#58")));
        assert_eq!(danger("ice", (6, 12), BindMode::ZeroCopy), None);
        assert_eq!(danger("ice", (6, 1), BindMode::Copy), None);
    }

    /// Tests use no driver with zero-copy.
    #[test]
    fn queues_that_differ_are_reported_separately() {
        let subject = Subject::find("lo").unwrap();
        let outcomes = || vec![(0, Ok(())), (1, Err(Trouble::Failed("it binds, and does not send".into())))];
        let copy = summary("copy", outcomes(), false, &subject);
        assert_eq!((copy.status, copy.found.as_str()), (Status::Fail, "queue 1: it binds, and does not send"));
        let zero = summary("zero-copy", vec![(0, Ok(())), (1, Err(Trouble::NoMode))], false, &subject);
        assert_eq!(
            (zero.status, zero.found.as_str()),
            (Status::Warn, "queue 1: the driver has no zero-copy mode on it")
        );
        let all = summary("zero-copy", vec![(0, Ok(())), (1, Ok(()))], true, &subject);
        assert_eq!(all.found, "2 of 2 queues bind and send, 16 echoes of each came back");
    }
}
