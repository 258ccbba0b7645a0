//! Timed link events, and the state of a link under overlapping events.

use std::collections::BTreeSet;

use crate::fabric::{DropEvery, Flap, LinkChange, LinkState};

/// A change of one or more directed links from `at_ps` until `until_ps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkEvent {
    /// Name of the links in the scenario: `leaf0->spine1` (one direction) or `leaf0-spine1` (both).
    pub name: String,
    /// Indices into [`Network::links`](super::Network::links).
    pub links: Vec<usize>,
    /// Start, in ps of scenario time.
    pub at_ps: u64,
    /// End; `None` is never.
    pub until_ps: Option<u64>,
    /// What happens.
    pub action: LinkAction,
}

/// The effect of an event on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkAction {
    /// The link drops every frame; routing learns of start and end after `convergence_ps`.
    Down {
        /// Convergence time of routing; [`u64::MAX`] is never.
        convergence_ps: u64,
    },
    /// The link drops every frame, unnoticed by routing.
    SilentDrop,
    /// The rate is reduced to a fraction, in millionths.
    Rate {
        /// [`MIN_RATE_PPM`](crate::MIN_RATE_PPM) to 999,999.
        ppm: u32,
    },
    /// The link drops frames at random with this probability, in millionths.
    Loss {
        /// 1 to 1,000,000.
        ppm: u32,
    },
    /// The link drops every frame for `down_ps` of every `period_ps`, unnoticed by routing.
    Flap {
        /// Length of a cycle.
        period_ps: u64,
        /// Part of the cycle in which frames are dropped.
        down_ps: u64,
    },
    /// The link drops `lose` frames after every `pass`, unnoticed by routing. Simulator only.
    Periodic(DropEvery),
}

impl LinkAction {
    /// Returns the action's name in a scenario.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Down { .. } => "down",
            Self::SilentDrop => "silent-drop",
            Self::Rate { .. } => "rate",
            Self::Loss { .. } => "loss",
            Self::Flap { .. } => "flap",
            Self::Periodic(_) => "periodic-loss",
        }
    }

    /// Returns the fraction of remaining rate, of lost frames, or of down time.
    pub fn share(&self) -> Option<f64> {
        match self {
            Self::Rate { ppm } | Self::Loss { ppm } => Some(f64::from(*ppm) / 1e6),
            Self::Flap { period_ps, down_ps } => Some(*down_ps as f64 / *period_ps as f64),
            Self::Periodic(DropEvery { pass, lose }) => Some(f64::from(*lose) / f64::from(pass + lose)),
            Self::Down { .. } | Self::SilentDrop => None,
        }
    }
}

impl LinkEvent {
    /// Whether it is in force at `now_ps`, with start and end delayed by `delay_ps`.
    pub fn active(&self, now_ps: u64, delay_ps: u64) -> bool {
        let end = self.until_ps.map_or(u64::MAX, |until| until.saturating_add(delay_ps));
        self.at_ps.saturating_add(delay_ps) <= now_ps && now_ps < end
    }
}

/// State of a link at `now_ps`. Rates multiply, to the nearest millionth, and losses are
/// independent. Of flaps and of periodic losses the last one counts.
fn state(events: &[&LinkEvent], now_ps: u64) -> LinkState {
    let mut state = LinkState::UP;
    for event in events.iter().filter(|event| event.active(now_ps, 0)) {
        match event.action {
            LinkAction::Down { .. } => state.up = false,
            LinkAction::SilentDrop => state.silent_drop = true,
            LinkAction::Rate { ppm } => state.rate_ppm = scale(state.rate_ppm, ppm),
            LinkAction::Loss { ppm } => {
                let (kept, keeps) = (1_000_000 - state.loss_ppm, 1_000_000 - ppm);
                state.loss_ppm = 1_000_000 - scale(kept, keeps);
            }
            LinkAction::Flap { period_ps, down_ps } => state.flap = Some(Flap { period_ps, down_ps }),
            LinkAction::Periodic(drop_every) => state.drop_every = Some(drop_every),
        }
    }
    state
}

fn scale(a: u32, b: u32) -> u32 {
    ((u64::from(a) * u64::from(b) + 500_000) / 1_000_000) as u32
}

/// Returns the changes of each of `links` links under `events`, in order of time.
pub fn changes(events: &[LinkEvent], links: usize) -> Vec<Vec<LinkChange>> {
    let mut own: Vec<Vec<&LinkEvent>> = vec![Vec::new(); links];
    for event in events {
        event.links.iter().for_each(|link| own[*link].push(event));
    }
    own.iter().map(|events| changes_of(events)).collect()
}

fn changes_of(events: &[&LinkEvent]) -> Vec<LinkChange> {
    let times: BTreeSet<u64> = events.iter().flat_map(|event| [Some(event.at_ps), event.until_ps]).flatten().collect();
    let mut changes: Vec<LinkChange> = Vec::new();
    for at_ps in times {
        let state = state(events, at_ps);
        if changes.last().map_or(LinkState::UP, |last| last.state) != state {
            changes.push(LinkChange { at_ps, state });
        }
    }
    changes
}

/// Returns the start of each routing epoch, ascending from 0.
//= docs/specs/switching.md#SWC-22 routing converges after G
pub fn epoch_starts(events: &[LinkEvent]) -> Vec<u64> {
    let mut times = BTreeSet::from([0]);
    for event in events {
        if let LinkAction::Down { convergence_ps } = event.action {
            let ends = [Some(event.at_ps), event.until_ps].into_iter().flatten();
            times.extend(ends.filter_map(|at_ps| at_ps.checked_add(convergence_ps)));
        }
    }
    times.into_iter().collect()
}

/// Whether routing knows at `now_ps` that `link` is down.
pub fn known_down(events: &[LinkEvent], link: usize, now_ps: u64) -> bool {
    events.iter().any(|event| match event.action {
        LinkAction::Down { convergence_ps } => event.links.contains(&link) && event.active(now_ps, convergence_ps),
        _ => false,
    })
}
