//! Durations of the steps of a task, and skipped steps.

use std::time::{Duration, Instant};

use crate::sh::{Failure, Outcome};

#[derive(Debug, Default)]
pub struct Steps {
    done: Vec<(&'static str, Duration)>,
    /// As `step: reason`.
    skipped: Vec<String>,
    /// Skips that are not a failure with `--no-skips`.
    unchecked: Vec<String>,
}

/// Runs `task`, then prints the durations of its steps and the skipped ones, also on failure.
pub fn timed<T>(no_skips: bool, task: impl FnOnce(&mut Steps) -> Outcome<T>) -> Outcome<T> {
    let mut steps = Steps::default();
    let outcome = task(&mut steps);
    eprint!("{}", steps.report());
    let value = outcome?;
    refuse_skips(no_skips, steps.skipped.len()).map(|()| value)
}

pub fn refuse_skips(no_skips: bool, skipped: usize) -> Outcome {
    if no_skips && skipped > 0 {
        return Err(Failure::failed(format!("{skipped} skipped, named above: with `--no-skips` all must run")));
    }
    Ok(())
}

/// Parses arguments that may only be `--no-skips`.
pub fn reads_no_skips(arguments: &[String]) -> Outcome<bool> {
    match arguments {
        [] => Ok(false),
        [flag] if flag == "--no-skips" => Ok(true),
        [first, rest @ ..] => {
            let wrong = rest.iter().chain([first]).find(|argument| *argument != "--no-skips").unwrap_or(first);
            Err(Failure::unable(format!("unexpected argument `{wrong}`; allowed: --no-skips, once")))
        }
    }
}

impl Steps {
    #[expect(clippy::disallowed_methods, reason = "it measures how long the part takes")]
    pub fn run<T>(&mut self, name: &'static str, part: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let begin = Instant::now();
        let outcome = part();
        self.done.push((name, begin.elapsed()));
        outcome
    }

    /// Runs a step that not every machine supports: if it starts nothing (code 2) it is skipped.
    pub fn run_where_possible(&mut self, name: &'static str, part: impl FnOnce() -> Outcome) -> Outcome {
        let outcome = self.run(name, part);
        skip_into(&mut self.skipped, name, outcome)
    }

    /// The same for a tool outside of Rust, which may be missing even with `--no-skips`.
    pub fn run_where_installed(&mut self, name: &'static str, part: impl FnOnce() -> Outcome) -> Outcome {
        let outcome = self.run(name, part);
        skip_into(&mut self.unchecked, name, outcome)
    }

    fn report(&self) -> String {
        let line = |name: &str, time: Duration| format!("{:>7.1} s  {name}\n", time.as_secs_f64());
        let mut text: String = self.done.iter().map(|(name, time)| line(name, *time)).collect();
        if self.done.len() > 1 {
            text += &line("in all", self.done.iter().map(|(_, time)| time).sum());
        }
        text.extend(self.skipped.iter().map(|skipped| format!("skipped {skipped}\n")));
        text.extend(self.unchecked.iter().map(|unchecked| format!("NOT CHECKED {unchecked}\n")));
        text
    }
}

fn skip_into(list: &mut Vec<String>, name: &str, outcome: Outcome) -> Outcome {
    match outcome {
        Err(Failure { message, code: 2 }) => {
            list.push(format!("{name}: {message}"));
            Ok(())
        }
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_starts_nothing_is_skipped_and_one_that_fails_is_not() {
        let mut steps = Steps::default();
        assert!(steps.run_where_possible("a", || Ok(())).is_ok());
        assert!(steps.run_where_possible("b", || Err(Failure::unable("no QEMU"))).is_ok());
        assert!(steps.run_where_possible("c", || Err(Failure::failed("it crashed"))).is_err());
        assert_eq!(steps.skipped, ["b: no QEMU"]);
        assert_eq!(steps.done.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn the_report_has_each_part_their_sum_and_what_was_skipped() {
        let done = vec![("build", Duration::from_millis(61_240)), ("tests", Duration::from_secs(2))];
        let steps = Steps { done, skipped: vec!["kernel: no QEMU".into()], unchecked: Vec::new() };
        assert_eq!(steps.report(), "   61.2 s  build\n    2.0 s  tests\n   63.2 s  in all\nskipped kernel: no QEMU\n");
    }

    #[test]
    fn skipped_checks_are_reported_and_not_failures() {
        let mut steps = Steps::default();
        assert!(steps.run_where_installed("advisories", || Err(Failure::unable("no cargo-deny"))).is_ok());
        assert!(steps.run_where_installed("advisories", || Err(Failure::failed("RUSTSEC-2026-0001"))).is_err());
        assert!(steps.report().ends_with("NOT CHECKED advisories: no cargo-deny\n"), "{}", steps.report());
        assert!(timed(true, |steps| steps.run_where_installed("b", || Err(Failure::unable("it is missing")))).is_ok());
    }

    #[test]
    fn with_no_skips_a_skip_is_a_failure() {
        let task = |steps: &mut Steps| steps.run_where_possible("b", || Err(Failure::unable("no QEMU")));
        assert!(timed(false, task).is_ok());
        assert_eq!(timed(true, task).unwrap_err().code, 1);
        assert!(refuse_skips(true, 0).is_ok());
        let read = |words: &[&str]| reads_no_skips(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert!(!read(&[]).unwrap() && read(&["--no-skips"]).unwrap());
        assert!(read(&["--no-skips", "x"]).unwrap_err().message.contains("`x`"));
    }
}
