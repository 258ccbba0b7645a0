//! The list of balancers: their names, and one type that is any of them.

use core::marker::PhantomData;

use rand_core::RngCore;

use super::{
    Admission, Balancer, EchoFeedback, Ecmp, HoldBack, Memory, Offers, Ops, OwnWindows, PacketFeedback, PathConfig,
    Probing, Reachability, Remembered, Reps, RepsConfig, Scheme, Section, Sections, SendInfo, Timer, Trailer,
    Transmission,
};
use crate::cc::CcConfig;
use crate::event::{Choice, Publisher};
use crate::feedback::{AckInfo, Ev, LossInfo, PacketInfo};
use crate::kinds::{UnknownName, forward, kinds};

kinds! {
    /// Names the balancers.
    BalancerKind, "balancer";
    /// Any of the balancers, dispatched without allocation or vtable.
    AnyBalancer;
    /// The settings of one balancer.
    BalancerConfig;
    /// The settings of every balancer, under its name.
    Schemes;
    /// One entropy value for the whole connection.
    Ecmp "ecmp" ecmp Ecmp;
    /// A new random entropy value for every packet: oblivious packet spraying (REPS §2.2).
    Ops "ops" ops Ops;
    /// Recycled entropies with freezing (REPS §3); its earlier name is ARCANE.
    Reps "reps" | "arcane" reps Reps;
    /// Flowcut, NIC-only: changes its path only when nothing is in flight, so that nothing is reordered (Flowcut
    /// §II).
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
    /// REPS that recycles all entropy values that an ACK covers, explores evenly, finds losses before the timer, and
    /// freezes when probes show that a path has failed: this project's own.
    RepsPlus "reps-plus" reps_plus super::RepsPlus;
    /// Host DR: takes the paths that the engine tells it in turn (OFAN §6).
    HostDr "host-dr" host_dr super::HostDr;
    /// A few subflows with a window each, like MPTCP (REPS §4.2).
    Mptcp "mptcp" mptcp super::Mptcp;
    /// A few labels in turn, each hashed to a lasting path (OFAN §3.2).
    Subflow "subflow" subflow super::Subflow;
    /// Subflows that keep their order; the worst one moves to another path, and the receiver tells losses from
    /// reordering (*Ordered Chaos*).
    OrderedChaos "ordered-chaos" ordered_chaos super::OrderedChaos;
    /// The better of two random labels for each packet.
    PowerOfTwo "power-of-two" power_of_two super::PowerOfTwo;
    /// The labels without a recent mark, in turn.
    LeastRecentlyMarked "least-recently-marked" least_recently_marked super::LeastRecentlyMarked;
    /// Every entropy value in turn, whatever comes back.
    RoundRobin "round-robin" round_robin super::RoundRobin;
    presets:
    /// REPS's core logic alone, which never freezes (REPS §3.1).
    RepsNoFreezing "reps-no-freezing" Reps reps RepsConfig::without_freezing;
    /// REPS that leaves freezing mode when a probe of the failed path is answered (REPS §3.2).
    RepsProbing "reps-probing" Reps reps RepsConfig::with_probing;
}

impl BalancerConfig {
    /// Whether an engine should tell its connections which paths there are; see [`Reachability`].
    pub const fn wants_reachability(&self) -> bool {
        of_scheme!(self, Of => Implements::<Of>::REACHABILITY)
    }
}

impl AnyBalancer {
    /// Makes the configured balancer. Where [`PathConfig::seed`] is set, lasting choices come from it and not from
    /// `rng`.
    pub fn new(path: &PathConfig, rng: &mut impl RngCore) -> Self {
        make!(&path.balancer, own => (own, path, rng))
    }

    /// Takes from `fresh`, a balancer of the same kind, what its settings make of the path; see [`Scheme::adopt`].
    pub fn adopt(&mut self, fresh: Self) {
        pair!((self, fresh), known, fresh => known.adopt(fresh));
    }
}

impl Balancer for AnyBalancer {
    forward! {
        fn reuses(&self) -> bool;
        fn next_choice(&self) -> Choice;
        #[inline]
        fn next_ev(&mut self, now_ps: u64, packet: &SendInfo, rng: &mut impl RngCore) -> Ev;
        #[inline]
        fn on_ack(&mut self, now_ps: u64, ack: &AckInfo, publisher: &mut impl Publisher);
        fn on_loss(&mut self, now_ps: u64, loss: &LossInfo, publisher: &mut impl Publisher);
    }
}

