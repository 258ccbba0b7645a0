//! Syntax of link changes on the command line.

use std::str::FromStr;

use spray_core::units::Ratio;
use spray_experiments::switch::{Impairment, LinkSetting};
use spray_fabric::{LinkState, MIN_RATE_PPM};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change(pub LinkSetting);

impl Change {
    /// Returns the text that parses to this change.
    pub fn text(self) -> String {
        let percent = |ppm: u32| f64::from(ppm) / 1e4;
        let time = |ns: u32| match ns {
            0 => "0".into(),
            1_000_000.. => format!("{}ms", f64::from(ns) / 1e6),
            _ => format!("{}us", f64::from(ns) / 1e3),
        };
        match self.0 {
            LinkSetting::Up => "up".into(),
            LinkSetting::Down => "down".into(),
            LinkSetting::Silent => "silent".into(),
            LinkSetting::Rate(ppm) => format!("rate={}%", percent(ppm)),
            LinkSetting::Loss(ppm) => format!("loss={}%", percent(ppm)),
            LinkSetting::Delay(ns) => format!("delay={}", time(ns)),
            LinkSetting::Jitter(ns) => format!("jitter={}", time(ns)),
            LinkSetting::Reorder(ppm) => format!("reorder={}%", percent(ppm)),
            LinkSetting::Corrupt(ppm) => format!("corrupt={}%", percent(ppm)),
            LinkSetting::Duplicate(ppm) => format!("duplicate={}%", percent(ppm)),
        }
    }
}

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let order = match (name, value) {
            ("up", None) => Some(LinkSetting::Up),
            ("down", None) => Some(LinkSetting::Down),
            ("silent", None) => Some(LinkSetting::Silent),
            ("rate", Some(share)) => ppm(share).filter(|ppm| *ppm >= MIN_RATE_PPM).map(LinkSetting::Rate),
            ("loss", Some(share)) => ppm(share).map(LinkSetting::Loss),
            ("delay", Some(time)) => ns(time).map(LinkSetting::Delay),
            ("jitter", Some(time)) => ns(time).map(LinkSetting::Jitter),
            ("reorder", Some(share)) => ppm(share).map(LinkSetting::Reorder),
            ("corrupt", Some(share)) => ppm(share).map(LinkSetting::Corrupt),
            ("duplicate", Some(share)) => ppm(share).map(LinkSetting::Duplicate),
            _ => None,
        };
        order.map(Self).ok_or_else(|| {
            format!(
                "`{text}`; allowed: up, down, silent, rate=SHARE, loss=SHARE, delay=TIME, jitter=TIME, reorder=SHARE, corrupt=SHARE and \
                duplicate=SHARE, as in rate=25%, loss=1% or delay=1.5ms: shares with a percent sign and at most four decimals, of a rate \
                at least 0.1%, and times in whole nanoseconds up to 1s"
            )
        })
    }
}

/// Returns the state of a link as the changes that produce it, separated by commas.
pub fn state(state: &LinkState, link: &Impairment) -> String {
    let ns = |ns: u64| u32::try_from(ns).unwrap_or(u32::MAX);
    let orders = [
        (!state.up, LinkSetting::Down),
        (state.silent_drop, LinkSetting::Silent),
        (state.rate_ppm != 1_000_000, LinkSetting::Rate(state.rate_ppm)),
        (state.loss_ppm > 0, LinkSetting::Loss(state.loss_ppm)),
        (link.delay_ns > 0, LinkSetting::Delay(ns(link.delay_ns))),
        (link.jitter_ns > 0, LinkSetting::Jitter(link.jitter_ns)),
        (link.reorder_ppm > 0, LinkSetting::Reorder(link.reorder_ppm)),
        (link.corrupt_ppm > 0, LinkSetting::Corrupt(link.corrupt_ppm)),
        (link.duplicate_ppm > 0, LinkSetting::Duplicate(link.duplicate_ppm)),
    ];
    let words: Vec<_> = orders.into_iter().filter(|(is, _)| *is).map(|(_, order)| Change(order).text()).collect();
    if words.is_empty() { Change(LinkSetting::Up).text() } else { words.join(",") }
}

