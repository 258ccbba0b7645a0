//! Distributions of message sizes, published or from a file.
//!
//! Points (bytes, share of messages up to it), uniform in between: `docs/specs/closed-loop.md`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_fabric::FileError;
use spray_fabric::limits::MAX_MESSAGE_BYTES;

/// A published distribution of message sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Sizes {
    /// Web search (DCTCP, figure 4): mean 1.7 MB.
    WebSearch,
    /// Web search as in the published REPS simulations, with larger messages: mean 2.8 MB.
    WebSearchReps,
    /// Data mining (VL2): mean 12.7 MB; four fifths have at most 10 kB.
    DataMining,
    /// Enterprise (Conga, figure 8): mean 216 kB; four fifths have at most 11 kB.
    Enterprise,
    /// Alibaba's storage, 2019 (published with HPCC): mean 41 kB.
    Alibaba,
    /// Facebook's Hadoop (published with HPCC): mean 120 kB.
    Hadoop,
    /// Uniform from 1 byte to `max_bytes`.
    Uniform,
}

/// Bytes, and the share of messages of at most that size, in units of 1 / [`ALL`].
type Point = (u64, u64);

/// The share of all messages; files have up to 16 digits.
const ALL: u64 = 1_000_000_000_000_000_000;

/// Parses the points of a published distribution, with shares in ppm.
fn published(text: &str) -> impl Iterator<Item = Point> + '_ {
    let point = |line: &str| {
        let (bytes, ppm) = line.split_once(',')?;
        Some((bytes.parse().ok()?, ppm.parse::<u64>().ok()? * (ALL / 1_000_000)))
    };
    text.lines().filter_map(point)
}

impl Sizes {
    /// All distributions.
    pub const ALL: [Self; 7] = [
        Self::WebSearch,
        Self::WebSearchReps,
        Self::DataMining,
        Self::Enterprise,
        Self::Alibaba,
        Self::Hadoop,
        Self::Uniform,
    ];

    /// Returns its points; those of `uniform` end at `max_bytes`.
    fn points(self, max_bytes: u64) -> Arc<[Point]> {
        match self {
            Self::WebSearch => published(WEB_SEARCH).collect(),
            Self::WebSearchReps => published(WEB_SEARCH).take(9).chain(published(LARGE_OF_REPS)).collect(),
            Self::DataMining => published(include_str!("sizes/data-mining.csv")).collect(),
            Self::Enterprise => published(include_str!("sizes/enterprise.csv")).collect(),
            Self::Alibaba => published(include_str!("sizes/alibaba.csv")).collect(),
            Self::Hadoop => published(include_str!("sizes/hadoop.csv")).collect(),
            Self::Uniform => [(0, 0), (max_bytes, ALL)].into(),
        }
    }
}

impl std::fmt::Display for Sizes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// A distribution of message sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    points: Arc<[Point]>,
    max_bytes: u64,
}

impl Distribution {
    /// Creates a published distribution; larger messages are cut to `max_bytes`.
    pub fn published(sizes: Sizes, max_bytes: u64) -> Self {
        Self { points: sizes.points(max_bytes), max_bytes }
    }

