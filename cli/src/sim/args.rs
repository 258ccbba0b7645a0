//! The command line of the simulator.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use spray_core::cc::CcKind;
use spray_core::loss::SackRule;
use spray_core::path::BalancerKind;

use crate::tuning::Params;

#[derive(Debug, Args)]
pub struct Sim {
    /// The fabric: a `.topo` file, or counts: leaf-spine:LEAVESxSPINESxHOSTS, fat-tree:PODSxTORSxAGGSxCORESxHOSTS,
    /// dragonfly:GROUPSxROUTERSxHOSTSxCABLES, each with @GBPS after it for another rate than 400
    #[arg(long, value_name = "F.topo|COUNTS")]
    pub topology: String,
    /// The flows: a `.cm` file, or permutation:BYTES, cross-leaf-permutation:BYTES, tornado:BYTES, incast:SENDERS:BYTES
    #[arg(long, value_name = "F.cm|PATTERN")]
    pub matrix: String,
    /// What chooses paths; may be repeated
    #[arg(long = "balancer", value_name = "NAME", default_value = "reps")]
    pub balancers: Vec<BalancerKind>,
    /// Congestion control
    #[arg(long, value_name = "NAME", default_value_t = CcKind::Dctcp)]
    pub cc: CcKind,
    #[command(flatten)]
    pub params: Params,
    #[command(flatten)]
    pub seeds: Seeds,
    /// Bytes that may wait at a port, as in 2500000 or 95MB; otherwise 100 packets
    #[arg(long, value_name = "N", value_parser = queue_bytes)]
    pub queue_bytes: Option<u32>,
    /// Switches mark nothing
    #[arg(long)]
    pub no_marking: bool,
    /// Entropy values to choose from
    #[arg(long, value_name = "N", default_value_t = 65_535, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub evs: u32,
    /// Packets that one acknowledgement stands for
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub ack_every: u32,
    /// Most entropy values that one acknowledgement carries
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub ack_evs: u32,
    /// Switches drop what does not fit, instead of cutting it to its header
    #[arg(long)]
    pub no_trim: bool,
    /// Packets that arrive after one until it counts as lost; 0 leaves losses to trimmed headers and the timer
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=16_384))]
    pub sack_gap: u32,
    /// What else it takes: `patient` waits until every path seen lately would have answered, `plain` for nothing
    #[arg(long, value_name = "RULE", default_value = "patient", value_parser = sack_rule)]
    pub sack_rule: SackRule,
    /// Messages go in an ideal erasure code: whichever packets arrive, enough of them make a message
    #[arg(long)]
    pub erasure: bool,
    /// Whose rules REPS follows where the paper and the published simulators differ
    #[arg(long, value_enum, default_value_t = RepsVariant::Paper)]
    pub reps_variant: RepsVariant,
    /// Leaves a link a share of its rate, as in `leaf0->spine0=0.5`; `leaf0-spine0` is both directions; may be repeated
    #[arg(long = "link-rate", value_name = "LINK=FACTOR", value_parser = link_rate)]
    pub link_rates: Vec<LinkRate>,
    /// Lets one direction of so many per cent of the cables fail silently from the start; drawn from each seed
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub fail_cables: Option<f64>,
    /// Lets a link drop everything silently between two times in us, as in `leaf0-spine1@100..200`; without the second
    /// one for good; may be repeated
    #[arg(long = "fail", value_name = "LINK@FROM..TO", value_parser = link_fail)]
    pub fails: Vec<LinkFail>,
    /// A failure file: see docs/sim.md; its victims are drawn from each seed
    #[arg(long, value_name = "FILE", conflicts_with = "fail_cables")]
    pub failures: Option<PathBuf>,
    /// Counts flows as complete when their sender knows, as the published simulations do, instead of at the receiver
    #[arg(long)]
    pub acked: bool,
    /// Time between samples of queues and links in us; 0 takes none
    #[arg(long, value_name = "US", default_value_t = 0.0, value_parser = microseconds)]
    pub sample_us: f64,
    /// Scenario time after which a run is stopped, otherwise 50 times the ideal
    #[arg(long, value_name = "US", value_parser = microseconds)]
    pub time_limit_us: Option<f64>,
    /// Where to write the results, otherwise ./results/ and the time
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Which runs, and how many at once.
#[derive(Debug, Args)]
pub struct Seeds {
    /// Root of all random choices
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// A run for each of these, both ends included
    #[arg(long, value_name = "A..B", conflicts_with = "seed", value_parser = seeds)]
    pub seeds: Option<SeedRange>,
    /// Runs at the same time, each on one thread; otherwise as many as there are cores
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub threads: Option<u64>,
}

impl Seeds {
    /// The seeds that were asked for; none where it is left to the scenario.
    pub fn list(&self) -> Vec<u64> {
        match (&self.seeds, self.seed) {
            (Some(range), _) => range.0.clone().collect(),
            (None, seed) => seed.into_iter().collect(),
        }
    }
}

/// Seeds from one to another, both included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedRange(pub RangeInclusive<u64>);

