//! Progress of a transfer: percentage, recent rate and time left.

use std::time::{Duration, Instant};

use super::gbps;

#[derive(Debug, Default)]
pub struct Meter {
    last: Option<(Instant, u64)>,
    /// Exponentially smoothed over [`SPAN`]; `None` before the second update.
    bytes_per_s: Option<f64>,
}

/// Time constant of the smoothing.
const SPAN: Duration = Duration::from_secs(2);
/// Maximum characters of a name, so that the line fits 79 columns.
const NAME: usize = 16;

impl Meter {
    pub fn line(&mut self, name: &str, done: u64, total: u64, now: Instant) -> String {
        self.look(now, done);
        let short: String = name.chars().take(NAME).collect();
        let rate = self.bytes_per_s.map_or_else(String::new, |rate| format!(", {:.2} Gb/s", gbps(rate as u64, 1.0)));
        let percent = 100 * u128::from(done) / u128::from(total.max(1));
        format!("{short}: {percent} % of {:.1} MB{rate}{}", total as f64 / 1e6, self.left(total.saturating_sub(done)))
    }

    fn left(&self, bytes: u64) -> String {
        match (bytes, self.bytes_per_s) {
            (0, _) => ", all there, being checked".into(),
            (_, None) => String::new(),
            (_, Some(rate)) if rate < 1.0 => ", stalled".into(),
            (bytes, Some(rate)) => format!(", {} left", span(bytes as f64 / rate)),
        }
    }

    fn look(&mut self, now: Instant, done: u64) {
        // Fewer bytes than before are those of another file.
        if let Some((then, before)) = self.last.filter(|(then, before)| *then < now && *before <= done) {
            let seconds = now.duration_since(then).as_secs_f64();
            let rate = (done - before) as f64 / seconds;
            let keep = (-seconds / SPAN.as_secs_f64()).exp();
            self.bytes_per_s = Some(self.bytes_per_s.map_or(rate, |known| known * keep + rate * (1.0 - keep)));
        }
        self.last = Some((now, done));
    }
}

fn span(seconds: f64) -> String {
    match seconds.ceil() as u64 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::now;

    #[test]
    fn a_line_has_share_rate_and_time_left() {
        let (mut meter, begun) = (Meter::default(), now());
        let mut line =
            |s: u64, mb: u64| meter.line("x.bin", mb * 1_000_000, 1_000_000_000, begun + Duration::from_secs(s));
        assert_eq!(line(0, 0), "x.bin: 0 % of 1000.0 MB");
        assert_eq!(line(1, 100), "x.bin: 10 % of 1000.0 MB, 0.80 Gb/s, 9 s left");
        assert_eq!(line(10, 1000), "x.bin: 100 % of 1000.0 MB, 0.80 Gb/s, all there, being checked");
        assert_eq!(meter.line("x", 1, 2, begun), "x: 50 % of 0.0 MB, 0.80 Gb/s, 1 s left");
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let (mut meter, begun) = (Meter::default(), now());
        let at = |s: u64| begun + Duration::from_secs(s);
        (0..=100).for_each(|s| drop(meter.line("x", s * 1000, 1 << 40, at(s))));
        (1..=20).for_each(|s| drop(meter.line("x", 100_000 + s * 10, 1 << 40, at(100 + s))));
        assert!((9.0..12.0).contains(&meter.bytes_per_s.unwrap()), "{meter:?}");
        // The next file begins at nothing.
        meter.line("y", 0, 1 << 40, at(121));
        assert!(meter.bytes_per_s.unwrap() > 9.0, "{meter:?}");
    }

    #[test]
    fn durations_are_displayed_in_two_units() {
        assert_eq!([0.2, 59.0, 200.0, 7500.0].map(span), ["1 s", "59 s", "3 min 20 s", "2 h 5 min"]);
    }
}
