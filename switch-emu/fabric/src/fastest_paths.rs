//! The fastest of the shortest paths in fabrics with uneven paths.

use super::{Network, ShortestPaths};

/// The Pareto-optimal shortest paths to a leaf: for each one, no other has at most its latency, its
/// time per byte, and its time per byte on the slowest link. An even fabric has one per switch.
#[derive(Debug)]
pub struct FastestPaths<'a> {
    network: &'a Network,
    routes: &'a ShortestPaths,
    leaf: usize,
    /// By switch the range of its paths in `paths`, once computed.
    of_switch: Vec<Option<(u32, u32)>>,
    paths: Vec<Path>,
}

/// A link, the path that continues at its end, and the totals of both.
#[derive(Clone, Copy, Debug)]
struct Path {
    link: u32,
    rest: u32,
    latency_ps: u64,
    ps_per_byte: f64,
    /// Time per byte of the slowest link, in ps.
    slowest: f64,
}

impl Path {
    fn is_as_fast_as(&self, other: &Self) -> bool {
        let [own, other] = [self, other].map(|path| (path.latency_ps, path.ps_per_byte, path.slowest));
        own.0 <= other.0 && own.1 <= other.1 && own.2 <= other.2
    }
}

impl<'a> FastestPaths<'a> {
    /// `to` is a switch with hosts.
    pub fn new(network: &'a Network, routes: &'a ShortestPaths, to: usize) -> Self {
        let mut of_switch = vec![None; network.switches.len()];
        of_switch[to] = Some((0, 1));
        let end = Path { link: u32::MAX, rest: 0, latency_ps: 0, ps_per_byte: 0.0, slowest: 0.0 };
        Self { network, routes, leaf: routes.leaf_number(to).unwrap_or_default(), of_switch, paths: vec![end] }
    }

    /// Returns the least time of a frame of `bytes` from the queue of `from`; 0 without a path.
    pub fn least_ps(&mut self, from: usize, bytes: u64) -> u64 {
        let network = self.network;
        self.least(from, |links| links.map(|link| network.transit_ps(link, bytes)).sum()).unwrap_or(0)
    }

    /// Returns the minimum of `of` over the paths from `from`; `None` without a path.
    pub fn least<T: Ord>(&mut self, from: usize, of: impl Fn(&mut dyn Iterator<Item = usize>) -> T) -> Option<T> {
        let (first, end) = self.search(from);
        (first..end).map(|path| of(&mut self.links(path))).min()
    }

    fn links(&self, path: u32) -> impl Iterator<Item = usize> {
        let at = |number: u32| (number > 0).then(|| self.paths[number as usize]);
        std::iter::successors(at(path), move |path| at(path.rest)).map(|path| path.link as usize)
    }

    /// Returns the range of the paths from a switch.
    fn search(&mut self, from: usize) -> (u32, u32) {
        if let Some(known) = self.of_switch[from] {
            return known;
        }
        let Self { network, routes, leaf, .. } = *self;
        let ends = |link: &u32| Some((*link, network.links[*link as usize].to.switch()?));
        let links = routes.next(from, leaf).iter().filter_map(ends);
        // Terminates, as every link leads nearer.
        for (_, next) in links.clone() {
            self.search(next);
        }
        let first = self.paths.len();
        for (link, next) in links {
            let (rest, end) = self.search(next);
            for rest in rest..end {
                self.add(first, link, rest);
            }
        }
        let found = (first as u32, self.paths.len() as u32);
        self.of_switch[from] = Some(found);
        found
    }

    /// Adds a path to those from `first` on, and removes dominated ones.
    fn add(&mut self, first: usize, link: u32, rest: u32) {
        let behind = self.paths[rest as usize];
        let own = 8e12 / self.network.links[link as usize].rate_bps as f64;
        let added = Path {
            link,
            rest,
            latency_ps: behind.latency_ps + self.network.latency_ps(link as usize),
            ps_per_byte: behind.ps_per_byte + own,
            slowest: behind.slowest.max(own),
        };
        if self.paths[first..].iter().any(|path| path.is_as_fast_as(&added)) {
            return;
        }
        // No path refers to these yet.
        let mut kept = first;
        for at in first..self.paths.len() {
            let path = self.paths[at];
            if !added.is_as_fast_as(&path) {
                self.paths[kept] = path;
                kept += 1;
            }
        }
        self.paths.truncate(kept);
        self.paths.push(added);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tests::{DRAGONFLY, PAIR};

    /// Returns the minimum time over all shortest paths, one by one.
    fn plain_ps(network: &Network, routes: &ShortestPaths, from: usize, leaf: usize, bytes: u64) -> u64 {
        let over = |link: &u32| {
            let link = *link as usize;
            let next = network.links[link].to.switch().unwrap();
            network.transit_ps(link, bytes) + plain_ps(network, routes, next, leaf, bytes)
        };
        routes.next(from, leaf).iter().map(over).min().unwrap_or(0)
    }

    /// As [`plain_ps`], for a message of [`PACKETS`] packets of `bytes`, limited by the slowest
    /// link.
    fn plain_message_ps(
        network: &Network,
        routes: &ShortestPaths,
        from: usize,
        leaf: usize,
        bytes: u64,
        so_far: [u64; 2],
    ) -> u64 {
        let [sum, slowest] = so_far;
        let over = |link: &u32| {
            let next = network.links[*link as usize].to.switch().unwrap();
            let own = network.transit_ps(*link as usize, bytes);
            let slowest = slowest.max(own - network.latency_ps(*link as usize));
            plain_message_ps(network, routes, next, leaf, bytes, [sum + own, slowest])
        };
        routes.next(from, leaf).iter().map(over).min().unwrap_or(sum + PACKETS * slowest)
    }

    const PACKETS: u64 = 9;

    proptest! {
        #[test]
        fn no_shortest_path_is_faster(
            rates in prop::collection::vec((1u64..9, 0u64..9), 8..80),
            bytes in prop::collection::vec(0u64..9_000, 1..4),
        ) {
            for mut network in [PAIR.network(), DRAGONFLY.network()] {
                for (link, (rate, latency)) in network.links.iter_mut().zip(rates.iter().cycle()) {
                    (link.rate_bps, link.latency_ps) = (rate * 50_000_000_000, latency * 20_000);
                }
                let routes = ShortestPaths::new(&network, |link| link % 7 != 3);
                for (number, leaf) in routes.leaves().iter().enumerate() {
                    let mut fastest = FastestPaths::new(&network, &routes, *leaf);
                    for (from, bytes) in (0..network.switches.len()).zip(bytes.iter().cycle()) {
                        let expected = plain_ps(&network, &routes, from, number, *bytes);
                        let found = fastest.least_ps(from, *bytes);
                        // Rounding error of a few links.
                        prop_assert!((expected..expected + 8).contains(&found), "{found}, not {expected}");
                        let expected = plain_message_ps(&network, &routes, from, number, *bytes, [0, 0]);
                        let found = fastest.least(from, |links| {
                            let (sum, slowest) = links.fold((0, 0), |(sum, slowest): (u64, u64), link| {
                                let own = network.transit_ps(link, *bytes);
                                (sum + own, slowest.max(own - network.latency_ps(link)))
                            });
                            sum + PACKETS * slowest
                        });
                        let found = found.unwrap_or(0);
                        prop_assert!((expected..expected + 8 + PACKETS).contains(&found), "{found}, not {expected}");
                    }
                }
            }
        }
    }
}
