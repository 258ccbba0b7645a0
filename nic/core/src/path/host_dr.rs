//! Host DR (OFAN §6, after DRB): rotates over the switches where shortest paths turn downwards.

use rand_core::RngCore;
use spray_wire::EvPort;

use super::known_paths::{KnownPaths, Order};
use super::labels::Labels;
use super::{Balancer, Ev, Now, Path, PathEvs, Rng, Scheme, SendInfo, draw_below, settings};
use crate::rng;
use crate::units::ByteSize;

settings! {
    /// The settings of [`HostDr`].
    pub struct HostDrConfig {
        /// Labels that take turns if the engine does not provide the paths.
        #[schemars(range(min = 1, max = 1_024))]
        pub labels: u16 = 64,
        /// Packets of at most this many wire bytes rotate apart from larger ones.
        #[schemars(range(min = 0, max = 65_535))]
        pub small_bytes: ByteSize = ByteSize::new(256),
        /// The order of the turns.
        pub order: HostDrOrder = HostDrOrder::Drawn,
    }

    /// The order of the turns.
    #[derive(Default)]
    pub enum HostDrOrder {
        /// Each connection draws an order.
        #[default]
        Drawn,
        /// The engine's order of the paths.
        Told,
    }
}

/// Takes paths in turn, separately for full and small packets.
#[derive(Clone, Debug)]
pub struct HostDr {
    paths: KnownPaths,
    labels: Labels,
    /// The next path of full packets, and that of small ones.
    //= docs/specs/host-dr.md#HDR-8 turns of one connection
    turns: [u16; 2],
    small_bytes: u32,
    drawn: bool,
    seed: u64,
}

impl Scheme for HostDr {
    type Config = HostDrConfig;

    /// Two positions, and 64 paths.
    const STATE_BYTES: usize = 2 * size_of::<u16>() + 64 * size_of::<Ev>();
    const WANTS_PATHS: bool = true;
    const ACKS_IN_TURN: bool = true;

    //= docs/specs/host-dr.md#HDR-6 without a list
    fn make(own: &HostDrConfig, path: &Path, rng: &mut Rng) -> Self {
        let seed = path.seed.unwrap_or_else(|| rng.next_u64());
        Self {
            paths: KnownPaths::default(),
            labels: Labels::new(&Path { seed: Some(seed), ..*path }, own.labels, rng),
            turns: [0; 2],
            small_bytes: own.small_bytes.bytes().min(u32::MAX.into()) as u32,
            drawn: own.order == HostDrOrder::Drawn,
            seed,
        }
    }
}

//= docs/specs/host-dr.md#HDR-7 no feedback
impl Balancer for HostDr {
    //= docs/specs/host-dr.md#HDR-1 rotation over turning switches
    //= docs/specs/host-dr.md#HDR-2 classes of packets
    fn next_ev(&mut self, _now: Now<'_>, packet: &SendInfo, _rng: &mut Rng) -> Ev {
        let turn = &mut self.turns[usize::from(packet.bytes <= self.small_bytes)];
        self.paths.in_turn(turn).unwrap_or_else(|| {
            let label = *turn;
            *turn = self.labels.after(label);
            self.labels.ev(label)
        })
    }

    //= docs/specs/host-dr.md#HDR-3 reachable paths
    //= docs/specs/host-dr.md#HDR-4 order of the turns
    //= docs/specs/host-dr.md#HDR-5 ignored values
    fn on_reachable(&mut self, now: Now<'_>, paths: &[PathEvs]) {
        let order = if self.drawn { Order::Drawn(self.seed) } else { Order::Told };
        self.paths = KnownPaths::new(paths, now.path.evs, order);
        let count = if self.paths.is_empty() { self.labels.count() } else { self.paths.count() };
        let starts = &mut rng::stream(self.seed, STARTS);
        self.turns = self.turns.map(|_| draw_below(count, starts));
    }
}

/// Turns of a receiver's ACKs over the return paths, a separate class of packets.
//= docs/specs/host-dr.md#HDR-2 classes of packets
#[derive(Clone, Debug)]
pub struct AckTurns {
    paths: KnownPaths,
    turn: u16,
    evs: u16,
    seed: u64,
}

impl AckTurns {
    /// Creates one without paths. The order will come from the connection's seed.
    pub fn new(path: &Path) -> Self {
        let seed = rng::stream(path.seed.unwrap_or_default(), ACKS).next_u64();
        Self { paths: KnownPaths::default(), turn: 0, evs: path.evs, seed }
    }

    /// Sets the paths.
    pub fn on_reachable(&mut self, paths: &[PathEvs]) {
        self.paths = KnownPaths::new(paths, self.evs, Order::Drawn(self.seed));
        self.turn =
            if self.paths.is_empty() { 0 } else { draw_below(self.paths.count(), &mut rng::stream(self.seed, STARTS)) };
    }

    /// Returns the port of the next ACK; `None` without paths.
    pub fn next_port(&mut self) -> Option<EvPort> {
        Some(self.paths.in_turn(&mut self.turn)?.port(self.evs.into()))
    }
}

