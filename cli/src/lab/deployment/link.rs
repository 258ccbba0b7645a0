//! `spray link`: the links of a deployed fabric, and changes of their state.

use std::str::FromStr;

use serde_json::json;
use spray_experiments::testbed::Order;
use spray_fabric::LinkState;
use spray_tools::failure::Outcome;
use spray_tools::say;

use super::ask::{Answer, Question, Row, ask, meant, strange};
use crate::lab::args;

/// Lists links, and changes them first if that is asked for.
///
/// # Errors
/// 2 when nothing is up, or for names that mean no link.
pub fn link(arguments: &args::Link) -> Outcome {
    let name = meant(arguments.name.as_deref())?;
    let question = match &arguments.links {
        Some(links) if !arguments.changes.is_empty() => {
            Question::Change(links.clone(), arguments.changes.iter().map(|change| change.text()).collect())
        }
        links => Question::Links(links.clone()),
    };
    let rows = match ask(&name, &question)? {
        Answer::Links(rows) => rows,
        other => return Err(strange(&other)),
    };
    table(rows.iter());
    say::object(&json!({ "name": name, "links": rows }))
}

/// Says what links are and have carried.
pub(super) fn table<'a>(rows: impl Iterator<Item = &'a Row>) {
    say!("{HEAD}");
    rows.for_each(|row| say!("{}", line(row)));
}

const HEAD: &str = "link                  Mb/s  state             frames         MB  longest queue    marks  drops";

fn line(row: &Row) -> String {
    let drops: Vec<_> =
        row.drops().iter().filter(|(_, count)| *count > 0).map(|(cause, count)| format!("{count} {cause}")).collect();
    let trims = if row.trims > 0 { format!("; {} trimmed", row.trims) } else { String::new() };
    format!(
        "{:<18} {:>7}  {:<14} {:>9} {:>10.1} {:>11.1} kB {:>8}  {}{trims}",
        row.link,
        row.mbps,
        row.state,
        row.frames,
        row.bytes as f64 / 1e6,
        row.queue_max_bytes as f64 / 1e3,
        row.marks,
        if drops.is_empty() { "0".into() } else { drops.join(", ") },
    )
}

/// A link's state, as the changes that lead to it.
pub(super) fn state(state: &LinkState) -> String {
    let mut words = Vec::new();
    if !state.up {
        words.push(Change(Order::Down).text());
    }
    if state.silent_drop {
        words.push(Change(Order::Silent).text());
    }
    if state.rate_ppm != 1_000_000 {
        words.push(Change(Order::Rate(state.rate_ppm)).text());
    }
    if state.loss_ppm > 0 {
        words.push(Change(Order::Loss(state.loss_ppm)).text());
    }
    if words.is_empty() { Change(Order::Up).text() } else { words.join(",") }
}

/// A change of links, as on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change(pub Order);

impl Change {
    /// As it is read.
    pub fn text(self) -> String {
        let percent = |ppm: u32| f64::from(ppm) / 1e4;
        match self.0 {
            Order::Up => "up".into(),
            Order::Down => "down".into(),
            Order::Silent => "silent".into(),
            Order::Rate(ppm) => format!("rate={}%", percent(ppm)),
            Order::Loss(ppm) => format!("loss={}%", percent(ppm)),
        }
    }
}

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}`; allowed: up, down, silent, rate=SHARE and loss=SHARE, as in rate=25% or loss=0.01");
        let order = match text.split_once('=') {
            None => match text {
                "up" => Order::Up,
                "down" => Order::Down,
                "silent" => Order::Silent,
                _ => return Err(wrong()),
            },
            Some(("rate", share)) => Order::Rate(ppm(share).filter(|ppm| *ppm > 0).ok_or_else(wrong)?),
            Some(("loss", share)) => Order::Loss(ppm(share).ok_or_else(wrong)?),
            Some(_) => return Err(wrong()),
        };
        Ok(Self(order))
    }
}

/// A share, as in `25%` or `0.25`, in millionths.
fn ppm(text: &str) -> Option<u32> {
    let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share = number.parse::<f64>().ok()? / whole;
    (0.0..=1.0).contains(&share).then(|| (share * 1e6).round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_as_they_are_said() {
        for (text, order) in [
            ("up", Order::Up),
            ("down", Order::Down),
            ("silent", Order::Silent),
            ("rate=25%", Order::Rate(250_000)),
            ("rate=0.5", Order::Rate(500_000)),
            ("rate=1", Order::Rate(1_000_000)),
            ("loss=0", Order::Loss(0)),
            ("loss=0.01%", Order::Loss(100)),
        ] {
            let change: Change = text.parse().unwrap();
            assert_eq!(change, Change(order), "{text}");
            assert_eq!(change.text().parse(), Ok(change), "{text}");
        }
        for wrong in ["", "dwn", "rate", "rate=0", "rate=200%", "loss=-1", "loss=x%", "loss=nan", "up=1"] {
            assert!(wrong.parse::<Change>().unwrap_err().contains("allowed: "), "{wrong}");
        }
    }

    #[test]
    fn states_are_said_as_they_are_asked_for() {
        let slow = LinkState { rate_ppm: 250_000, loss_ppm: 10_000, ..LinkState::UP };
        let dead = LinkState { up: false, silent_drop: true, ..LinkState::UP };
        assert_eq!(
            [LinkState::UP, slow, dead].map(|state| super::state(&state)),
            ["up", "rate=25%,loss=1%", "down,silent"]
        );
    }
}