/// A link's name and the share of its rate that is left, in millionths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRate {
    /// As in a scenario.
    pub link: String,
    /// 1 to 999,999.
    pub ppm: u32,
}

/// A link's name and when it fails, in ps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkFail {
    /// As in a scenario.
    pub link: String,
    /// When it begins.
    pub at_ps: u64,
    /// When it ends; `None` is never.
    pub until_ps: Option<u64>,
}

/// Whose rules REPS follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RepsVariant {
    /// The paper's
    Paper,
    /// Those of the paper's artifact
    Artifact,
    /// Those of Ultra Ethernet's simulator
    UltraEthernet,
}

/// Most seeds of one sweep.
const MAX_SEEDS: u64 = 10_000;
/// An hour of scenario time.
const MAX_US: f64 = 3.6e9;

fn seeds(text: &str) -> Result<SeedRange, String> {
    let range = text.split_once("..").and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    let fits = |(a, b): &(u64, u64)| a <= b && b - a < MAX_SEEDS;
    let (a, b) = range.filter(fits).ok_or(format!("expected A..B with A at most B, {MAX_SEEDS} seeds at most"))?;
    Ok(SeedRange(a..=b))
}

fn link_rate(text: &str) -> Result<LinkRate, &'static str> {
    let (link, factor) = text.rsplit_once('=').ok_or("expected LINK=FACTOR, such as leaf0->spine0=0.5")?;
    let factor = factor.parse().ok().filter(|factor| (0.001..=0.999).contains(factor));
    let factor: f64 = factor.ok_or("expected a factor from 0.001 to 0.999")?;
    Ok(LinkRate { link: link.into(), ppm: (factor * 1e6).round() as u32 })
}

fn link_fail(text: &str) -> Result<LinkFail, &'static str> {
    const EXPECTED: &str =
        "expected LINK@FROM..TO in microseconds, such as leaf0-spine1@100..200 or leaf0-spine1@100..";
    let (link, times) = text.rsplit_once('@').ok_or(EXPECTED)?;
    let (from, to) = times.split_once("..").ok_or(EXPECTED)?;
    let ps = |text: &str| microseconds(text).map(|us| (us * 1e6).round() as u64).map_err(|_| EXPECTED);
    let until_ps = if to.is_empty() { None } else { Some(ps(to)?) };
    let at_ps = ps(from)?;
    if until_ps.is_some_and(|until| until <= at_ps) {
        return Err("expected a later time after `..` than before it");
    }
    Ok(LinkFail { link: link.into(), at_ps, until_ps })
}

fn queue_bytes(text: &str) -> Result<u32, &'static str> {
    let bytes = spray_experiments::scenario::bytes(text).and_then(|bytes| u32::try_from(bytes).ok());
    bytes.filter(|bytes| *bytes >= 64).ok_or("expected bytes from 64 to 4294967295, such as 2500000 or 95MB")
}

fn sack_rule(text: &str) -> Result<SackRule, &'static str> {
    SackRule::named(text).ok_or("expected patient or plain")
}

fn percent(text: &str) -> Result<f64, &'static str> {
    text.parse().ok().filter(|percent| *percent > 0.0 && *percent < 100.0).ok_or("expected per cent above 0, below 100")
}

fn microseconds(text: &str) -> Result<f64, &'static str> {
    text.parse().ok().filter(|us| (0.0..=MAX_US).contains(us)).ok_or("expected microseconds from 0 to 3600000000")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_refused() {
        assert_eq!(seeds("3..5").unwrap().0.collect::<Vec<_>>(), [3, 4, 5]);
        assert!(["5..3", "1...", "1", "a..b", "0..10000", "-1..2"].iter().all(|text| seeds(text).is_err()));
        let rate = LinkRate { link: "leaf0->spine0".into(), ppm: 500_000 };
        assert_eq!(link_rate("leaf0->spine0=0.5"), Ok(rate));
        assert!(["leaf0->spine0", "a-b=1", "a-b=0", "a-b=x"].iter().all(|text| link_rate(text).is_err()));
        let fail = LinkFail { link: "leaf0-spine1#2".into(), at_ps: 1_500_000, until_ps: Some(20_000_000) };
        assert_eq!(link_fail("leaf0-spine1#2@1.5..20"), Ok(fail.clone()));
        assert_eq!(link_fail("leaf0-spine1#2@1.5.."), Ok(LinkFail { until_ps: None, ..fail }));
        let wrong = ["a-b", "a-b@1", "a-b@2..1", "a-b@..5", "a-b@x..y"];
        assert!(wrong.iter().all(|text| link_fail(text).is_err()));
        assert_eq!((queue_bytes("64"), queue_bytes("95MB"), queue_bytes("1 KiB")), (Ok(64), Ok(95_000_000), Ok(1_024)));
        assert!(["63", "4GiB", "-1", "x", "1.5", ""].iter().all(|text| queue_bytes(text).is_err()));
        assert_eq!((sack_rule("plain"), sack_rule("patient")), (Ok(SackRule::Plain), Ok(SackRule::Patient)));
        assert!(sack_rule("rack").is_err());
        assert!(percent("10").is_ok() && percent("0").is_err() && percent("100").is_err());
    }
}