/// Parses a share from `0%` to `100%`; returns millionths.
fn ppm(text: &str) -> Option<u32> {
    let ppm = text.parse::<Ratio>().ok()?.ppm();
    u32::try_from(ppm).ok().filter(|ppm| *ppm <= 1_000_000)
}

/// Parses a time of at most a second, as in `1.5ms`, `20us` or `0`; returns nanoseconds.
fn ns(text: &str) -> Option<u32> {
    let units = [("ms", 1e6), ("us", 1e3), ("ns", 1.0), ("s", 1e9)];
    let read = units.iter().find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, *ns)));
    let (number, ns) = read.or_else(|| (text == "0").then_some((text, 1.0)))?;
    let number = number.parse::<f64>().ok()?;
    let whole = (number * ns).round();
    (whole / ns == number && (0.0..=1e9).contains(&whole)).then_some(whole as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_parsed() {
        for (text, order) in [
            ("up", LinkSetting::Up),
            ("down", LinkSetting::Down),
            ("silent", LinkSetting::Silent),
            ("rate=25%", LinkSetting::Rate(250_000)),
            ("rate=100%", LinkSetting::Rate(1_000_000)),
            ("loss=0", LinkSetting::Loss(0)),
            ("loss=0.01%", LinkSetting::Loss(100)),
            ("delay=1.5ms", LinkSetting::Delay(1_500_000)),
            ("delay=1s", LinkSetting::Delay(1_000_000_000)),
            ("jitter=20us", LinkSetting::Jitter(20_000)),
            ("jitter=0", LinkSetting::Jitter(0)),
            ("reorder=1%", LinkSetting::Reorder(10_000)),
            ("corrupt=0.1%", LinkSetting::Corrupt(1_000)),
            ("duplicate=50%", LinkSetting::Duplicate(500_000)),
        ] {
            let change: Change = text.parse().unwrap();
            assert_eq!(change, Change(order), "{text}");
            assert_eq!(change.text().parse(), Ok(change), "{text}");
        }
        for wrong in [
            "",
            "dwn",
            "rate",
            "rate=0%",
            // A loss of 100 % or 1 %.
            "loss=1",
            "rate=0.5",
            "rate=200%",
            "loss=-1%",
            "loss=x%",
            "loss=nan%",
            "up=1",
            "delay=5",
            "delay=2s",
            "jitter=-1ms",
            "corrupt=200%",
            // These values would be rounded.
            "rate=0.05%",
            "loss=0.00001%",
            "delay=0.4ns",
            "jitter=1.0000004ms",
        ] {
            assert!(wrong.parse::<Change>().unwrap_err().contains("allowed: "), "{wrong}");
        }
    }

    #[test]
    fn states_are_printed_in_the_form_of_their_changes() {
        let slow = LinkState { rate_ppm: 250_000, loss_ppm: 10_000, ..LinkState::UP };
        let dead = LinkState { up: false, silent_drop: true, ..LinkState::UP };
        assert_eq!(
            [LinkState::UP, slow, dead].map(|state| super::state(&state, &Impairment::default())),
            ["up", "rate=25%,loss=1%", "down,silent"]
        );
        let link = Impairment {
            delay_ns: 2_000_000,
            jitter_ns: 1_500,
            reorder_ppm: 10_000,
            corrupt_ppm: 100,
            duplicate_ppm: 1_000,
            is_any: 1,
        };
        let said = "rate=25%,loss=1%,delay=2ms,jitter=1.5us,reorder=1%,corrupt=0.01%,duplicate=0.1%";
        assert_eq!(super::state(&slow, &link), said);
    }
}
