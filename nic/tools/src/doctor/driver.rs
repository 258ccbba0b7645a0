//! The driver: what it supports, published experience, and known problems.

use spray_nic::net::drivers::{self, Environment, Maturity, Quirk, Severity};

use super::check::Check;
use super::subject::{Subject, text};

pub(super) fn checks(subject: &Subject) -> Vec<Check> {
    let mut checks = vec![driver(subject), declared(subject), native(subject), zero_copy(subject)];
    checks.extend(quirks(subject));
    checks
}

fn driver(subject: &Subject) -> Check {
    let driver = &subject.driver;
    if driver.name.is_empty() {
        return Check::warn("driver", "it does not tell its name", "the probe tells what it can do");
    }
    let part = |what: &str, value: &str| if value.is_empty() { String::new() } else { format!(", {what}{value}") };
    let (version, firmware) = (part("version ", &driver.version), part("firmware ", &driver.firmware));
    Check::ok("driver", format!("{}{version}{firmware}{}", driver.name, part("at ", &driver.bus)))
}

fn declared(subject: &Subject) -> Check {
    const SLOW: &str = "give an interface whose driver has native XDP: frames take the kernel's slow generic path here";
    match subject.declared {
        None => Check::ok("declares", "nothing: kernels before 6.3 do not ask drivers; the probe tells"),
        Some(declared) if !declared.native() => Check::warn("declares", "no native XDP", SLOW),
        Some(declared) if !declared.redirect() => {
            Check::warn("declares", format!("{}, but no redirect to sockets", declared.names().join(", ")), SLOW)
        }
        Some(declared) => Check::ok("declares", declared.names().join(", ")),
    }
}

fn native(subject: &Subject) -> Check {
    trust("native XDP", drivers::native(&subject.driver.name, subject.kernel), "another kernel or NIC")
}

fn zero_copy(subject: &Subject) -> Check {
    match subject.declared {
        Some(declared) if !declared.zero_copy() => {
            Check::ok("zero-copy", "the driver declares none: the kernel copies")
        }
        _ => {
            let experience = drivers::zero_copy(&subject.driver.name, subject.kernel);
            trust("zero-copy", experience, "give --copy, or another kernel")
        }
    }
}

fn trust(id: &'static str, trust: Maturity, remedy: &str) -> Check {
    match trust {
        Maturity::Proven => Check::ok(id, "others trust it with this driver and kernel"),
        Maturity::Unknown => Check::ok(id, "no published experience with this driver and kernel; see the probe below"),
        Maturity::Broken { why, source } => Check::warn(id, format!("{why} ({source})"), remedy),
    }
}

/// The version of a driver that is not part of the kernel.
fn out_of_tree(subject: &Subject) -> Option<&str> {
    let is_foreign = text(format!("/sys/module/{}/taint", subject.driver.name))?.contains('O');
    is_foreign.then_some(subject.driver.version.as_str())
}

fn quirks(subject: &Subject) -> Vec<Check> {
    let flags = subject.ethtool.private_flags().unwrap_or_default();
    let system = Environment {
        driver: &subject.driver.name,
        kernel: subject.kernel,
        out_of_tree: out_of_tree(subject),
        is_virtual_function: subject.device_file("physfn/uevent").is_some(),
        in_bond: subject.master().is_some_and(|master| master.kind.as_deref() == Some("bond")),
        has_irdma: std::path::Path::new("/sys/module/irdma").exists(),
        has_mpwqe: flags.iter().any(|(name, on)| name == "xdp_tx_mpwqe" && *on),
        cpus: std::thread::available_parallelism().map_or(1, usize::from) as u32,
        channels: subject.channels,
    };
    drivers::quirks(&system).map(|quirk| quirk_check(quirk, subject.name())).collect()
}

fn quirk_check(quirk: &Quirk, interface: &str) -> Check {
    let (found, remedy) = (format!("{} ({})", quirk.what, quirk.source), quirk.remedy.replace("IF", interface));
    match quirk.severity {
        Severity::Note => Check { remedy, ..Check::ok("known", found) },
        Severity::Warning => Check::warn("known", found, remedy),
        Severity::Failure => Check::fail("known", found, remedy),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Status;
    use super::*;

    #[test]
    fn quirks_name_the_interface_and_the_source() {
        let system = Environment { driver: "ice", has_irdma: true, kernel: (6, 12), ..Environment::default() };
        let checks: Vec<_> = drivers::quirks(&system).map(|quirk| quirk_check(quirk, "eth7")).collect();
        assert_eq!((checks.len(), checks[0].status), (1, Status::Warn));
        assert!(checks[0].found.ends_with("(firedancer#11071)"), "{}", checks[0].found);
        assert_eq!(checks[0].remedy, "`rmmod irdma` before `ethtool -L eth7`");
    }

    #[test]
    fn known_defects_are_warnings_with_their_source() {
        let check = trust("zero-copy", drivers::zero_copy("ena", (6, 12)), "give --copy");
        assert!(check.status == Status::Warn && check.found.contains("amzn-drivers#330"), "{}", check.found);
        assert_eq!(trust("zero-copy", Maturity::Unknown, "").status, Status::Ok);
    }
}
