//! Parser of failure files.

use super::file::{Device, Failure, FailureFile, Process};
use crate::FileError;

const DEVICES: [(&str, Device); 3] = [("cable", Device::Cable), ("switch", Device::Switch), ("nic", Device::Nic)];
const FAILURES: [(&str, Failure); 4] = [
    ("periodic-packet-loss", Failure::Periodic),
    ("degradation", Failure::Degradation),
    ("fail", Failure::Fail),
    ("ber", Failure::BitErrors),
];
const ALLOWED: &str = "allowed: Cable-, Switch- or NIC- with Fail, Degradation, BER or Periodic-Packet-Loss, alone or with \
                       -Start-After, -Period, -Max-Percent, -Duration, -Duration-Time, of Periodic-Packet-Loss also -PktNr \
                       and -Drop-Period, of Switch-Degradation also -Percent; Random-Packet-Drop, \
                       Random-Packet-Drop-Rate, Only-US-CS-Cable, Stop-Failures-After";

/// Upper limit of times, in ps, so that sums do not overflow.
const FOREVER_PS: f64 = 1e18;

/// Relative rounding error allowed for a share given as a logarithm.
const MOST_OFF: f64 = 0.002;

/// A process while it is parsed.
struct Draft {
    process: Process,
    on: bool,
    lasts: bool,
    duration_ps: Option<u64>,
    has_share: bool,
}

struct Value<'a> {
    key: &'a str,
    text: &'a str,
    line: usize,
    column: usize,
}

impl FailureFile {
    /// Parses `text`.
    ///
    /// # Errors
    /// Line and column of an unknown key, an invalid value, or an inconsistency.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let mut file = Self::default();
        let mut drafts: Vec<Draft> = Vec::new();
        let (mut random, mut random_ppm) = (false, None);
        for (index, full) in text.lines().enumerate() {
            let Some(value) = value(full, index + 1)? else { continue };
            match value.key.to_ascii_lowercase().as_str() {
                "random-packet-drop" => random = value.switch()?,
                "random-packet-drop-rate" => random_ppm = Some(value.exponent()?),
                "only-us-cs-cable" => file.upper_only = value.switch()?,
                "cable-fail-percent-per-switch" => value.off("a share of the failed cables for each switch")?,
                "stop-failures-after" => file.stop_ps = Some(value.time()?),
                key => draft(&mut drafts, key, &value)?,
            }
        }
        if random {
            let missing =
                || error(1, 1, "`Random-Packet-Drop` is on; allowed: with `Random-Packet-Drop-Rate`, 0 to 6".into());
            file.random_ppm = random_ppm.ok_or_else(missing)?;
        }
        file.processes = drafts.into_iter().filter(|draft| draft.on).map(Draft::finish).collect::<Result<_, _>>()?;
        Ok(file)
    }
}

fn value(full: &str, line: usize) -> Result<Option<Value<'_>>, FileError> {
    let text = full.split('#').next().unwrap_or_default();
    let column = |part: &str| 1 + text[..part.as_ptr() as usize - text.as_ptr() as usize].chars().count();
    if text.trim().is_empty() {
        return Ok(None);
    }
    let Some((key, rest)) = text.split_once(':') else {
        return Err(error(line, column(text.trim()), "not `Key: value`; allowed: one of these in a line".into()));
    };
    let (key, text) = (key.trim(), rest.trim());
    if text.is_empty() {
        return Err(error(line, column(key), format!("`{key}` needs a value; allowed: `{key}: value`")));
    }
    Ok(Some(Value { key, text, line, column: column(text) }))
}

