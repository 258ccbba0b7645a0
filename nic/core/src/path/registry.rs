//! The registry of balancers: their names, and one type for all of them.

use alloc::boxed::Box;

use super::{
    AckInfo, Admission, Balancer, Ecmp, Ev, Features, Flight, LossInfo, Now, Ops, PacketInfo, Path, PathEvs,
    PathHistory, ProbeInfo, Reps, RepsConfig, Rng, Scheme, Section, SendInfo, Time, Trailer,
};
use crate::cc::ControlConfig;
use crate::event::{Choice, Publisher};
use crate::kinds::{Custom, UnknownName, forward, kinds};

kinds! {
    /// The balancers by name.
    BalancerKind, "balancer";
    /// Any of the balancers, dispatched without a vtable except for those of other crates.
    AnyBalancer or Box<dyn Balancer>;
    /// The settings of one balancer.
    BalancerConfig or CustomBalancer;
    /// The settings of every balancer, under its name.
    Schemes;
    /// One entropy value for the whole connection.
    Ecmp "ecmp" ecmp Ecmp;
    /// A new random entropy value for every packet: oblivious packet spraying (REPS §2.2).
    Ops "ops" ops Ops;
    /// Recycled entropies with freezing (REPS §3), formerly ARCANE.
    Reps "reps" | "arcane" reps Reps;
    /// Flowcut, NIC-only: changes paths only with nothing in flight: no reordering (Flowcut §II).
    Flowcut "flowcut" flowcut super::Flowcut;
    /// PLB: one path until it stays congested (REPS §4.1).
    Plb "plb" plb super::Plb;
    /// Flowlet switching: a new path after a gap (REPS §4.1).
    Flowlet "flowlet" flowlet super::Flowlet;
    /// Presto's flowcells: a new path every 64 KiB.
    Flowcell "flowcell" flowcell super::Flowcell;
    /// MP-RDMA's path rule: the path of the last acknowledgement (REPS §4.1).
    Mprdma "mprdma" mprdma super::Mprdma;
    /// Entropy values in turn, except those with a penalty, as STrack (REPS §4.1).
    Bitmap "bitmap" bitmap super::Bitmap;
    /// Entropy values that came back unmarked, in between the bitmap's: Ultra Ethernet's default.
    Mixed "mixed" mixed super::Mixed;
    /// REPS, extended by this project: recycles all entropy values that an ACK covers, explores
    /// evenly, detects losses before the timer, and freezes when probes show that a path has
    /// failed.
    RepsPlus "reps-plus" reps_plus super::RepsPlus;
    /// Host DR: takes the paths that the engine provides in turn (OFAN §6).
    HostDr "host-dr" host_dr super::HostDr;
    /// A few subflows with a window each, like MPTCP (REPS §4.2).
    Mptcp "mptcp" mptcp super::Mptcp;
    /// A few labels in turn, each hashed to a lasting path (OFAN §3.2).
    Subflow "subflow" subflow super::Subflow;
    /// *Ordered Chaos*: subflows keep their order; the worst moves; the receiver detects losses.
    OrderedChaos "ordered-chaos" ordered_chaos super::OrderedChaos;
    /// Every entropy value in turn, regardless of feedback.
    RoundRobin "round-robin" round_robin super::RoundRobin;
    presets:
    /// REPS's core logic alone, which never freezes (REPS §3.1).
    RepsNoFreezing "reps-no-freezing" Reps reps RepsConfig::without_freezing;
    /// REPS that leaves freezing mode when a probe of the failed path is answered (REPS §3.2).
    RepsProbing "reps-probing" Reps reps RepsConfig::with_probing;
}

/// The constructor of another crate's balancer.
pub type CustomBalancer = Custom<MakeBalancer>;

/// Creates a balancer for a new connection over a path, with the generator for its random choices.
pub type MakeBalancer = dyn Fn(&Path, &mut Rng) -> Box<dyn Balancer> + Send + Sync;

impl BalancerConfig {
    /// Whether an engine should provide the paths; see [`Balancer::on_reachable`].
    pub const fn wants_reachability(&self) -> bool {
        of_scheme!(self, Of => Of::WANTS_PATHS, true)
    }

