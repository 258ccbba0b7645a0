//! The JSON data of a page's plots, in series of a maximum number of points.

pub(super) mod overview;
mod ports;
pub(super) mod run;
mod series;
mod topology;

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter};

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Line {
    pub name: String,
    pub x: Vec<f64>,
    pub y: Vec<f64>,
}

impl Line {
    pub(super) fn new(name: &str, points: impl Iterator<Item = (f64, f64)>) -> Self {
        let (x, y) = points.unzip();
        Self { name: name.into(), x, y }
    }
}

/// Writes numbers with six significant digits.
struct SixDigits;

impl Formatter for SixDigits {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let digits = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
        let scale = 10f64.powf((5.0 - digits).clamp(0.0, 12.0));
        let rounded = (value * scale).round() / scale;
        if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
            self.write_i64(writer, rounded as i64)
        } else {
            CompactFormatter.write_f64(writer, rounded)
        }
    }
}

/// Returns the data as the text of a `<script>`, which it cannot end; NaN and infinity are `null`.
pub(super) fn text(data: &impl Serialize) -> String {
    let mut json = Vec::new();
    let written = data.serialize(&mut Serializer::with_formatter(&mut json, SixDigits));
    written.expect("plain numbers and strings always serialise");
    String::from_utf8(json).expect("JSON is text").replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_six_digits() {
        let all = [0.0, 1.0, -2.5, 1_234.567_89, 1e9 + 0.4, 0.000_123_456_78, f64::NAN, f64::INFINITY];
        assert_eq!(text(&all), "[0,1,-2.5,1234.57,1000000000,0.000123457,null,null]");
        assert_eq!(text(&"</script>"), "\"\\u003c/script>\"");
    }
}
