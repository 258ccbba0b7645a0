//! `--paths`: which share of the data packets took which path, of those that `spray paths --json` has found.

use std::net::IpAddr;
use std::path::Path as File;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use serde::{Deserialize, Serialize};
use spray_nic::{Choice, ChoiceTap, Ev, Time};
use spray_settings::{MAX_SETTINGS_BYTES, read_file};

use crate::failure::{Failure, Outcome};

/// Data packets by UDP source port, which stands for their entropy value: of all connections and threads. 512 KiB.
#[derive(Clone, Debug)]
pub(super) struct Counts(Arc<[AtomicU64]>);

impl Default for Counts {
    fn default() -> Self {
        Self((0..=u16::MAX).map(|_| AtomicU64::new(0)).collect())
    }
}

impl ChoiceTap for Counts {
    fn on_choice(&mut self, _now: Time, ev: Ev, evs: u32, _choice: Choice) {
        self.0[usize::from(ev.port(evs).number())].fetch_add(1, Relaxed);
    }
}

impl Counts {
    /// Nothing that was counted counts.
    pub(super) fn reset(&self) {
        self.0.iter().for_each(|count| count.store(0, Relaxed));
    }
}

/// What `spray paths --json` has found, as far as it is read.
#[derive(Debug, Deserialize)]
struct Found {
    paths: Vec<Path>,
}

/// A path, and the ports whose packets take it.
#[derive(Debug, Deserialize)]
struct Path {
    hops: Vec<Option<IpAddr>>,
    ports: Vec<u16>,
}

/// The paths, and what is counted of them.
#[derive(Debug)]
pub(super) struct Shares {
    paths: Vec<Path>,
    pub counts: Counts,
}

/// What a path has carried. The fields are those of `--json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Share {
    /// Who answered at each hop; none: of ports that are on no path of the file.
    hops: Vec<Option<IpAddr>>,
    packets: u64,
    share: f64,
}

impl Shares {
    /// Reads what `spray paths --json` has written.
    ///
    /// # Errors
    /// 2 when it cannot be read, or is something else.
    pub(super) fn read(file: &File) -> Outcome<Self> {
        let text = read_file(file, MAX_SETTINGS_BYTES)
            .map_err(|error| Failure::refused(format!("{}: {error}", file.display())))?;
        let Found { paths } = serde_json::from_str(&text).map_err(|error| {
            let file = file.display();
            Failure::refused(format!(
                "{file}: {error}; it takes what `spray paths ADDRESS --json` prints: spray paths ADDRESS --json > {file}"
            ))
        })?;
        Ok(Self { paths, counts: Counts::default() })
    }

    /// The shares of the paths, and of ports that are on none of them where such were used.
    pub(super) fn all(&self) -> Vec<Share> {
        let counted = |port: &u16| self.counts.0[usize::from(*port)].load(Relaxed);
        let all: u64 = (0..=u16::MAX).map(|port| counted(&port)).sum();
        let share = |hops: &[Option<IpAddr>], packets: u64| Share {
            hops: hops.to_vec(),
            packets,
            share: packets as f64 / all.max(1) as f64,
        };
        let mut shares: Vec<Share> =
            self.paths.iter().map(|path| share(&path.hops, path.ports.iter().map(counted).sum())).collect();
        let others = all.saturating_sub(shares.iter().map(|share| share.packets).sum());
        if others > 0 {
            shares.push(share(&[], others));
        }
        shares
    }
}

/// The heading of [`Share::line`].
pub(super) const HEAD: &str = "   packets   share  path";

impl Share {
    /// A line for a terminal.
    pub(super) fn line(&self) -> String {
        let hop = |hop: &Option<IpAddr>| hop.map_or_else(|| "*".into(), |hop| hop.to_string());
        let path = match &self.hops[..] {
            [] => "of ports that `spray paths` was not asked for".into(),
            hops => hops.iter().map(hop).collect::<Vec<String>>().join(" > "),
        };
        format!("{:>10}  {:>4.1} %  {path}", self.packets, 100.0 * self.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_of_the_path_of_their_port() {
        let folder = spray_test_support::Folder::new();
        let file = folder.path().join("paths.json");
        let first = Ev::new(7).port(32).number();
        let second = Ev::new(9).port(32).number();
        let paths = format!(
            r#"{{"from": "10.0.0.1", "paths": [{{"hops": ["10.1.0.1", null], "ports": [{first}], "sent": 1}}, {{"hops": [], "ports": [{second}]}}]}}"#
        );
        std::fs::write(&file, paths).unwrap();
        let shares = Shares::read(&file).unwrap();
        let mut tap = shares.counts.clone();
        for ev in [7, 7, 7, 9, 20] {
            tap.on_choice(Time::ZERO, Ev::new(ev), 32, Choice::Chosen);
        }
        let all = shares.all();
        assert_eq!(all.iter().map(|share| share.packets).collect::<Vec<_>>(), [3, 1, 1]);
        assert_eq!((all[0].share, all[0].line().as_str()), (0.6, "         3  60.0 %  10.1.0.1 > *"));
        shares.counts.reset();
        assert_eq!(shares.all().iter().map(|share| share.share).collect::<Vec<_>>(), [0.0, 0.0]);
        std::fs::write(&file, "{}").unwrap();
        let why = Shares::read(&file).unwrap_err().to_string();
        assert!(why.contains("spray paths ADDRESS --json"), "{why}");
    }
}