/// Makes methods of the optional traits. Each calls the scheme's own method if its file implements the trait. If not, it
/// calls that of `$Absent`, which returns what follows the `=`: for a receiver `&T`, the compiler finds a method of `T`
/// before one of `&T`.
macro_rules! optional {
    ($Absent:ident for $Absentee:ty, $Receiver:ty: $(
        $(#[$about:meta])*
        $vis:vis fn $name:ident($this:ident $(, $argument:ident: $Type:ty)*) $(-> $Result:ty)? = $without:expr;
    )+) => {
        impl AnyBalancer {
            $(
                $(#[$about])*
                $vis fn $name($this: $Receiver $(, $argument: $Type)*) $(-> $Result)? {
                    dispatch!($this, scheme => scheme.$name($($argument),*))
                }
            )+
        }

        #[allow(unused_variables)]
        trait $Absent {
            $(fn $name(&$this $(, $argument: $Type)*) $(-> $Result)? { $without })+
        }

        impl<T> $Absent for $Absentee {}
    };
}

optional! {
    Absent for &T, &Self:
    fn holds_back(self) -> bool = false;
    fn lowest_first(self) -> bool = false;
    fn has_sections(self) -> bool = false;
    fn has_probes(self) -> bool = false;
    /// See [`Probing::has_probed`].
    pub fn has_probed(self) -> bool = false;
    fn wants_gap_rule(self) -> bool = false;
    fn tracks_packets(self) -> bool = false;
    /// See [`HoldBack::is_draining`].
    #[inline]
    pub fn is_draining(self) -> bool = false;
    /// See [`Sections::section`].
    #[inline]
    pub fn section(self) -> Section = Section::NONE;
    /// See [`Timer::poll_timeout`].
    #[inline]
    pub fn poll_timeout(self) -> Option<u64> = None;
    /// See [`Memory::remember`].
    pub fn remember(self, now_ps: u64) -> Option<Remembered> = None;
}

optional! {
    AbsentMut for &mut T, &mut Self:
    /// See [`HoldBack::admit`].
    #[inline]
    pub fn admit(self, now_ps: u64, packet: &SendInfo) -> Admission = Admission::Window;
    /// See [`OwnWindows::on_control`].
    pub fn on_control(self, config: &CcConfig, starting: bool) = ();
    /// See [`Sections::poll_trailer`].
    #[inline]
    pub fn poll_trailer(self, now_ps: u64, oldest: Option<&Transmission>) -> Option<Trailer> = None;
    /// See [`Probing::poll_probe`].
    #[inline]
    pub fn poll_probe(self, now_ps: u64) -> Option<Ev> = None;
    /// See [`Probing::on_probe_ack`].
    pub fn on_probe_ack(self, now_ps: u64, ev: Ev, marked: bool, publisher: &mut impl Publisher) = ();
    /// See [`Memory::recall`].
    pub fn recall(self, now_ps: u64, learned: &Remembered) = ();
    /// See [`Reachability::on_reachable`].
    pub fn on_reachable(self, now_ps: u64, paths: &[Ev]) = ();
    /// See [`PacketFeedback::on_packet_acked`].
    #[inline]
    pub fn on_packet_acked(self, now_ps: u64, packet: &PacketInfo) = ();
    /// See [`EchoFeedback::on_echo`].
    #[inline]
    pub fn on_echo(self, now_ps: u64, ev: Ev, marked: bool) = ();
}

impl AnyBalancer {
    /// Which traits the scheme offers with its settings. The sender asks once, so that it calls no method in vain for
    /// each packet.
    pub fn offers(&self) -> Offers {
        Offers {
            reuses: self.reuses(),
            hold_back: self.holds_back(),
            lowest_first: self.lowest_first(),
            sections: self.has_sections(),
            probing: self.has_probes(),
            packet_feedback: self.tracks_packets(),
            gap_rule: self.wants_gap_rule(),
        }
    }
}

/// Whether a type implements [`Reachability`]: its own constant hides the trait's.
struct Implements<T>(PhantomData<T>);

trait DoesNot {
    const REACHABILITY: bool = false;
}

impl<T> DoesNot for Implements<T> {}

impl<T: Reachability> Implements<T> {
    const REACHABILITY: bool = true;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::stream;

    /// A trait that a scheme implements and the registry does not see would be ignored in silence.
    #[test]
    fn each_kind_offers_what_its_file_implements() {
        let nothing = Offers {
            reuses: false,
            hold_back: false,
            lowest_first: false,
            sections: false,
            probing: false,
            packet_feedback: false,
            gap_rule: false,
        };
        for kind in BalancerKind::ALL {
            let expected = match kind {
                BalancerKind::Flowcut => Offers { hold_back: true, lowest_first: true, ..nothing },
                BalancerKind::Mptcp => Offers { hold_back: true, packet_feedback: true, ..nothing },
                BalancerKind::OrderedChaos => Offers { sections: true, packet_feedback: true, ..nothing },
                BalancerKind::Reps | BalancerKind::RepsNoFreezing => Offers { reuses: true, ..nothing },
                BalancerKind::RepsProbing => Offers { reuses: true, probing: true, ..nothing },
                BalancerKind::RepsPlus => Offers {
                    reuses: true,
                    sections: true,
                    probing: true,
                    packet_feedback: true,
                    gap_rule: true,
                    ..nothing
                },
                _ => nothing,
            };
            let config = PathConfig::new(kind, 8_000_000, 10);
            assert_eq!(AnyBalancer::new(&config, &mut stream(1, 1)).offers(), expected, "{kind}");
            let reaches = matches!(kind, BalancerKind::HostDr | BalancerKind::RepsPlus);
            assert_eq!(config.balancer.wants_reachability(), reaches, "{kind}");
        }
    }
}