    /// Parses lines of bytes and the share of messages of at most that size, separated by a comma,
    /// spaces or tabs. Bytes ascend; shares do not descend, and end at 1 or, in percent, at 100.
    /// The first line may be a header or one number, such as the mean; `#` starts a comment.
    /// Larger messages are cut to `max_bytes`.
    ///
    /// # Errors
    /// Returns the first invalid line.
    //= docs/specs/closed-loop.md#CL-6 of a file
    pub fn parse(text: &str, max_bytes: u64) -> Result<Self, FileError> {
        let lines = || (1..).zip(text.lines().map(|full| full.split('#').next().unwrap_or_default().trim()));
        let last = lines().filter_map(|(_, line)| fields(line)).last();
        let whole = if last.is_some_and(|(_, share)| share.parse() == Ok(100.0)) { 100.0 } else { 1.0 };
        let mut points: Vec<Point> = Vec::new();
        for (number, line) in lines() {
            let is_header = || line.starts_with(|c: char| c.is_ascii_alphabetic()) || line.parse::<f64>().is_ok();
            if line.is_empty() || (points.is_empty() && is_header()) {
                continue;
            }
            let error = |message: String| FileError { line: number, column: 1, message };
            let point = fields(line).and_then(|(bytes, share)| point(bytes, share, whole)).ok_or_else(|| {
                error(format!(
                    "`{line}` is no point; allowed: BYTES SHARE with whole bytes, at most {MAX_MESSAGE_BYTES}, and a share from 0 to {whole}"
                ))
            })?;
            if point.0 == 0 && point.1 > 0 {
                return Err(error(format!("`{line}`: messages without a byte; allowed: a share of 0 up to 0 bytes")));
            }
            if points.is_empty() && point.1 > 0 {
                points.push((0, 0));
            }
            if points.last().is_some_and(|last| point.0 < last.0 || point.1 < last.1) {
                return Err(error(format!(
                    "`{line}` is below the line before it; allowed: ascending bytes and shares"
                )));
            }
            points.push(point);
        }
        match points.last() {
            Some((_, ALL)) if points.len() > 1 => Ok(Self { points: points.into(), max_bytes }),
            _ => {
                let message =
                    "the last share is not 1; allowed: lines BYTES SHARE up to a share of 1, or of 100 for percent";
                Err(FileError { line: text.lines().count().max(1), column: 1, message: message.into() })
            }
        }
    }

    /// Returns the size in bytes for a uniform `random` of 64 bits.
    //= docs/specs/closed-loop.md#CL-5 at a random share
    pub fn draw(&self, random: u64) -> u64 {
        // 1 to `ALL`: a share of `p` is reached by `p` of them.
        let wanted = 1 + ((u128::from(random) * u128::from(ALL)) >> 64) as u64;
        let above = self.points.partition_point(|(_, share)| *share < wanted).clamp(1, self.points.len() - 1);
        let ((low, from), (high, to)) = (self.points[above - 1], self.points[above]);
        let part = (u128::from(high - low) * u128::from(wanted - from)).div_ceil(u128::from(to - from));
        (low + part as u64).min(self.max_bytes)
    }

    /// Returns the share of messages, 0 to 1, of at most `bytes`, by linear interpolation.
    pub fn share_up_to(&self, bytes: f64) -> f64 {
        if bytes >= self.max_bytes as f64 {
            return 1.0;
        }
        let above = self.points.partition_point(|(point, _)| *point as f64 <= bytes);
        let Some([(low, from), (high, to)]) = self.points.get(above.wrapping_sub(1)..=above) else {
            return if above == 0 { 0.0 } else { 1.0 };
        };
        let part = (bytes - *low as f64) / (high - low) as f64;
        (*from as f64 + part * (to - from) as f64) / ALL as f64
    }

    /// Returns the mean of [`draw`](Self::draw) in bytes.
    pub fn mean_bytes(&self) -> f64 {
        let part =
            |pair: &[Point]| (pair[1].1 - pair[0].1) as f64 / ALL as f64 * self.mean_between(pair[0].0, pair[1].0);
        self.points.windows(2).map(part).sum()
    }

    /// Returns the mean of the sizes above `low` up to `high`, with the cut.
    fn mean_between(&self, low: u64, high: u64) -> f64 {
        let cut = self.max_bytes.clamp(low, high);
        let whole = (low + 1 + cut) as f64 / 2.0 * (cut - low) as f64 + cut as f64 * (high - cut) as f64;
        if low == high || low >= self.max_bytes { low.min(self.max_bytes) as f64 } else { whole / (high - low) as f64 }
    }
}

/// Returns the two fields of a line.
fn fields(line: &str) -> Option<(&str, &str)> {
    let mut fields = line.split([',', ' ', '\t']).filter(|field| !field.is_empty());
    let pair = (fields.next()?, fields.next()?);
    fields.next().is_none().then_some(pair)
}

/// Parses a point; `whole` is the share of all messages.
fn point(bytes: &str, share: &str, whole: f64) -> Option<Point> {
    let bytes: f64 = bytes.parse().ok().filter(|bytes| (0.0..=MAX_MESSAGE_BYTES as f64).contains(bytes))?;
    let share: f64 = share.parse().ok().filter(|share| (0.0..=whole).contains(share))?;
    (bytes.fract() == 0.0).then_some((bytes as u64, (share / whole * ALL as f64).round() as u64))
}

