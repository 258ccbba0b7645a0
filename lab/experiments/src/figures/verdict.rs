//! Compares a paper's claims with our values.

use super::claim::{Better, Claim, Extreme, OTHERS, Pick};
use super::file::Figure;
use super::run::FigureResults;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Our value is in the range, or within a tenth of the paper's.
    Confirmed,
    /// The direction holds; our value differs by this many per cent.
    Off(f64),
    Better,
    Contradicted,
    /// Its series or conditions were not run at this scale.
    NotRun,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Our values as text.
    pub ours: String,
    pub verdict: Verdict,
    /// The known reason why it is not confirmed.
    pub why: Option<String>,
}

impl Finding {
    pub fn text(&self) -> String {
        let verdict = self.verdict.text();
        self.why.as_ref().map_or(verdict.clone(), |why| format!("{verdict}: {why}"))
    }
}

/// Tolerance, as the paper's numbers are read off plots or rounded.
const TENTH: f64 = 0.1;
/// Ratios this close to 1 have no direction.
const EVEN: f64 = 0.005;

impl Verdict {
    pub fn text(self) -> String {
        match self {
            Self::Confirmed => "confirmed".into(),
            Self::Off(percent) => format!("off by {percent:+.0} %"),
            Self::Better => "better".into(),
            Self::Contradicted => CONTRADICTED.into(),
            Self::NotRun => "not at this size".into(),
        }
    }
}

/// A comparison: the condition, our value, and the one it is compared with.
struct Compared<'a> {
    at: &'a str,
    own: f64,
    other: Option<f64>,
}

impl Compared<'_> {
    /// Returns the value, or its ratio to the other. Two runs that never end are equal.
    fn value(&self) -> f64 {
        match self.other {
            Some(other) if other.is_infinite() && self.own.is_infinite() => 1.0,
            Some(other) if other == 0.0 && self.own == 0.0 => 1.0,
            Some(other) => self.own / other,
            None => self.own,
        }
    }
}

impl Claim {
    /// Checks the claim against the results.
    pub fn against(&self, figure: &Figure, results: &FigureResults) -> Finding {
        let key = self.measure.as_deref().unwrap_or(&figure.measure[0].key);
        let compared = self.compared(figure, results, key);
        let fits_worse = |compared: &Compared<'_>| self.misfit(compared.value());
        let value = Compared::value;
        let counts = match self.pick {
            Pick::Each => compared.iter().max_by(|a, b| fits_worse(a).total_cmp(&fits_worse(b))),
            Pick::Least => compared.iter().min_by(|a, b| value(a).total_cmp(&value(b))),
            Pick::Largest => compared.iter().max_by(|a, b| value(a).total_cmp(&value(b))),
        };
        let Some(counts) = counts else { return Finding { ours: String::new(), verdict: Verdict::NotRun, why: None } };
        let unit = figure.measure.iter().find(|measure| measure.key == key).map_or("", |measure| &measure.unit);
        let place = if compared.len() > 1 { format!("{}: ", counts.at) } else { String::new() };
        let ours = match counts.other {
            None => format!("{place}{} {unit}", number(counts.own)),
            Some(other) => {
                let (own, other, ratio) = (number(counts.own), number(other), ratio(counts.value()));
                format!("{place}{own} against {other} {unit}: {ratio} times").replace("  ", " ").replace(" :", ":")
            }
        };
        let verdict = self.verdict(counts.value());
        let is_doubtful = matches!(verdict, Verdict::Contradicted | Verdict::Off(_));
        Finding { ours: ours.trim_end().into(), verdict, why: self.why.clone().filter(|_| is_doubtful) }
    }

    fn compared<'a>(&'a self, figure: &'a Figure, results: &FigureResults, key: &str) -> Vec<Compared<'a>> {
        let of = figure.series.iter().position(|series| series.name == self.of);
        let to: Vec<usize> = match self.to.as_slice() {
            [all] if all == OTHERS => (0..figure.series.len()).filter(|index| Some(*index) != of).collect(),
            names => names.iter().filter_map(|name| figure.series.iter().position(|s| s.name == *name)).collect(),
        };
        let to = if to.is_empty() && self.to_at.is_some() { of.into_iter().collect() } else { to };
        let conditions: Vec<&str> = figure.conditions(results.scale).map(|condition| condition.name.as_str()).collect();
        let place = |name: &str| conditions.iter().position(|known| *known == name);
        let value = |series: usize, condition: usize| results.cells[series][condition].value(key);
        let one = |(index, name): (usize, &&'a str)| {
            let own = value(of?, index)?;
            let there = self.to_at.as_ref().map_or(Some(index), |name| place(name))?;
            let others = to.iter().filter_map(|series| value(*series, there));
            let other = match self.to_the {
                Extreme::Least => others.min_by(f64::total_cmp),
                Extreme::Largest => others.max_by(f64::total_cmp),
            };
            (to.is_empty() || other.is_some()).then_some(Compared { at: name, own, other })
        };
        let wanted = |(_, name): &(usize, &&str)| self.at.is_empty() || self.at.iter().any(|at| at == **name);
        conditions.iter().enumerate().filter(wanted).filter_map(one).collect()
    }

    /// Returns the deviation from the claim; 0 if it holds.
    fn misfit(&self, value: f64) -> f64 {
        match self.paper {
            Some(paper) => (value / paper).ln().abs(),
            None => {
                let below = self.least.filter(|least| value < *least).map_or(0.0, |least| least - value);
                let above = self.most.filter(|most| value > *most).map_or(0.0, |most| value - most);
                below + above
            }
        }
    }

    fn verdict(&self, value: f64) -> Verdict {
        let Some(paper) = self.paper else {
            return match (self.misfit(value) == 0.0, self.better) {
                (true, _) => Verdict::Confirmed,
                (_, Some(Better::Less)) if self.least.is_some_and(|least| value < least) => Verdict::Better,
                (_, Some(Better::More)) if self.most.is_some_and(|most| value > most) => Verdict::Better,
                _ => Verdict::Contradicted,
            };
        };
        let off = value / paper - 1.0;
        let is_ratio = !self.to.is_empty() || self.to_at.is_some();
        let side = |ratio: f64| if (ratio - 1.0).abs() < EVEN { 0.0 } else { (ratio - 1.0).signum() };
        if is_ratio && side(value) != side(paper) && side(paper) != 0.0 {
            return Verdict::Contradicted;
        }
        match off.abs() <= TENTH {
            true => Verdict::Confirmed,
            false if off.is_finite() => Verdict::Off(100.0 * off),
            false => Verdict::Contradicted,
        }
    }
}

pub(super) const CONTRADICTED: &str = "contradicted";

/// Formats a value with an appropriate number of digits.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        v if v.is_infinite() => "never".into(),
        v if v >= 1e6 => format!("{value:.3e}"),
        v if v >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn ratio(value: f64) -> String {
    if value.abs() >= 100.0 { number(value) } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests;