/// Applies `key: value` to its process.
fn draft(drafts: &mut Vec<Draft>, key: &str, value: &Value<'_>) -> Result<(), FileError> {
    let unknown = || error(value.line, 1, format!("unknown key `{}`; {ALLOWED}", value.key));
    let (device, rest) = key.split_once('-').ok_or_else(unknown)?;
    let device = DEVICES.iter().find(|(name, _)| *name == device).ok_or_else(unknown)?.1;
    let (name, failure) = FAILURES.iter().find(|(name, _)| rest.starts_with(name)).ok_or_else(unknown)?;
    let index = drafts.iter().position(|draft| (draft.process.device, draft.process.failure) == (device, *failure));
    let index = index.unwrap_or_else(|| {
        let process = Process::new(device, *failure);
        drafts.push(Draft { process, on: false, lasts: false, duration_ps: None, has_share: false });
        drafts.len() - 1
    });
    let draft = &mut drafts[index];
    let process = &mut draft.process;
    match (&rest[name.len()..], failure) {
        ("", _) => (draft.on, process.line) = (value.switch()?, value.line),
        ("-start-after", _) => process.start_ps = value.time()?,
        ("-period", _) => process.period_ps = value.time()?,
        ("-max-percent", _) => (process.share, draft.has_share) = (value.number(1e-9, 1.0)?, true),
        ("-duration", _) => draft.lasts = value.switch()?,
        ("-duration-time", _) => draft.duration_ps = Some(value.time()?),
        ("-pktnr", Failure::Periodic) => process.lose = value.whole(1, 1_000_000_000)?,
        ("-drop-period", Failure::Periodic) => process.pass = value.whole(0, 1_000_000_000)?,
        ("-percent", Failure::Degradation) => process.slowdown = value.number(0.01, 1.0)?,
        _ => return Err(unknown()),
    }
    Ok(())
}

impl Draft {
    fn finish(self) -> Result<Process, FileError> {
        let mut process = self.process;
        let fail = |message: &str| error(process.line, 1, message.into());
        if self.lasts {
            let duration = self.duration_ps.filter(|duration| *duration > 0);
            process.duration_ps =
                Some(duration.ok_or_else(|| fail("its `-Duration` is on; allowed: with a `-Duration-Time` above 0"))?);
        }
        if process.failure == Failure::BitErrors && !self.has_share {
            return Err(fail("bit errors need `-Max-Percent`; allowed: share of corrupted frames, up to 1"));
        }
        let ppm = process.share * 1e6;
        if process.failure == Failure::BitErrors
            && process.period_ps == 0
            && (ppm.round() < 1.0 || ppm.round() / 1e6 != process.share)
        {
            return Err(fail(
                "`-Max-Percent` of bit errors of all frames is finer than a millionth; allowed: 0.000001 to 1, at most six decimals",
            ));
        }
        if process.failure == Failure::Periodic && process.pass == 0 {
            return Err(fail("periodic loss needs `-Drop-Period`; allowed: frames between losses, from 1"));
        }
        Ok(process)
    }
}

impl Value<'_> {
    fn refused(&self, allowed: &str) -> FileError {
        error(self.line, self.column, format!("`{}` is {}; allowed: {allowed}", self.key, self.text))
    }

    fn switch(&self) -> Result<bool, FileError> {
        match self.text.to_ascii_lowercase().as_str() {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(self.refused("ON, OFF")),
        }
    }

    /// Accepts OFF for a feature that is not supported.
    fn off(&self, meaning: &str) -> Result<(), FileError> {
        match self.switch()? {
            false => Ok(()),
            true => Err(self.refused(&format!("OFF, as {meaning} is not supported"))),
        }
    }

    fn number(&self, min: f64, max: f64) -> Result<f64, FileError> {
        let number = self.text.parse().ok().filter(|number| (min..=max).contains(number));
        number.ok_or_else(|| self.refused(&format!("{min} to {max}")))
    }

    fn whole(&self, min: u32, max: u32) -> Result<u32, FileError> {
        let number = self.text.parse().ok().filter(|number| (min..=max).contains(number));
        number.ok_or_else(|| self.refused(&format!("a whole number from {min} to {max}")))
    }

    /// A share of frames by the negative of its decimal logarithm, in millionths.
    fn exponent(&self) -> Result<u32, FileError> {
        let ppm = 1e6 * 10f64.powf(-self.number(0.0, 6.0)?);
        match (ppm.round() - ppm).abs() <= ppm * MOST_OFF {
            true => Ok(ppm.round() as u32),
            false => Err(self.refused("0 to 6, for a loss rate within 0.2 % of a multiple of a millionth")),
        }
    }

    fn time(&self) -> Result<u64, FileError> {
        let number = self.text.parse().ok().filter(|ps: &f64| ps.is_finite() && *ps >= 0.0 && ps.fract() == 0.0);
        number.map(|ps| ps.min(FOREVER_PS) as u64).ok_or_else(|| self.refused("an integer of picoseconds from 0"))
    }
}

fn error(line: usize, column: usize, message: String) -> FileError {
    FileError { line, column, message }
}