const WEB_SEARCH: &str = include_str!("sizes/web-search.csv");
/// Replaces the points above 2 MB.
const LARGE_OF_REPS: &str = "10000000,900000\n20000000,970000\n40000000,1000000";

#[cfg(test)]
mod tests {
    use rand_core::RngCore;
    use spray_core::rng::stream;

    use super::*;

    /// Returns each published distribution with its points; shares are in millionths.
    fn all_published() -> [(Sizes, Vec<(u64, u32)>); 5] {
        [Sizes::WebSearch, Sizes::DataMining, Sizes::Enterprise, Sizes::Alibaba, Sizes::Hadoop].map(|sizes| {
            let points = sizes.points(0);
            (sizes, points.iter().map(|(bytes, share)| (*bytes, (share / (ALL / 1_000_000)) as u32)).collect())
        })
    }

    const DRAWS: usize = 200_000;

    fn draws(sizes: Sizes, max_bytes: u64) -> Vec<u64> {
        let mut rng = stream(1, 0);
        let distribution = Distribution::published(sizes, max_bytes);
        (0..DRAWS).map(|_| distribution.draw(rng.next_u64())).collect()
    }

    /// Returns the mean of a distribution with sizes uniform between points.
    fn mean(points: &[(u64, u32)]) -> f64 {
        let part = |pair: &[(u64, u32)]| f64::from(pair[1].1 - pair[0].1) / 1e6 * (pair[0].0 + pair[1].0) as f64 / 2.0;
        points.windows(2).map(part).sum()
    }

