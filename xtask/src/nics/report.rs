//! What a virtual machine's console says, as a row of a table.

use std::fmt;

/// A column of the table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The script's function, without `step_`.
    pub step: &'static str,
    heading: &'static str,
    meaning: &'static str,
}

/// The columns, in the order in which the script takes their steps.
pub const COLUMNS: [Column; 13] = [
    column("doctor", "doctor", "`spray doctor`"),
    column(
        "first",
        "first contact",
        "a file of 100 kB to a receiver that has just come up, whose Ethernet address the kernel must ask for",
    ),
    column(
        "copy",
        "copy",
        "a file of 2 MB, with `--copy`; the receiver has compared its SHA-256. *native* or *generic* is how the program sits",
    ),
    column("zero_copy", "zero-copy", "the same with `--zero-copy`; *refused* where the driver has none"),
    column(
        "busy",
        "busy polling",
        "the same with `--busy-poll` at both ends, and how many frames the sender took by polling; interrupts must be as before. *refused* where nothing would be polled",
    ),
    column("perf", "perf", "goodput of `spray perf` over three seconds, of emulated processors"),
    column(
        "down_here",
        "sender's link down",
        "the sender's interface goes down for a second in mid-transfer; the file must arrive",
    ),
    column("down_there", "receiver's link down", "the same of the receiver's"),
    column("mtu", "MTU 3800", "too large for these drivers' native XDP; what a user is told of it"),
    column("second", "second process", "another `spray recv` on an interface that has one; the first must go on"),
    column(
        "switch",
        "switch",
        "the first NIC and a veth are ports of `spray switch`; files of 3 MB from the second NIC to a host behind the veth, and back, \
         over all links between the switches; then the NIC is as it was",
    ),
    column(
        "boxes",
        "boxes",
        "the NICs are the ends of a cable between two of three boxes, each with one switch of `spray switch --node`; files of 3 MB both ways between \
         hosts behind veth",
    ),
    column(
        "bare",
        "of bare frames",
        "our frames a second as a share of those of bare AF_XDP frames of the same length, on one queue of each NIC",
    ),
];

const fn column(step: &'static str, heading: &'static str, meaning: &'static str) -> Column {
    Column { step, heading, meaning }
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Good(String),
    Bad(String),
    /// The driver has no such thing.
    None(String),
    /// The machine did not come to the end of this step.
    Missing,
}

/// One kind of NIC.
#[derive(Debug)]
pub struct Row {
    name: String,
    /// Each step that was asked for.
    ends: Vec<(String, End)>,
}

impl Row {
    /// Reads what the script says of each of these steps.
    pub fn read(name: &str, steps: &[&str], console: &[String]) -> Self {
        let end = |step: &&str| {
            let begin = format!("@@ begin {step} ");
            let lines = console.iter().skip_while(|line| !line.starts_with(&begin)).skip(1);
            let mut ends = lines.take_while(|line| !line.starts_with("@@ begin ")).filter_map(|line| End::read(line));
            (step.to_string(), ends.next().unwrap_or(End::Missing))
        };
        Self { name: name.into(), ends: steps.iter().map(end).collect() }
    }

    /// Whether no step went wrong.
    pub fn is_good(&self) -> bool {
        self.ends.iter().all(|(_, end)| matches!(end, End::Good(_) | End::None(_)))
    }
}

impl End {
    /// Of `@@ good verified, native`.
    fn read(line: &str) -> Option<Self> {
        let (kind, words) = line.strip_prefix("@@ ")?.split_once(' ')?;
        let words = words.trim_end().to_string();
        match kind {
            "good" => Some(Self::Good(words)),
            "bad" => Some(Self::Bad(words)),
            "none" => Some(Self::None(words)),
            _ => None,
        }
    }
}

impl End {
    /// Without what a command said.
    fn short(&self) -> String {
        let all = self.to_string();
        all.split_once(QUOTED).map_or(all.as_str(), |(short, _)| short).to_string()
    }
}

