//! Mean, spread and confidence interval over a few runs.

use serde::{Deserialize, Serialize};

/// Mean and spread of several values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Number of values.
    pub runs: u64,
    /// Mean; 0 without values.
    pub mean: f64,
    /// Sample standard deviation (over n - 1); 0 with fewer than two values.
    pub sd: f64,
    /// The 95 % confidence interval of the mean; `None` with fewer than two values.
    ///
    /// Student's t on a logarithmic scale: the mean times and over `exp(t sd / (mean sqrt(n)))`,
    /// which stays above 0. With negative values it is the usual interval.
    pub ci95: Option<[f64; 2]>,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
    /// Whether a value, and so the mean, is a lower bound; the interval is then meaningless.
    #[serde(default)]
    pub lower_bound: bool,
}

impl Spread {
    /// Computes the spread of `values`.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len();
        if n == 0 {
            return Self::default();
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let sd = if n > 1 { (squares / (n - 1) as f64).sqrt() } else { 0.0 };
        Self {
            runs: n as u64,
            mean,
            sd,
            ci95: (n > 1).then(|| interval(mean, student_t975(n - 1) * sd / (n as f64).sqrt(), values)),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            lower_bound: false,
        }
    }

    /// Formats mean (`digits` decimals) and interval: `> 20.0` for a lower bound, a dash for none.
    pub(crate) fn text(&self, digits: usize) -> String {
        match (self.runs, self.ci95) {
            (0, _) => "-".into(),
            _ if self.lower_bound => format!("> {:.digits$}", self.mean),
            (_, Some([low, high])) => format!("{:.digits$} ({low:.digits$} to {high:.digits$})", self.mean),
            (_, None) => format!("{:.digits$}", self.mean),
        }
    }

    /// Whether the interval's upper end is more than twice the lower one: too few runs.
    pub(crate) fn is_wide(&self) -> bool {
        self.ci95.is_some_and(|[low, high]| high > 2.0 * low.max(0.0) && high > low) && !self.lower_bound
    }

    /// Half-width of the 95 % interval in standard errors of the mean, for two or more runs.
    pub(crate) fn t95(runs: usize) -> f64 {
        student_t975(runs.max(2) - 1)
    }
}

/// Returns [`Spread::ci95`] for the half-width `half`.
fn interval(mean: f64, half: f64, values: &[f64]) -> [f64; 2] {
    if values.iter().any(|value| *value < 0.0) {
        return [mean - half, mean + half];
    }
    let factor = if half > 0.0 { (half / mean).exp() } else { 1.0 };
    [mean / factor, mean * factor]
}

/// The 97.5 % quantile of Student's t, within 0.1 %: a table, then a normal expansion.
fn student_t975(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    if let Some(t) = TABLE.get(degrees - 1) {
        return *t;
    }
    let (z, v) = (1.959_964_f64, degrees as f64);
    z + (z.powi(3) + z) / (4.0 * v) + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * v * v)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let spread = Spread::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((spread.mean, spread.min, spread.max), (5.0, 2.0, 9.0));
        assert!((spread.sd - 2.138_089_935).abs() < 1e-9);
        let factor = (2.365 * 2.138_089_935 / 8f64.sqrt() / 5.0_f64).exp();
        let [low, high] = spread.ci95.unwrap();
        assert!((low - 5.0 / factor).abs() < 1e-9 && (high - 5.0 * factor).abs() < 1e-9, "{low} {high}");
        let one = Spread::of(&[3.0]);
        assert_eq!((one.mean, one.sd, one.ci95), (3.0, 0.0, None));
        assert_eq!(Spread::of(&[]).runs, 0);
    }

    #[test]
    fn an_interval_of_non_negative_values_is_non_negative() {
        // A wide spread, as measured: 920 +- 1,397.
        let wide = Spread::of(&[365.0, 1475.0]);
        let [low, high] = wide.ci95.unwrap();
        assert!(low > 0.0 && low < 920.0 && high > 920.0 && wide.is_wide(), "{low} {high}");
        // A narrow spread: the usual format.
        let close = Spread::of(&[99.0, 100.0, 101.0]);
        let [low, high] = close.ci95.unwrap();
        assert!((high - 102.484).abs() < 0.04 && (low - 97.516).abs() < 0.04 && !close.is_wide(), "{low} {high}");
        assert_eq!(close.text(1), "100.0 (97.5 to 102.5)");
        assert_eq!(Spread::of(&[0.0, 0.0]).ci95, Some([0.0, 0.0]));
        assert!(!Spread::of(&[0.0, 0.0]).is_wide() && Spread::of(&[0.0, 3.0, 0.0]).ci95.unwrap()[0] > 0.0);
        assert!(Spread::of(&[-3.0, 3.0]).ci95.unwrap()[0] < 0.0);
        assert_eq!((Spread::of(&[]).text(1), Spread::of(&[3.0]).text(1)), ("-".into(), "3.0".into()));
    }

    #[test]
    fn the_quantile_converges_smoothly_to_the_normal_one() {
        for (degrees, expected) in [(1, 12.706), (2, 4.303), (30, 2.042), (40, 2.021), (60, 2.000), (120, 1.980)] {
            assert!((student_t975(degrees) / expected - 1.0).abs() < 1e-3, "{degrees}");
        }
        assert!((1..500).all(|degrees| student_t975(degrees) >= student_t975(degrees + 1)));
        assert!((student_t975(100_000) - 1.960).abs() < 1e-3);
    }
}