    #[test]
    fn points_ascend_from_none_to_all() {
        for (sizes, points) in all_published() {
            assert_eq!((points[0].1, points[points.len() - 1].1), (0, 1_000_000), "{sizes:?}");
            assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1), "{sizes:?}");
        }
    }

    #[test]
    fn means_are_the_published_ones() {
        let of = |sizes| mean(&all_published().into_iter().find(|(other, _)| *other == sizes).unwrap().1);
        // The published means; the other papers have none.
        let expected = [(Sizes::WebSearch, 1.7e6), (Sizes::Enterprise, 215e3), (Sizes::DataMining, 12.5e6)];
        for (sizes, bytes) in expected {
            let found = of(sizes);
            assert!((found / bytes - 1.0).abs() < 0.02, "{sizes:?}: {found}");
        }
    }

    //= docs/specs/closed-loop.md#CL-5 at a random share
    #[test]
    fn draws_follow_the_distribution() {
        for (sizes, points) in all_published() {
            let drawn = draws(sizes, u64::MAX);
            for (bytes, ppm) in &points {
                let share = drawn.iter().filter(|size| *size <= bytes).count() as f64 / DRAWS as f64;
                let expected = f64::from(*ppm) / 1e6;
                // Four standard deviations.
                let allowed = 4.0 * (expected * (1.0 - expected) / DRAWS as f64).sqrt() + 1e-9;
                assert!((share - expected).abs() < allowed, "{sizes:?}, {bytes}: {share} {expected}");
            }
            let (found, expected) = (drawn.iter().sum::<u64>() as f64 / DRAWS as f64, mean(&points));
            assert!((found / expected - 1.0).abs() < 0.05, "{sizes:?}: {found} {expected}");
        }
    }

    #[test]
    fn a_draw_is_the_inverse_of_the_distribution() {
        // A literal implementation with real numbers.
        let literal = |points: &[(u64, u32)], random: u64| -> f64 {
            let share = random as f64 / 2f64.powi(64) * 1e6;
            let above = points.iter().position(|(_, ppm)| f64::from(*ppm) > share).unwrap_or(points.len() - 1);
            let ((low, from), (high, to)) = (points[above - 1], points[above]);
            low as f64 + (high - low) as f64 * (share - f64::from(from)) / f64::from(to - from)
        };
        let mut rng = stream(2, 0);
        for (sizes, points) in all_published() {
            let distribution = Distribution::published(sizes, u64::MAX);
            for random in (0..2_000).map(|_| rng.next_u64()).chain([0, 1, u64::MAX]) {
                let (found, expected) = (distribution.draw(random) as f64, literal(&points, random));
                assert!((found - expected).abs() <= 1.0 + expected * 1e-6, "{sizes:?} {random}: {found} {expected}");
            }
            let ends = [0, u64::MAX].map(|random| distribution.draw(random));
            assert_eq!(ends, [points[0].0 + 1, points[points.len() - 1].0], "{sizes:?}");
        }
    }

    #[test]
    fn sizes_end_at_the_largest() {
        for sizes in Sizes::ALL {
            let drawn = draws(sizes, 3_000);
            assert!(drawn.iter().all(|size| (1..=3_000).contains(size)), "{sizes:?}");
        }
        // Equally likely, including the first and the last size.
        let third = u64::MAX / 3;
        let three = Distribution::published(Sizes::Uniform, 3);
        assert_eq!(
            [0, third - 99, third + 99, 2 * third - 99, 2 * third + 99].map(|random| three.draw(random)),
            [1, 1, 2, 2, 3]
        );
        assert_eq!(three.mean_bytes(), 2.0);
    }

    /// Distributions with steps of one byte, with tails of less than a millionth, and with jumps.
    const FINE: [&str; 4] = [
        "1,0\n64,0.3264\n512,0.9104\n4096,0.9953\n262144,0.99997524\n275941,0.99997599\n291271,0.99997673\n308405,0.99997748\n\
         327680,0.99997822\n3529904,1",
        "4094,0\n4095,0.00001\n4096,0.3\n4097,1",
        "1,0.1\n2,0.2\n2,0.25\n3,0.5\n100,0.50000001\n101,1",
        "7,0.0000000001\n8,0.9999999999\n1099511627776,1",
    ];

    /// Returns the share of the 2^64 random numbers whose draw has at most `bytes`, by bisection,
    /// because draws are monotonic.
    fn drawn_up_to(distribution: &Distribution, bytes: u64) -> f64 {
        let (mut within, mut above) = (0, 1u128 << 64);
        while within < above {
            let middle = u128::midpoint(within, above);
            if distribution.draw(middle as u64) <= bytes { within = middle + 1 } else { above = middle }
        }
        within as f64 / 2f64.powi(64)
    }

    //= docs/specs/closed-loop.md#CL-5 at every whole byte
    #[test]
    fn the_share_of_draws_equals_that_of_the_file_at_every_whole_byte() {
        let near = |at: u64| at.saturating_sub(3)..=at.saturating_add(3);
        for text in FINE {
            let distribution = Distribution::parse(text, MAX_MESSAGE_BYTES).unwrap();
            let points = distribution.points.iter().flat_map(|(bytes, _)| near(*bytes));
            for bytes in points.chain((1..40).map(|power| 1 << power)) {
                let (found, expected) = (drawn_up_to(&distribution, bytes), distribution.share_up_to(bytes as f64));
                assert!((found - expected).abs() < 1e-15, "{text}: {bytes}: {found} {expected}");
            }
        }
        let steps = Distribution::parse(FINE[1], MAX_MESSAGE_BYTES).unwrap();
        assert!((drawn_up_to(&steps, 4_095) - 0.000_01).abs() < 1e-15 && drawn_up_to(&steps, 4_094) == 0.0);
    }

    /// The bound of the Kolmogorov-Smirnov test that one sample in a million exceeds.
    //= docs/specs/closed-loop.md#CL-5 at every whole byte
    #[test]
    fn samples_of_fine_files_have_the_distribution_of_the_file() {
        for (seed, text) in FINE.into_iter().enumerate() {
            let distribution = Distribution::parse(text, MAX_MESSAGE_BYTES).unwrap();
            let mut rng = stream(seed as u64, 0);
            let mut drawn: Vec<u64> = (0..DRAWS).map(|_| distribution.draw(rng.next_u64())).collect();
            drawn.sort_unstable();
            let apart =
                |bytes: u64, count: usize| (count as f64 / DRAWS as f64 - distribution.share_up_to(bytes as f64)).abs();
            let steps = drawn.chunk_by(|a, b| a == b).scan(0, |count, alike| {
                let before = apart(alike[0] - 1, *count);
                *count += alike.len();
                Some(before.max(apart(alike[0], *count)))
            });
            let found = steps.fold(0.0, f64::max);
            assert!(found < (2e6f64.ln() / 2.0 / DRAWS as f64).sqrt(), "{text}: {found}");
        }
    }

    #[test]
    fn the_mean_is_that_of_the_draws_with_and_without_a_maximum() {
        let exact = |text: &str, max_bytes| Distribution::parse(text, max_bytes).unwrap().mean_bytes();
        // The sizes 1 to 100 have a probability of 1/100 each; then the sizes 4 and 5 of 1/2 each.
        assert_eq!(
            (exact("100,1", 100), exact("100,1", 60), exact("100,1", 1)),
            (50.5, (30.5 * 60.0 + 2_400.0) / 100.0, 1.0)
        );
        assert_eq!(
            (exact("3,0\n5,1", 9), exact("3,0\n5,1", 4), exact("3,0\n5,1", 3), exact("3,0\n5,1", 2)),
            (4.5, 4.0, 3.0, 2.0)
        );
        for sizes in Sizes::ALL {
            for max_bytes in [3_000, 1 << 20, 64 << 20] {
                let mean = draws(sizes, max_bytes).iter().sum::<u64>() as f64 / DRAWS as f64;
                let expected = Distribution::published(sizes, max_bytes).mean_bytes();
                assert!((mean / expected - 1.0).abs() < 0.03, "{sizes:?} {max_bytes}: {mean} {expected}");
            }
        }
    }

    //= docs/specs/closed-loop.md#CL-6 of a file
    #[test]
    fn files_of_other_projects_are_read() {
        let read = |text: &str| Distribution::parse(text, 1 << 30).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        let expected = read("0,0\n1000,0.5\n9000,1");
        for text in [
            "0 0\n1000 50\n9000 100",
            "0\t0\r\n1000\t0.5\r\n9000\t1\r\n",
            "3\n0 0\n1000 0.5\n9000 1",
            "2750.25\n0, 0\n1000, 0.5\n9000, 1",
            "size cdf\n0 0.0\n1e3 5e-1\n9000 1.0\n",
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        // No message is between two lines with the same share.
        let flat = read("100 0.5\n200 0.5\n300 1");
        assert_eq!((flat.share_up_to(100.0), flat.share_up_to(200.0), flat.share_up_to(250.0)), (0.5, 0.5, 0.75));
        assert!((0..64).all(|step| !(101..=200).contains(&flat.draw(step << 58))));
        // A step of a billionth.
        let fine = read("1 0\n10 0.999999999\n1000 1");
        assert!((1.0 - fine.share_up_to(10.0) - 1e-9).abs() < 1e-15 && fine.draw(u64::MAX) == 1_000);
    }

    #[test]
    fn a_file_gives_its_own_distribution() {
        let read = |text: &str| Distribution::parse(text, 1 << 30);
        let two = read("bytes,share\n# nothing is smaller\n1000,0\n1000.0,0.5\n\n9000, 1\n").unwrap();
        assert_eq!((two.draw(0), two.draw(u64::MAX / 4), two.mean_bytes()), (1_000, 1_000, 3_000.25));
        assert_eq!(two.draw(u64::MAX), 9_000);
        let shares = [0.0, 999.0, 1_000.0, 5_000.0, 8_999.0, 9_000.0, 1e9].map(|bytes| two.share_up_to(bytes));
        assert_eq!(shares, [0.0, 0.0, 0.5, 0.75, 0.999_937_5, 1.0, 1.0]);
        // Without a point of share 0, the distribution starts at 0 bytes.
        assert_eq!(read("100,1").unwrap().mean_bytes(), 50.5);
        let refused = [
            ("", 1, "the last share is not 1"),
            ("100,0.5\n200,0.9", 2, "the last share is not 1"),
            ("100,0.5\n90,1", 2, "below the line before"),
            ("100,0.5\n200,0.4\n300,1", 2, "below the line before"),
            ("100 50\n200 99.5", 1, "from 0 to 1"),
            ("100 0.5\n200\n300 1", 2, "is no point"),
            ("100 1 0.5\n200 1 1", 1, "is no point"),
            ("100,0.5\nbytes,share", 2, "is no point"),
            ("100;1", 1, "is no point"),
            ("100,1.5", 1, "is no point"),
            ("-1,1", 1, "is no point"),
            ("1e300,1", 1, "is no point"),
            ("99.5,1", 1, "whole bytes"),
            ("0,0.25\n100,1", 1, "without a byte"),
            ("nan,1", 1, "the last share"),
        ];
        for (text, line, says) in refused {
            let error = read(text).unwrap_err();
            assert!(error.line == line && error.message.contains(says), "{text}: {error:?}");
        }
    }
}
