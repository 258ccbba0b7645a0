//! Makes Flowcut's figures 8 to 14, or those that the command line names, and puts them into a document in place of those that it has:
//! `cargo xtask results`.

use std::process::ExitCode;

use spray_experiments::switch_comparison::flowcut::{FIGURES, Figure, HEADING, Row, markdown};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next() else {
        eprintln!("usage: flowcut_figures FILE.md [FIGURE]...");
        return ExitCode::from(2);
    };
    let wanted: Vec<String> = arguments.collect();
    let is_wanted = |figure: &&Figure| wanted.is_empty() || wanted.contains(&figure.number.to_string());
    let mut figures = Vec::new();
    for figure in FIGURES.iter().filter(is_wanted) {
        let written = run(figure).and_then(|rows| {
            figures.push((*figure, rows));
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            std::fs::write(&file, in_place(&text, &markdown(&figures))).map_err(|error| format!("{file}: {error}"))
        });
        if let Err(error) = written {
            eprintln!("{error}");
            return ExitCode::from(1);
        }
    }
    ExitCode::SUCCESS
}

fn run(figure: &Figure) -> Result<Vec<Row>, String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let rows = figure.run(threads)?;
    let wall_s: f64 = rows.iter().flat_map(|row| &row.runs).map(|run| run.wall_s).sum();
    eprintln!("figure {:2} {:50} {wall_s:.0} s of simulation in the rows", figure.number, figure.title);
    Ok(rows)
}

/// `text` with `section` in place of the one with the same heading, or at its end.
fn in_place(text: &str, section: &str) -> String {
    let begin = text.find(HEADING).unwrap_or(text.len());
    let rest = text.get(begin + HEADING.len()..).unwrap_or_default();
    let end = rest.find("\n## ").map_or("", |end| &rest[end..]);
    let before = text[..begin].trim_end();
    let gap = if before.is_empty() { "" } else { "\n\n" };
    format!("{before}{gap}{}\n{end}", section.trim_end())
}
