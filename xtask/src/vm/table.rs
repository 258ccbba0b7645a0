//! The console output of virtual machines as rows of a table.

use std::fmt;

/// The script's function without `step_`, and the heading.
pub type Column = (&'static str, &'static str);

#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Good(String),
    Bad(String),
    /// Not supported by the driver.
    None(String),
    /// The machine did not complete this step.
    Missing,
}

#[derive(Debug)]
pub struct Row {
    pub name: String,
    ends: Vec<(String, End)>,
}

impl Row {
    /// Reads the results of these steps from the console.
    pub fn read(name: &str, steps: &[&str], console: &[String]) -> Self {
        let end = |step: &&str| {
            let begin = format!("@@ begin {step} ");
            let lines = console.iter().skip_while(|line| !line.starts_with(&begin)).skip(1);
            let mut ends = lines.take_while(|line| !line.starts_with("@@ begin ")).filter_map(|line| End::read(line));
            (step.to_string(), ends.next().unwrap_or(End::Missing))
        };
        Self { name: name.into(), ends: steps.iter().map(end).collect() }
    }

    pub fn is_good(&self) -> bool {
        self.ends.iter().all(|(_, end)| matches!(end, End::Good(_) | End::None(_)))
    }
}

impl End {
    /// Parses a line such as `@@ good verified, native`.
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

    /// Returns the result without quoted output.
    fn short(&self) -> String {
        let all = self.to_string();
        all.split_once(QUOTED).map_or(all.as_str(), |(short, _)| short).to_string()
    }
}

/// Separates the result from quoted output.
const QUOTED: &str = ": `";

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Good(words) | Self::None(words) => f.write_str(words),
            Self::Bad(words) => write!(f, "**wrong**: {words}"),
            Self::Missing => f.write_str("**wrong**: not completed"),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.name)?;
        self.ends.iter().try_for_each(|(step, end)| write!(f, "\n  {step}: {end}"))
    }
}

pub fn table(of: &str, columns: &[Column], rows: &[Row]) -> String {
    let headings: Vec<&str> = columns.iter().map(|(_, heading)| *heading).collect();
    let mut text = format!("| {of} | {} |\n|---|{}\n", headings.join(" | "), "---|".repeat(columns.len()));
    for row in rows {
        let cells: Vec<String> = row.ends.iter().map(|(_, end)| end.short()).collect();
        text += &format!("| {} | {} |\n", row.name, cells.join(" | "));
    }
    text + &failures(rows)
}

fn failures(rows: &[Row]) -> String {
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
    format!("\nOutput of failed steps:\n```text\n{}\n```\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::{Row, table};

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
    fn a_step_that_fails_and_one_that_never_ends_are_reported() {
        let console = "@@ begin copy at 1\n@@ bad failed: `x`\n@@ begin mtu at 2\nkernel panic";
        let row = Row::read("igb", &["copy", "mtu", "second"], &lines(console));
        assert!(!row.is_good());
        assert_eq!(
            row.to_string(),
            "igb:\n  copy: **wrong**: failed: `x`\n  mtu: **wrong**: not completed\n  \
             second: **wrong**: not completed"
        );
    }

    #[test]
    fn the_output_of_a_command_is_below_the_table() {
        let console = "@@ begin doctor at 1\n@@ good 11 ok\n@@ begin copy at 1\n@@ bad failed: `spray: use `x``";
        let columns = [("doctor", "doctor"), ("copy", "copy")];
        let text = table("NIC", &columns, &[Row::read("igb", &["doctor", "copy"], &lines(console))]);
        assert!(text.contains("| igb | 11 ok | **wrong**: failed |"), "{text}");
        assert!(text.contains("\nigb, copy: spray: use `x`\n"), "{text}");
    }
}
