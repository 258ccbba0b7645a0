//! What a page holds for its plots: one JSON text, made from these types and from nothing else.
//!
//! Every series has a fixed most number of points, so that the page of a large run stays small.

pub(super) mod overview;
mod ports;
pub(super) mod run;
mod series;
mod topology;

use serde::{Serialize, Serializer};

/// A number of a plot. Six digits are kept, which is more than a screen shows; what is no number becomes `null`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Num(pub f64);

impl Serialize for Num {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.0.is_finite() {
            return serializer.serialize_none();
        }
        let rounded = self.rounded();
        if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
            serializer.serialize_i64(rounded as i64)
        } else {
            serializer.serialize_f64(rounded)
        }
    }
}

impl Num {
    fn rounded(self) -> f64 {
        let digits = if self.0 == 0.0 { 0.0 } else { self.0.abs().log10().floor() };
        let scale = 10f64.powf((5.0 - digits).clamp(0.0, 12.0));
        (self.0 * scale).round() / scale
    }
}

/// A line of a plot.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Line {
    pub name: String,
    pub x: Vec<Num>,
    pub y: Vec<Num>,
}

impl Line {
    pub(super) fn new(name: &str, points: impl Iterator<Item = (f64, f64)>) -> Self {
        let (x, y) = points.map(|(x, y)| (Num(x), Num(y))).unzip();
        Self { name: name.into(), x, y }
    }
}

/// A class of messages by size, and the slowdown of its flows.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Size {
    pub up_to_bytes: u64,
    pub flows: u64,
    pub mean: Num,
    pub p99: Num,
}

impl From<&crate::results::SizeClass> for Size {
    fn from(class: &crate::results::SizeClass) -> Self {
        let crate::results::SizeClass { up_to_bytes, flows, mean, p99 } = *class;
        Self { up_to_bytes, flows, mean: Num(mean), p99: Num(p99) }
    }
}

/// The data as the text of a `<script>`: nothing in it ends the script.
pub(super) fn text(data: &impl Serialize) -> String {
    serde_json::to_string(data).expect("plain numbers and strings always serialise").replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_six_digits() {
        let all = [0.0, 1.0, -2.5, 1_234.567_89, 1e9 + 0.4, 0.000_123_456_78, f64::NAN, f64::INFINITY].map(Num);
        assert_eq!(text(&all), "[0,1,-2.5,1234.57,1000000000,0.000123457,null,null]");
        assert_eq!(text(&"</script>"), "\"\\u003c/script>\"");
    }
}