/// Streams of the connection's seed; stream 0 draws its labels.
const STARTS: u64 = 2;
const ACKS: u64 = 3;

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::path::{AckInfo, LossInfo};
    use crate::rng::stream;
    use crate::tests::{On, path_of};

    const FULL: SendInfo = packet(4_150);
    const SMALL: SendInfo = packet(64);

    const fn packet(bytes: u32) -> SendInfo {
        SendInfo { psn: 0, bytes, retransmit: false, in_flight_bytes: 0, unacked_packets: 0, unsent_bytes: 1 }
    }

    fn balancer(seed: u64, order: HostDrOrder) -> On<HostDr> {
        let own = HostDrConfig { order, ..HostDrConfig::default() };
        let path = Path { evs: 1_000, seed: Some(seed), ..path_of(8_000_000, 10) };
        On { scheme: HostDr::make(&own, &path, &mut stream(0, 0)), path }
    }

    fn sends(balancer: &mut On<HostDr>, packet: &SendInfo, count: usize) -> Vec<u16> {
        (0..count).map(|_| balancer.scheme.next_ev(balancer.path.at_ps(0), packet, &mut stream(0, 0)).index()).collect()
    }

    //= docs/specs/host-dr.md#HDR-7 no feedback
    //= docs/specs/host-dr.md#HDR-8 turns of one connection
    #[test]
    fn neither_feedback_nor_another_connection_changes_the_turn() {
        let [mut alone, mut other] = [1, 1].map(|seed| balancer(seed, HostDrOrder::Drawn));
        set_paths(&mut alone, &[1, 2, 3, 5, 8]);
        set_paths(&mut other, &[1, 2, 3, 5, 8]);
        let first = sends(&mut alone, &FULL, 7);
        let now = other.path.at_ps(1);
        other.scheme.on_ack(now, &AckInfo { marked_packets: 1, ..AckInfo::default() }, &mut ());
        other.scheme.on_loss(now, &LossInfo::default(), &mut ());
        assert_eq!(sends(&mut other, &FULL, 7), first);
    }

    fn set_paths(balancer: &mut On<HostDr>, paths: &[u16]) {
        let paths: Vec<_> = paths.iter().map(|ev| [Ev::new(*ev); 8]).collect();
        balancer.scheme.on_reachable(balancer.path.at_ps(0), &paths);
    }

    #[test]
    fn paths_take_turns_in_an_order_per_connection() {
        //= docs/specs/host-dr.md#HDR-1 rotation over turning switches
        //= docs/specs/host-dr.md#HDR-4 order of the turns
        let paths: Vec<u16> = (10..26).collect();
        let mut orders = Vec::new();
        for seed in 0..20 {
            let mut balancer = balancer(seed, HostDrOrder::Drawn);
            set_paths(&mut balancer, &paths);
            let round = sends(&mut balancer, &FULL, 16);
            assert_eq!(sends(&mut balancer, &FULL, 16), round, "the order stays");
            let mut sorted = round.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, paths, "each once a round");
            assert!(!orders.contains(&round));
            orders.push(round);
        }
    }

    #[test]
    fn small_packets_take_separate_turns() {
        //= docs/specs/host-dr.md#HDR-2 classes of packets
        let mut balancer = balancer(1, HostDrOrder::Told);
        set_paths(&mut balancer, &[0, 1, 2, 3]);
        let (full, small) = (sends(&mut balancer, &FULL, 1)[0], sends(&mut balancer, &SMALL, 1)[0]);
        assert_eq!(sends(&mut balancer, &FULL, 2), [(full + 1) % 4, (full + 2) % 4]);
        assert_eq!(sends(&mut balancer, &SMALL, 2), [(small + 1) % 4, (small + 2) % 4]);
        assert_eq!(sends(&mut balancer, &FULL, 1), [(full + 3) % 4]);
    }

    #[test]
    fn acks_take_turns_over_the_return_paths() {
        //= docs/specs/host-dr.md#HDR-2 classes of packets
        let path = Path { evs: 1_000, seed: Some(1), ..path_of(8_000_000, 10) };
        let mut turns = AckTurns::new(&path);
        assert_eq!(turns.next_port(), None, "ports are echoed until paths are known");
        let paths: Vec<_> = (0..16).map(|ev| [Ev::new(ev); 8]).collect();
        turns.on_reachable(&paths);
        let mut round = || (0..16).filter_map(|_| turns.next_port()).collect::<Vec<_>>();
        let first = round();
        assert_eq!(round(), first);
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..16).map(|ev| Ev::new(ev).port(1_000)).collect::<Vec<_>>(), "each once a round");
        assert_ne!(first, sorted, "in a drawn order");
    }

    #[test]
    fn new_reachability_replaces_the_paths() {
        //= docs/specs/host-dr.md#HDR-3 reachable paths
        //= docs/specs/host-dr.md#HDR-5 ignored values
        let mut balancer = balancer(1, HostDrOrder::Told);
        set_paths(&mut balancer, &[0, 1, 2, 3]);
        sends(&mut balancer, &FULL, 3);
        set_paths(&mut balancer, &[2, 1_000, 60_000, 5]);
        let evs = sends(&mut balancer, &FULL, 4);
        assert!(evs == [2, 5, 2, 5] || evs == [5, 2, 5, 2], "{evs:?}: values outside the set are ignored");
        set_paths(&mut balancer, &(0..2_000).collect::<Vec<_>>());
        assert_eq!(balancer.paths.count(), 1_000);
        set_paths(&mut balancer, &[]);
        assert!(balancer.paths.is_empty());
        let mut labels = sends(&mut balancer, &FULL, 64);
        assert_eq!(sends(&mut balancer, &FULL, 64), labels);
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), 64);
    }

    #[test]
    fn without_known_paths_hashed_labels_take_turns() {
        //= docs/specs/host-dr.md#HDR-6 without a list
        let mut balancer = balancer(3, HostDrOrder::Drawn);
        let first = sends(&mut balancer, &FULL, 64);
        assert_eq!(sends(&mut balancer, &FULL, 64), first);
        assert_eq!(
            sends(&mut super::tests::balancer(3, HostDrOrder::Drawn), &FULL, 64),
            first,
            "only the seed decides"
        );
    }
}
