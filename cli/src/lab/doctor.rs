//! Checks that the laboratory adds to `spray doctor`.

use spray_experiments::switch::program::{Checked, VERIFIER_LIMIT, check_programs};
use spray_tools::doctor::Check;

/// Checks whether the kernel accepts every XDP program of this binary, and native XDP on a veth.
pub fn programs() -> [Check; 2] {
    [judge(&check_programs()), veth_xdp()]
}

const PROGRAMS: &str = "XDP programs";

fn judge(checked: &[Checked]) -> Check {
    let refused = checked.iter().find_map(|checked| Some((checked.program, checked.verified.as_ref().err()?)));
    if let Some((program, error)) = refused {
        let error = error.to_string();
        let (first, log) = error.split_once('\n').unwrap_or((&error, ""));
        return match last_lines(log) {
            log if !log.is_empty() => Check::fail(
                PROGRAMS,
                format!("`{program}`: {first}\n{log}"),
                "the verifier log ends as above: report it with the output of `uname -r`",
            ),
            _ => Check::fail(
                PROGRAMS,
                format!("`{program}`: {}", first.trim()),
                "run as root, on a kernel with CONFIG_BPF_SYSCALL=y",
            ),
        };
    }
    let figure = |checked: &Checked| format!("{} {}", checked.program, checked.verified.as_ref().unwrap_or(&0));
    let figures: Vec<String> = checked.iter().map(figure).collect();
    let figures = figures.join(", ");
    Check::ok(PROGRAMS, format!("the kernel accepts all; verified instructions, of {VERIFIER_LIMIT}: {figures}"))
}

/// Returns the end of the verifier log, which names the error, without the loader's lines.
fn last_lines(log: &str) -> String {
    const LINES: usize = 8;
    let is_the_loaders = |line: &str| line.starts_with("libbpf: ") || line.starts_with("-- ");
    let lines = log.lines().filter(|line| !line.trim().is_empty() && !is_the_loaders(line));
    let lines: Vec<&str> = lines.collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

fn veth_xdp() -> Check {
    match spray_benches::net::probe_veth_xdp() {
        Ok(true) => Check::ok("XDP on veth", "native, in temporary network namespaces"),
        Ok(false) => Check::warn(
            "XDP on veth",
            "generic mode only, which is slow",
            "use a kernel whose veth supports native XDP (4.19 or later)",
        ),
        Err(error) => Check::fail(
            "XDP on veth",
            first_line(&error),
            "run as root, on a kernel with CONFIG_VETH and CONFIG_NET_NS",
        ),
    }
}

pub fn leftovers() -> Check {
    match spray_experiments::switch::leftovers() {
        left if left.is_empty() => Check::ok("leftovers", "none"),
        left => Check::warn("leftovers", left.join(", "), "`spray clean` removes them; no live run uses them"),
    }
}

fn first_line(error: &impl ToString) -> String {
    error.to_string().lines().next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use spray_experiments::switch::program::ProgramError;
    use spray_tools::doctor::Status;

    use super::*;

    #[test]
    fn every_failed_check_has_a_remedy() {
        for check in programs().into_iter().chain([leftovers()]) {
            assert!(check.status == Status::Ok || !check.remedy.is_empty(), "{check:?}");
            assert!(!check.found.is_empty(), "{check:?}");
        }
    }

    #[test]
    fn a_rejected_program_is_shown_with_the_end_of_the_log() {
        let log: String = (0..20).map(|line| format!("line {line}\n\n")).collect();
        let log = log + "-- END PROG LOAD LOG --\nlibbpf: failed to load object\n";
        let refused = Checked { program: "switch", verified: Err(ProgramError::Fabric(format!("refused\n{log}"))) };
        let fine = |program| Checked { program, verified: Ok(64) };
        let check = judge(&[fine("steer"), refused]);
        assert_eq!(check.status, Status::Fail);
        assert!(check.found.starts_with("`switch`: ") && check.found.ends_with("line 18\nline 19"), "{}", check.found);
        assert_eq!(check.found.lines().count(), 9);
        // Without root the loader logs several lines, and the kernel none.
        let log = "libbpf: prog 'steer': BPF program load failed: -EPERM\n\n-- END PROG LOAD LOG --\n";
        let refused = Checked { program: "steer", verified: Err(ProgramError::Fabric(format!("refused\n{log}"))) };
        let check = judge(&[refused]);
        assert_eq!((check.found.lines().count(), check.remedy.contains("run as root")), (1, true), "{check:?}");
        assert!(!check.remedy.contains("last words"), "{check:?}");
        let check = judge(&[fine("steer"), fine("switch")]);
        assert_eq!(check.status, Status::Ok);
        assert!(check.found.ends_with("of 1000000: steer 64, switch 64"), "{}", check.found);
    }
}
