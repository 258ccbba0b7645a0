//! What happens when: a list that a seed and a length determine.

use rand_core::RngCore;
use spray_core::rng::{self, Rng};

use crate::chaos::port::PORTS;

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A host's interface is set down, and up again later.
    InterfaceDown,
    /// The router's side goes down: the host's interface has no carrier.
    CarrierLost,
    /// It is deleted while a process uses it, and made again.
    InterfaceRemoved,
    /// It has another MTU for a while.
    MtuSmaller,
    /// It loses its address.
    AddressRemoved,
    /// Somebody detaches the XDP program of the process that uses it.
    ProgramOff,
    /// Its router has another Ethernet address from now on, and says so.
    RouterMoved,
    /// The host has no route.
    HostRouteRemoved,
    /// The sender's leaf has no route to the receiver.
    LeafRouteRemoved,
    /// Routing avoids a spine.
    SpineWithdrawn,
    /// A leaf's link to a spine goes down and up several times.
    SpineFlaps,
    /// A spine loses frames at random.
    SpineLossy,
    /// All spines do.
    AllLossy,
    /// A spine loses everything, and tells nobody.
    SpineSilent,
    /// A spine has a tenth of its rate.
    SpineSlow,
    /// A spine sends frames twice.
    SpineRepeats,
    /// A spine loses everything in parts of each period.
    SpinePauses,
    /// The receiver gets SIGKILL, and is started again.
    ReceiverKilled,
    /// The same by SIGINT.
    ReceiverInterrupted,
    /// It stands still: SIGSTOP, later SIGCONT.
    ReceiverStopped,
    /// A sender gets SIGKILL.
    SenderKilled,
    /// The same by SIGINT.
    SenderInterrupted,
    /// It stands still: SIGSTOP, later SIGCONT.
    SenderStopped,
    /// Other processes want the processors.
    ProcessorsBusy,
    /// The receiver may have little more memory than it has.
    MemoryTight,
    /// The disk that the receiver writes to is full.
    DiskFull,
}

impl Kind {
    /// All of them.
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

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// What.
    pub kind: Kind,
    /// When, after the beginning of its episode.
    pub after_ms: u64,
    /// For how long.
    pub for_ms: u64,
    /// Of which of the interfaces, or which sender.
    pub port: usize,
    /// Of which spine.
    pub spine: usize,
}

impl Event {
    /// Whether the receiver ends by it.
    pub fn ends_receiver(&self) -> bool {
        match self.kind {
            Kind::ReceiverKilled | Kind::ReceiverInterrupted => true,
            Kind::InterfaceRemoved | Kind::ProgramOff => PORTS[self.port].side == 1,
            _ => false,
        }
    }
}

/// Events beside transfers; then everything is mended and looked at.
#[derive(Clone, Debug)]
pub struct Episode {
    /// How many were before.
    pub number: u64,
    /// A few.
    pub events: Vec<Event>,
}

/// Events of an episode.
const MOST: usize = 3;
/// How long an episode takes besides its events, about: what failed is sent again.
const REST_MS: u64 = 3_000;

/// The list for a run of so many seconds. All kinds come before one comes again.
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

/// The next event, of a kind that is left of this round.
fn event(left: &mut Vec<Kind>, rng: &mut Rng) -> Event {
    if left.is_empty() {
        *left = Kind::ALL.into();
    }
    let kind = left.swap_remove(rng::below(left.len(), rng));
    // One in four lasts longer than the timeout of the transfers.
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
    fn a_seed_repeats_its_list_and_two_minutes_hold_every_kind() {
        let list = |seed| format!("{:?}", episodes(seed, 120));
        assert!(list(7) == list(7) && list(7) != list(8));
        let all: BTreeSet<Kind> = episodes(1, 120).iter().flat_map(|it| &it.events).map(|event| event.kind).collect();
        assert_eq!(all.len(), Kind::ALL.len());
    }
}