/// Between the script's words and a command's.
const QUOTED: &str = ": `";

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Good(words) | Self::None(words) => f.write_str(words),
            Self::Bad(words) => write!(f, "**wrong**: {words}"),
            Self::Missing => f.write_str("**wrong**: it did not come to an end"),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.name)?;
        self.ends.iter().try_for_each(|(step, end)| write!(f, "\n  {step}: {end}"))
    }
}

/// The page of all rows.
pub fn document(rows: &[Row], release: &str) -> String {
    let headings = COLUMNS.map(|column| column.heading).join(" | ");
    let mut text = format!(
        "# Emulated NICs\n\n\
         Written by `cargo xtask nics`. Each row is a virtual machine with two NICs of a kind, whose driver is that of Linux\n\
         {release}; QEMU emulates them and two processors in software, and a bridge of TAP devices joins them. The second NIC is in\n\
         a namespace of its own. The numbers in the names are queues; `rss`: the device hashes. Rates compare only within a row,\n\
         and even there they scatter by half. A row is of the last run of its kind.\n\
         For *of bare frames* all queues but one are taken away where the driver can, and bare frames are copied on igb. virtio-net's four are\n\
         left out: it keeps three of them, and then Linux 6.18 itself crashes (in `virtnet_poll_tx` or `xp_alloc_batch`).\n\n\
         | NIC | {headings} |\n|---|{}\n",
        "---|".repeat(COLUMNS.len())
    );
    for row in rows {
        let cells: Vec<String> = row.ends.iter().map(|(_, end)| end.short()).collect();
        text += &format!("| {} | {} |\n", row.name, cells.join(" | "));
    }
    text += "\n| column | meaning |\n|---|---|\n";
    text.extend(COLUMNS.iter().map(|column| format!("| {} | {} |\n", column.heading, column.meaning)));
    text += &said(rows);
    text
}

/// The commands' own words on what went wrong.
fn said(rows: &[Row]) -> String {
    let all = rows.iter().flat_map(|row| row.ends.iter().map(move |(step, end)| (row, step, end)));
    let lines: Vec<String> = all
        .filter_map(|(row, step, end)| {
            let End::Bad(words) = end else { return None };
            let (_, words) = words.split_once(QUOTED)?;
            Some(format!("{}, {step}: {}", row.name, words.strip_suffix('`').unwrap_or(words)))
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("\nWhat was said where it went wrong:\n```text\n{}\n```\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, Row, document};

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(String::from).collect()
    }

    #[test]
    fn each_step_has_its_own_end() {
        let console = "noise\n@@ begin copy at 1\n  send: x\n@@ good verified, native\n@@ begin zero_copy at 2\n@@ none refused\n@@ end";
        let row = Row::read("igb", &["copy", "zero_copy"], &lines(console));
        assert!(row.is_good(), "{row:?}");
        assert_eq!(row.to_string(), "igb:\n  copy: verified, native\n  zero_copy: refused");
    }

    #[test]
    fn a_step_that_fails_and_one_that_never_ends_are_told() {
        let console = "@@ begin copy at 1\n@@ bad failed: `x`\n@@ begin mtu at 2\nkernel panic";
        let row = Row::read("igb", &["copy", "mtu", "second"], &lines(console));
        assert!(!row.is_good());
        assert_eq!(
            row.to_string(),
            "igb:\n  copy: **wrong**: failed: `x`\n  mtu: **wrong**: it did not come to an end\n  \
             second: **wrong**: it did not come to an end"
        );
    }

    #[test]
    fn the_script_has_a_function_for_every_column() {
        let script = include_str!("guest.sh");
        for column in COLUMNS {
            assert!(script.contains(&format!("\nstep_{}() {{", column.step)), "{}", column.step);
        }
    }

    #[test]
    fn a_commands_own_words_stand_below_the_table() {
        let console = "@@ begin doctor at 1\n@@ good 11 ok\n@@ begin copy at 1\n@@ bad failed: `spray: use `x``";
        let text = document(&[Row::read("igb", &["doctor", "copy"], &lines(console))], "6.18");
        assert!(text.contains("| igb | 11 ok | **wrong**: failed |"), "{text}");
        assert!(text.contains("\nigb, copy: spray: use `x`\n"), "{text}");
    }
}
