//! What the paper states about a figure, held against rows.

use super::{Contender, Row};
use crate::results::Summary;

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// 99th percentile of completion times, in us.
    P99,
    /// Mean completion time, in us.
    Mean,
    /// From the first start to the last end, in us.
    Runtime,
    /// Packets that did not have the number expected next, in per cent of those sent: the paper's count (Flowcut §III-C2).
    Unexpected,
    /// Packets that came after one with a higher number, in per cent of those sent.
    Reordered,
    /// Share of its completion time that a flow was held back, in per cent.
    Drained,
}

impl Metric {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::P99 => "p99",
            Self::Mean => "mean",
            Self::Runtime => "runtime",
            Self::Unexpected => "unexpected",
            Self::Reordered => "overtaken",
            Self::Drained => "drained",
        }
    }

    /// Its value in a run.
    pub fn of(self, run: &Summary) -> f64 {
        match self {
            Self::P99 => run.fct_p99_us,
            Self::Mean => run.fct_mean_us,
            Self::Runtime => run.makespan_us,
            Self::Unexpected => 100.0 * run.unexpected_packets as f64 / run.packets_sent.max(1) as f64,
            Self::Reordered => 100.0 * run.reordered_packets as f64 / run.packets_sent.max(1) as f64,
            Self::Drained => run.drain_percent_of_fct,
        }
    }
}

/// A statement of the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statement {
    /// In our words.
    pub says: &'static str,
    /// When it holds.
    pub check: Check,
}

/// When a statement holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Check {
    /// One contender's figure is so many times another's.
    Ratio {
        /// Of what.
        metric: Metric,
        /// Whose.
        of: Contender,
        /// In relation to whose.
        to: Contender,
        /// At least.
        least: f64,
        /// At most.
        most: f64,
    },
    /// No contender's figure is less.
    Least {
        /// Of what.
        metric: Metric,
        /// Whose.
        of: Contender,
    },
    /// No contender's figure is larger.
    Most {
        /// Of what.
        metric: Metric,
        /// Whose.
        of: Contender,
    },
    /// So many per cent of its packets are out of order, as the paper counts them.
    Reordered {
        /// Whose.
        of: Contender,
        /// At least.
        least: f64,
        /// At most.
        most: f64,
    },
}

/// Whether a statement holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Confirmed,
    /// Flowcut does better than that.
    Better,
    /// It does not.
    Contradicted,
}

impl Verdict {
    const fn of(holds: bool) -> Self {
        if holds { Self::Confirmed } else { Self::Contradicted }
    }

    /// As it stands in tables.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Better => "better",
            Self::Contradicted => "**contradicted**",
        }
    }
}

/// What we find: in words, and whether the statement holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Our figures.
    pub ours: String,
    /// Whether it holds.
    pub verdict: Verdict,
}

impl Check {
    /// Holds the statement against rows; `None` where a contender is missing.
    pub fn against(&self, rows: &[Row]) -> Option<Found> {
        let value = |contender: Contender, metric: Metric| {
            rows.iter().find(|row| row.contender == contender).map(|row| row.mean(metric))
        };
        Some(match *self {
            Self::Ratio { metric, of, to, least, most } => {
                let (own, other) = (value(of, metric)?, value(to, metric)?);
                let ratio = own / other;
                let ours = format!("{} {own:.1} against {other:.1}: {ratio:.2} times", metric.name());
                let is_better = of.is_flowcut() && ratio < least;
                let holds = Verdict::of((least..=most).contains(&ratio));
                Found { ours, verdict: if is_better { Verdict::Better } else { holds } }
            }
            Self::Least { metric, of } => extreme(rows, metric, value(of, metric)?, "least", |a, b| a < b)?,
            Self::Most { metric, of } => extreme(rows, metric, value(of, metric)?, "largest", |a, b| a > b)?,
            Self::Reordered { of, least, most } => {
                let own = value(of, Metric::Unexpected)?;
                Found { ours: format!("{own:.2} %"), verdict: Verdict::of((least..=most).contains(&own)) }
            }
        })
    }
}

/// Whether no row's figure is beyond `own`.
fn extreme(rows: &[Row], metric: Metric, own: f64, word: &str, beyond: fn(f64, f64) -> bool) -> Option<Found> {
    let mut first = rows.first()?;
    for row in rows {
        if beyond(row.mean(metric), first.mean(metric)) {
            first = row;
        }
    }
    let (contender, value) = (first.contender, first.mean(metric));
    let ours = format!("{} {own:.1}; the {word} is {contender}'s {value:.1}", metric.name());
    Some(Found { ours, verdict: Verdict::of(!beyond(value, own)) })
}
