//! The schedule of events, determined by a seed and a duration.

use rand_core::RngCore;
use spray_core::rng::{self, Rng};

use crate::chaos::port::PORTS;

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A host's interface is set down, and up again later.
    InterfaceDown,
    /// The router's side of the link goes down: the host's interface has no carrier.
    CarrierLost,
    /// The interface is deleted while a process uses it, and created again.
    InterfaceRemoved,
    /// The interface temporarily has a smaller MTU.
    MtuSmaller,
    /// The interface loses its address.
    AddressRemoved,
    /// The XDP program of the process that uses the interface is detached.
    ProgramOff,
    /// The router permanently changes its Ethernet address, and announces it.
    RouterMoved,
    /// The host has no route.
    HostRouteRemoved,
    /// The sender's leaf has no route to the receiver.
    LeafRouteRemoved,
    /// Routing excludes a spine.
    SpineWithdrawn,
    /// A leaf's link to a spine goes down and up several times.
    SpineFlaps,
    /// A spine loses frames at random.
    SpineLossy,
    /// All spines lose frames at random.
    AllLossy,
    /// A spine loses everything, and routing does not detect it.
    SpineSilent,
    /// A spine has a tenth of its rate.
    SpineSlow,
    /// A spine duplicates frames.
    SpineRepeats,
    /// A spine loses everything in parts of each period.
    SpinePauses,
    /// The receiver gets SIGKILL, and is started again.
    ReceiverKilled,
    /// The receiver gets SIGINT, and is started again.
    ReceiverInterrupted,
    /// The receiver gets SIGSTOP, and SIGCONT later.
    ReceiverStopped,
    /// A sender gets SIGKILL.
    SenderKilled,
    /// A sender gets SIGINT.
    SenderInterrupted,
    /// A sender gets SIGSTOP, and SIGCONT later.
    SenderStopped,
    /// Other processes load the processors.
    ProcessorsBusy,
    /// The receiver may allocate little more memory than it has.
    MemoryTight,
    /// The disk that the receiver writes to is full.
    DiskFull,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 26] = [
        Self::InterfaceDown,
        Self::CarrierLost,
        Self::InterfaceRemoved,
        Self::MtuSmaller,
        Self::AddressRemoved,
        Self::ProgramOff,
        Self::RouterMoved,
        Self::HostRouteRemoved,
        Self::LeafRouteRemoved,
        Self::SpineWithdrawn,
        Self::SpineFlaps,
        Self::SpineLossy,
        Self::AllLossy,
        Self::SpineSilent,
        Self::SpineSlow,
        Self::SpineRepeats,
        Self::SpinePauses,
        Self::ReceiverKilled,
        Self::ReceiverInterrupted,
        Self::ReceiverStopped,
        Self::SenderKilled,
        Self::SenderInterrupted,
        Self::SenderStopped,
        Self::ProcessorsBusy,
        Self::MemoryTight,
        Self::DiskFull,
    ];
}

/// An event.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Its kind.
    pub kind: Kind,
    /// Its start, relative to that of the episode.
    pub after_ms: u64,
    /// Its duration.
    pub for_ms: u64,
    /// The index of the interface or of the sender.
    pub port: usize,
    /// The number of the spine.
    pub spine: usize,
}

impl Event {
    /// Returns whether the event ends the receiver.
    pub fn ends_receiver(&self) -> bool {
        match self.kind {
            Kind::ReceiverKilled | Kind::ReceiverInterrupted => true,
            Kind::InterfaceRemoved | Kind::ProgramOff => PORTS[self.port].side == 1,
            _ => false,
        }
    }
}

/// Events during transfers, after which everything is repaired and checked.
#[derive(Clone, Debug)]
pub struct Episode {
    /// The number of previous episodes.
    pub number: u64,
    /// The events, a few.
    pub events: Vec<Event>,
}

/// The maximum number of events per episode.
const MOST: usize = 3;
/// The approximate duration of an episode without its events, including the repetition of failed
/// transfers.
const REST_MS: u64 = 3_000;

/// Returns the episodes of a run of this duration. Every kind occurs before one is repeated.
pub fn episodes(seed: u64, seconds: u64) -> Vec<Episode> {
    let mut rng = rng::stream(seed, 0);
    let (mut all, mut left, mut ms) = (Vec::new(), Vec::new(), 0);
    while ms < seconds * 1000 {
        let count = 1 + rng::below(MOST, &mut rng);
        let events: Vec<Event> = (0..count).map(|_| event(&mut left, &mut rng)).collect();
        ms += events.iter().map(|event| event.after_ms + event.for_ms).max().unwrap_or(0) + REST_MS;
        all.push(Episode { number: all.len() as u64, events });
    }
    all
}

/// Returns the next event, of a kind that remains in this round.
fn event(left: &mut Vec<Kind>, rng: &mut Rng) -> Event {
    if left.is_empty() {
        *left = Kind::ALL.into();
    }
    let kind = left.swap_remove(rng::below(left.len(), rng));
    // A quarter of the events last longer than the timeout of the transfers.
    let for_ms = match rng.next_u32() % 4 {
        0 => 4_000 + rng::below(2_000, rng),
        1 => 1_000 + rng::below(1_500, rng),
        _ => 50 + rng::below(900, rng),
    };
    Event {
        kind,
        after_ms: 100 + rng::below(900, rng) as u64,
        for_ms: for_ms as u64,
        port: rng::below(PORTS.len(), rng),
        spine: rng::below(crate::routers::Routers::SPINES, rng),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Kind, episodes};

    #[test]
    fn a_seed_determines_the_list_and_two_minutes_include_every_kind() {
        let list = |seed| format!("{:?}", episodes(seed, 120));
        assert!(list(7) == list(7) && list(7) != list(8));
        let all: BTreeSet<Kind> = episodes(1, 120).iter().flat_map(|it| &it.events).map(|event| event.kind).collect();
        assert_eq!(all.len(), Kind::ALL.len());
    }
}
