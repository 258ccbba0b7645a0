//! Splits wide tables into blocks with the leading text columns, and the others that fit.

use std::io::stdout;

use spray_tools::say::{output_options, print};
use terminal_size::{Width, terminal_size_of};

/// Prints text with tables; nothing with `--json`.
pub fn print_tables(text: &str) {
    if !output_options().json {
        print(to_terminal(text));
    }
}

fn to_terminal(text: &str) -> String {
    let width = terminal_size_of(stdout()).map(|(Width(columns), _)| usize::from(columns));
    width.filter(|width| *width > 0).map_or_else(|| text.into(), |width| to_width(text, width))
}

/// Splits tables to `width` characters. A line of dashes follows the header of a table.
fn to_width(text: &str, width: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let columns = lines.get(at + 1).map(|rule| columns(rule)).unwrap_or_default();
        let rows = lines[at..].iter().take_while(|line| is_row(line, &columns)).count();
        if columns.len() < 2 || lines[at..at + rows].iter().all(|line| line.chars().count() <= width) {
            out.push(lines[at].to_string());
            at += 1;
        } else {
            out.extend(blocks(&lines[at..at + rows], &columns, width));
            at += rows;
        }
    }
    out.join("\n")
}

/// Parses a line of dashes as begin and end of columns; empty for any other line.
fn columns(rule: &str) -> Vec<[usize; 2]> {
    if !rule.starts_with('-') || !rule.chars().all(|c| c == '-' || c == ' ') {
        return Vec::new();
    }
    let mut begin = 0;
    let column = |dashes: &str| {
        let own = [begin, begin + dashes.len()];
        begin = own[1] + 2;
        own
    };
    rule.split("  ").map(column).collect()
}

fn is_row(line: &str, columns: &[[usize; 2]]) -> bool {
    let chars: Vec<char> = line.chars().collect();
    let is_blank = |[_, end]: &[usize; 2]| chars.iter().skip(*end).take(2).all(|c| *c == ' ');
    let fits = columns.last().is_some_and(|[_, end]| chars.len() <= *end);
    fits && !line.trim().is_empty() && columns.iter().all(is_blank)
}

fn cell(line: &str, [begin, end]: [usize; 2]) -> String {
    let text: String = line.chars().skip(begin).take(end - begin).collect();
    format!("{text:<width$}", width = end - begin)
}

fn blocks(rows: &[&str], columns: &[[usize; 2]], width: usize) -> Vec<String> {
    let is_words = |column: &&[usize; 2]| rows.iter().all(|row| !cell(row, **column).starts_with(' '));
    let words = columns.iter().take(columns.len() - 1).take_while(is_words).count();
    let taken = |columns: &[[usize; 2]]| columns.iter().map(|[begin, end]| end - begin + 2).sum::<usize>();
    // Text columns that leave no room for others are not repeated.
    let words = (0..=words).rev().find(|words| taken(&columns[..*words]) <= width / 2).unwrap_or(0);
    let (first, mut rest) = columns.split_at(words);
    let mut out = Vec::new();
    while !rest.is_empty() {
        let fits = |count: &usize| taken(first) + taken(&rest[..*count]) <= width + 2;
        let count = (1..=rest.len()).rev().find(fits).unwrap_or(1);
        let (own, others) = rest.split_at(count);
        let line = |row: &&str| {
            let cells: Vec<String> = first.iter().chain(own).map(|column| cell(row, *column)).collect();
            cells.join("  ").trim_end().to_string()
        };
        out.extend(rows.iter().map(line));
        out.extend((!others.is_empty()).then(String::new));
        rest = others;
    }
    out
}

#[cfg(test)]
mod tests {
    use spray_experiments::results::align;

    use super::*;

    #[test]
    fn a_wide_table_is_split_into_blocks_that_repeat_its_labels() {
        let row = |name: &str, values: [&str; 3]| [name].into_iter().chain(values).map(String::from).collect();
        let rows = [row("ecmp", ["1,234,567", "-", "7"]), row("reps", ["8", "9.5", "10"])];
        let table = align(&["balancer", "mean us", "p99 us", "Gb/s"], 1, &rows);
        let text = format!("before\n{table}a note below it, which is longer than the terminal is wide\n");
        let shown = to_width(&text, 24);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines[..5],
            ["before", "balancer    mean us", "--------  ---------", "ecmp      1,234,567", "reps              8"]
        );
        assert_eq!(
            lines[5..10],
            [
                "",
                "balancer  p99 us  Gb/s",
                "--------  ------  ----",
                "ecmp           -     7",
                "reps         9.5    10"
            ]
        );
        assert_eq!(lines[10..], ["a note below it, which is longer than the terminal is wide"]);
        assert_eq!(to_width(&text, 100), text.trim_end(), "it fits");
        // A column that does not fit is nevertheless shown, once.
        assert_eq!(to_width(&text, 5).matches("1,234,567").count(), 1);
    }
}