    /// The number of entropy values in its paper.
    pub const fn evs(&self) -> u16 {
        of_scheme!(self, Of => Of::EVS, 65_535)
    }

    /// Whether ACKs return over the paths in turn, if known; see [`AckTurns`](super::AckTurns).
    pub const fn acks_in_turn(&self) -> bool {
        of_scheme!(self, Of => Of::ACKS_IN_TURN, false)
    }
}

impl AnyBalancer {
    /// Creates the configured balancer. Lasting choices come from [`Path::seed`], if set.
    pub fn new(config: &BalancerConfig, path: &Path, rng: &mut Rng) -> Self {
        make!(config, own => (own, path, rng), (own.make)(path, rng))
    }
}

impl Balancer for AnyBalancer {
    forward! {
        fn features(&self) -> Features;
        fn next_ev(&mut self, now: Now<'_>, packet: &SendInfo, rng: &mut Rng) -> Ev;
        fn next_choice(&self) -> Choice;
        fn is_frozen(&self) -> bool;
        fn on_ack(&mut self, now: Now<'_>, ack: &AckInfo, publisher: &mut dyn Publisher);
        fn on_loss(&mut self, now: Now<'_>, loss: &LossInfo, publisher: &mut dyn Publisher);
        fn poll_timeout(&self, path: &Path) -> Option<Time>;
        fn admit(&mut self, now: Now<'_>, packet: &SendInfo) -> Admission;
        fn is_draining(&self) -> bool;
        fn on_control(&mut self, control: &ControlConfig, path: &Path);
        fn on_start(&mut self, path: &Path);
        fn section(&self) -> Section;
        fn poll_trailer(&mut self, now: Now<'_>, flight: &Flight) -> Option<Trailer>;
        fn poll_probe(&mut self, now: Now<'_>) -> Option<Ev>;
        fn has_probed(&self) -> bool;
        fn on_probe_ack(&mut self, now: Now<'_>, answer: &ProbeInfo, publisher: &mut dyn Publisher);
        fn on_reachable(&mut self, now: Now<'_>, paths: &[PathEvs]);
        fn on_packet_acked(&mut self, now: Now<'_>, packet: &PacketInfo);
        fn on_echo(&mut self, now: Now<'_>, ev: Ev, marked: bool);
        fn path_history(&self) -> Option<PathHistory>;
        fn restore_history(&mut self, now: Now<'_>, learned: &PathHistory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::stream;

    #[test]
    fn each_balancer_declares_its_capabilities() {
        let nothing = Features::default();
        for kind in BalancerKind::ALL {
            let expected = match kind {
                BalancerKind::Flowcut => Features { delays_packets: true, lowest_first: true, ..nothing },
                BalancerKind::Mptcp => Features { delays_packets: true, packet_feedback: true, ..nothing },
                BalancerKind::OrderedChaos => Features { sections: true, packet_feedback: true, ..nothing },
                BalancerKind::Ops => Features { sprays: true, ..nothing },
                BalancerKind::RepsNoFreezing => Features { sprays: true, reuses: true, ..nothing },
                BalancerKind::Reps | BalancerKind::RepsProbing => {
                    Features { sprays: true, reuses: true, probing: true, ..nothing }
                }
                BalancerKind::RepsPlus => Features {
                    sprays: true,
                    reuses: true,
                    sections: true,
                    probing: true,
                    scouts: true,
                    packet_feedback: true,
                    gap_rule: true,
                    ..nothing
                },
                _ => nothing,
            };
            let (config, path) = (BalancerConfig::from(kind), Path::new(8_000_000, 10_000_000_000, 1_000));
            assert_eq!(AnyBalancer::new(&config, &path, &mut stream(1, 1)).features(), expected, "{kind}");
            let wants_paths = matches!(kind, BalancerKind::RepsPlus | BalancerKind::HostDr);
            assert_eq!(config.wants_reachability(), wants_paths, "{kind}");
        }
    }
}
