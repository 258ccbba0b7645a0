//! A run that somebody looks at and steps into: what an engine shows of it, and what it can be told.

use spray_pipeline::counters::PortCounters;

use crate::fabric::{LinkChange, LinkState};
use crate::{LinkAction, LinkEvent};

/// Somebody at the controls of a run.
pub trait Operator {
    /// Takes the state of the run; says what is to change now, and when to ask again. The run waits meanwhile, or its clock goes on,
    /// as the engine has it.
    fn look(&mut self, run: &Snapshot) -> Answer;
}

/// The state of a run at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Scenario time; negative while connections are set up.
    pub now_ps: i64,
    /// By host.
    pub hosts: Vec<HostNow>,
    /// By link of the network; `None` where the engine does not play it as a port.
    pub links: Vec<Option<LinkNow>>,
    /// Messages that have arrived.
    pub arrived: u64,
    /// The run is over: what is answered does not count.
    pub over: bool,
}

/// A host of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostNow {
    /// Payload bytes that it has received.
    pub received_bytes: u64,
    /// Its connections that have data under way or waiting.
    pub sending: u32,
    /// Of these, connections whose balancer is frozen (REPS §3.2).
    pub frozen: u32,
    /// Packets that it has sent again.
    pub retransmits: u64,
}

/// A link of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkNow {
    /// Bytes that wait for it.
    pub waiting_bytes: u64,
    /// What its port has counted.
    pub counters: PortCounters,
    /// What has happened to it.
    pub state: LinkState,
    /// Whether an [`Order`] can change it.
    pub can_change: bool,
}

/// What an operator says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// What is to change, in this order.
    pub orders: Vec<Order>,
    /// When to ask again, in ps of scenario time: at once if that is past. An engine whose clock is real may ask at other times.
    pub next_ps: u64,
    /// End the run here. What has been done is its result.
    pub stop: bool,
}

/// Something that is to change in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// This happens to these links from now on. Routing does not learn of it.
    Apply {
        /// Their name in results.
        name: String,
        /// Indices into [`Network::links`](crate::Network::links).
        links: Vec<usize>,
        /// What happens.
        action: LinkAction,
    },
    /// All that happened to these links is over.
    Heal {
        /// Indices into [`Network::links`](crate::Network::links).
        links: Vec<usize>,
    },
    /// The settings of connections have changed. They hold for those that have yet to send something.
    Rechoose,
}

/// The link events of a run, which orders add to.
#[derive(Clone, Debug)]
pub struct LinkSchedule(Vec<LinkEvent>);

impl LinkSchedule {
    /// Begins with those of the scenario.
    pub fn new(events: &[LinkEvent]) -> Self {
        Self(events.to_vec())
    }

    /// Enters what an operator ordered at `now_ps`; returns the links that it concerns.
    pub fn enter(&mut self, now_ps: u64, order: &Order) -> Vec<usize> {
        match order {
            Order::Apply { name, links, action } => {
                let (name, links) = (name.clone(), links.clone());
                self.0.push(LinkEvent { name, links: links.clone(), at_ps: now_ps, until_ps: None, action: *action });
                links
            }
            Order::Heal { links } => {
                let healed: Vec<_> = self.0.iter_mut().filter_map(|event| heal(event, links, now_ps)).collect();
                self.0.extend(healed);
                self.0.retain(|event| !event.links.is_empty());
                links.clone()
            }
            Order::Rechoose => Vec::new(),
        }
    }

    /// The states of `link` from `now_ps` on: the present one, then those to come.
    pub fn changes(&self, link: usize, now_ps: u64) -> Vec<LinkChange> {
        crate::event::changes_from(&self.0, link, now_ps)
    }

    /// What has happened to `link` at `now_ps`.
    pub fn state(&self, link: usize, now_ps: u64) -> LinkState {
        self.changes(link, now_ps)[0].state
    }

    /// All events, those of the scenario first.
    pub fn into_events(self) -> Vec<LinkEvent> {
        self.0
    }
}

/// Ends at `now_ps` what `event` has done to `links`: takes them out of it, and returns an event for them that is over.
fn heal(event: &mut LinkEvent, links: &[usize], now_ps: u64) -> Option<LinkEvent> {
    let (healed, rest): (Vec<_>, Vec<_>) = event.links.iter().partition(|link| links.contains(link));
    if healed.is_empty() || !event.active(now_ps, 0) {
        return None;
    }
    event.links = rest;
    Some(LinkEvent { links: healed, until_ps: Some(now_ps), ..event.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule() -> LinkSchedule {
        let slow = LinkEvent {
            name: "a-b".into(),
            links: vec![0, 1],
            at_ps: 10,
            until_ps: Some(100),
            action: LinkAction::Rate { ppm: 250_000 },
        };
        LinkSchedule::new(&[slow])
    }

    fn apply(link: usize, action: LinkAction) -> Order {
        Order::Apply { name: "x".into(), links: vec![link], action }
    }

    /// What an operator does adds to what the scenario does, and what is to come stays.
    #[test]
    fn orders_add_to_the_scenario() {
        let mut schedule = schedule();
        assert_eq!(schedule.enter(50, &apply(0, LinkAction::SilentDrop)), [0]);
        let slow = LinkState { rate_ppm: 250_000, ..LinkState::UP };
        let dead = |state| LinkState { silent_drop: true, ..state };
        let change = |at_ps, state| LinkChange { at_ps, state };
        assert_eq!(schedule.changes(0, 50), [change(50, dead(slow)), change(100, dead(LinkState::UP))]);
        assert_eq!(schedule.changes(1, 50), [change(50, slow), change(100, LinkState::UP)]);
        assert_eq!(schedule.changes(2, 50), [change(50, LinkState::UP)]);
    }

    /// Healing ends all that is there, of these links only, and nothing that is to come.
    #[test]
    fn healing_ends_all_changes_of_these_links() {
        let mut schedule = schedule();
        schedule.enter(20, &apply(0, LinkAction::SilentDrop));
        assert_eq!(schedule.enter(30, &Order::Heal { links: vec![0] }), [0]);
        assert_eq!(schedule.changes(0, 30), [LinkChange { at_ps: 30, state: LinkState::UP }]);
        assert_eq!(schedule.changes(1, 30)[0].state.rate_ppm, 250_000);
        let events = schedule.into_events();
        let of = |link| events.iter().filter(move |event| event.links == [link]).map(|event| event.until_ps);
        assert_eq!((of(0).collect::<Vec<_>>(), of(1).collect::<Vec<_>>()), (vec![Some(30), Some(30)], vec![Some(100)]));

        let mut early = self::schedule();
        early.enter(5, &Order::Heal { links: vec![0, 1] });
        assert_eq!(early.changes(0, 20)[0].state.rate_ppm, 250_000);
    }
}
