//! `spray send` and `spray recv` with keys while links, processes and the machine fail at random.
//!
//! `CHAOS_SEED` (1) and `CHAOS_SECONDS` (120) determine the events; manually, with the program in
//! the same profile: `CHAOS_SECONDS=1800 CHAOS_SEED=7 cargo test --profile quick -p spray-tests
//! --test namespaces -- --ignored --nocapture chaos::`. `CHAOS_ONLY=N` runs a single episode. The
//! system's clock is not changed, because other programs of the machine need it.
#![expect(clippy::disallowed_methods, reason = "it ends after the time that it is given")]

use std::time::{Duration, Instant};

use spray_tests::chaos::{Episode, Run, episodes};
use spray_tests::turn;

#[test]
#[ignore = "cargo xtask ci runs it"]
fn what_is_reported_as_delivered_has_arrived() {
    let Some(_turn) = turn() else { return };
    let number = |name: &str, otherwise| std::env::var(name).map_or(otherwise, |text| text.parse().unwrap());
    let (seed, seconds) = (number("CHAOS_SEED", 1), number("CHAOS_SECONDS", 120));
    let mut hint = ReproductionHint { seed, seconds, episodes: Vec::new() };
    let begun = Instant::now();
    let mut run = Run::new(seed);
    // Failing transfers take longer than planned: the end of the list may be omitted.
    let only = number("CHAOS_ONLY", u64::MAX);
    for episode in episodes(seed, seconds).into_iter().filter(|it| only == u64::MAX || it.number == only) {
        if begun.elapsed() > Duration::from_secs(seconds) {
            break;
        }
        eprintln!("{:?}: {episode:?}", begun.elapsed());
        hint.episodes.push(episode.clone());
        run.episode(&episode);
    }
    let figures = run.finish();
    eprintln!("seed {seed}, {} episodes in {:?}: {figures:#?}", hint.episodes.len(), begun.elapsed());
    assert!(figures.transfers[0] > hint.episodes.len() as u64, "too few events");
}

/// Prints how to repeat a run that fails.
struct ReproductionHint {
    seed: u64,
    seconds: u64,
    episodes: Vec<Episode>,
}

impl Drop for ReproductionHint {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("CHAOS_SEED={} CHAOS_SECONDS={} repeats it. What happened:", self.seed, self.seconds);
            self.episodes.iter().for_each(|episode| eprintln!("{episode:?}"));
        }
    }
}
