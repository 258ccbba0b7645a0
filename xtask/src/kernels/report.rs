//! What a virtual machine's console says, as a row of a table.

use std::fmt;

use super::script::{DOCTOR, RUN, ZERO_COPY};
use crate::vm::initrd::END;

/// One kernel.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// As `uname -r` says it.
    pub release: String,
    /// Programs with the instructions that the verifier followed; empty when one is refused.
    programs: Vec<(String, u64)>,
    /// The verifier's words on a refused program.
    refused: Vec<String>,
    /// Runs whose payload was verified, and all.
    verified: (usize, usize),
    /// The run's command succeeded.
    succeeded: bool,
    /// How `spray send --zero-copy` ended, by its exit code: 2 where the driver has no zero-copy.
    zero_copy: Option<u8>,
}

impl Row {
    /// Reads the lines between the marks of the script.
    pub fn read(release: &str, console: &[String]) -> Self {
        let part = |from: &'static str, to: &'static str| {
            let lines = console.iter().map(String::as_str).skip_while(move |line| !line.contains(from)).skip(1);
            lines.take_while(move |line| !line.contains(to))
        };
        let mut row = Self { release: release.into(), ..Self::default() };
        let mut lines = part(DOCTOR, RUN).skip_while(|line| !line.contains("XDP programs"));
        let first = lines.next().unwrap_or_default();
        if first.starts_with("ok") {
            row.programs = figures(first);
        } else {
            row.refused.push(first.trim().into());
            row.refused.extend(lines.take_while(|line| line.starts_with(' ')).map(|line| line.trim().into()));
        }
        let last = |line: &&str| line.split_whitespace().last().map(String::from).unwrap_or_default();
        // The rows of the table of results: each ends with how the payload fared. Sentences about them have no columns.
        let table = part(RUN, ZERO_COPY).skip_while(|line| !line.starts_with("---")).skip(1);
        let fates: Vec<String> = table.take_while(|line| line.contains("  ")).map(|line| last(&line)).collect();
        row.verified = (fates.iter().filter(|fate| *fate == "verified").count(), fates.len());
        row.succeeded = part(RUN, ZERO_COPY).any(|line| line == "exit 0");
        row.zero_copy = part(ZERO_COPY, END).find_map(|line| line.strip_prefix("exit ")?.parse().ok());
        row
    }

    /// Whether every program loads, every run's payload was verified, and a file arrives where the driver has zero-copy.
    pub fn is_good(&self) -> bool {
        let (verified, runs) = self.verified;
        let zero_copy = matches!(self.zero_copy, Some(0 | 2));
        !self.programs.is_empty() && self.succeeded && runs > 0 && verified == runs && zero_copy
    }

    fn zero_copy(&self) -> &'static str {
        match self.zero_copy {
            Some(0) => "verified",
            Some(2) => "refused",
            Some(_) => "failed",
            None => "nothing ran",
        }
    }

    fn fate(&self) -> String {
        match self.verified {
            (_, 0) if !self.refused.is_empty() => "refused".into(),
            (_, 0) => "nothing ran".into(),
            (verified, runs) => format!("verified in {verified} of {runs} runs"),
        }
    }
}

/// `[("steer", 64), ("switch", 8244)]` of `... instructions verified of 1000000: steer 64, switch 8244`.
fn figures(line: &str) -> Vec<(String, u64)> {
    let list = line.rsplit(": ").next().unwrap_or_default();
    let pairs = list.split(", ").filter_map(|pair| pair.trim().split_once(' '));
    pairs.filter_map(|(name, number)| Some((name.into(), number.parse().ok()?))).collect()
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let programs: Vec<String> = self.programs.iter().map(|(name, number)| format!("{name} {number}")).collect();
        write!(f, "{}: {}; {}; zero-copy {}", self.release, programs.join(", "), self.fate(), self.zero_copy())?;
        self.refused.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

/// The names of the columns, in the doctor's order.
const PROGRAMS: [&str; 6] = ["steer", "host", "switch", "deployed", "bench_switch", "bench_redirect"];

/// The page of all rows.
pub fn document(rows: &[Row]) -> String {
    let mut text = String::from(
        "# Kernels\n\n\
         Written by `cargo xtask kernels`. Each of Debian's kernels boots in QEMU, emulated in software on two cores, \
         loads every XDP program and\n\
         runs `spray demo --bytes 4000000`: three conditions, three balancers, eight hosts. The figures are instructions that the\n\
         kernel's verifier follows for each program. It refuses a program at a million. Kernels before 5.12 refuse\n\
         pointers as parameters of functions. *zero-copy*: `spray send --zero-copy` from one virtio NIC to another, refused where the\n\
         driver has none.\n\n\
         | kernel | steer | host | switch | deployed | bench_switch | bench_redirect | demo | zero-copy |\n|---|--:|--:|--:|--:|--:|--:|---|---|\n",
    );
    for row in rows {
        let figure = |name: &str| {
            let found = row.programs.iter().find(|(program, _)| program == name);
            found.map_or_else(|| "-".into(), |(_, number)| grouped(*number))
        };
        let figures = PROGRAMS.map(figure).join(" | ");
        text += &format!("| {} | {figures} | {} | {} |\n", row.release, row.fate(), row.zero_copy());
    }
    for row in rows.iter().filter(|row| !row.refused.is_empty()) {
        text += &format!("\n`spray doctor` on {}:\n```text\n{}\n```\n", row.release, row.refused.join("\n"));
    }
    text
}

/// `8,244` of 8244.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Row, document};

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(String::from).collect()
    }

    #[test]
    fn a_kernel_that_takes_all() {
        let console = "noise\n@@ doctor\nok    kernel          6.1\n\
            ok    XDP programs    the kernel takes all, instructions verified of 1000000: steer 64, switch 8244\n@@ run\n\
            condition  payload\n---------  -------\nhealthy    verified\nslow       verified\np99 of 8 flows rests on the slowest\n\nresults /tmp\nexit 0\n\
            @@ zero-copy\nspray: no\nexit 2\n@@ end";
        let row = Row::read("6.1.0-56", &lines(console));
        assert!(row.is_good(), "{row:?}");
        assert_eq!(row.to_string(), "6.1.0-56: steer 64, switch 8244; verified in 2 of 2 runs; zero-copy refused");
        assert!(
            document(&[row]).contains("| 6.1.0-56 | 64 | - | 8,244 | - | - | - | verified in 2 of 2 runs | refused |")
        );
        let failed = console.replace("exit 2", "exit 1");
        assert!(!Row::read("6.1.0-56", &lines(&failed)).is_good(), "it has zero-copy, and no file arrives");
    }

    #[test]
    fn a_refused_program_a_failed_run_and_a_damaged_payload_are_told() {
        let refused = "@@ doctor\nfail  XDP programs    `switch`: refused\n                      too large\n\
            ok    AF_XDP\n@@ run\nexit 2\n@@ end";
        let row = Row::read("7.2", &lines(refused));
        assert!(!row.is_good());
        assert_eq!(
            row.to_string(),
            "7.2: ; refused; zero-copy nothing ran\n  fail  XDP programs    `switch`: refused\n  too large"
        );
        let damaged = "@@ doctor\nok  XDP programs  all: steer 64\n@@ run\n---\nhealthy  verified\nslow  DAMAGED\n\nexit 1\n@@ end";
        assert!(!Row::read("7.2", &lines(damaged)).is_good());
        assert!(!Row::read("7.2", &[]).is_good());
    }
}
