//! What happened to links of a deployed fabric, by the rules of scenarios' link events.

use std::collections::BTreeMap;

use spray_fabric::{LinkAction, LinkChange, LinkEvent, LinkState, changes};
use spray_pipeline::impairment::Impairment;

use crate::RunError;

/// What may be asked of links at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Healthy again, whatever happened to them.
    Up,
    /// Administratively down; routing learns of it.
    Down,
    /// Every frame vanishes, and routing does not learn of it.
    Silent,
    /// A share of the rate is left, in millionths; all of it ends this.
    Rate(u32),
    /// Frames vanish at random with this probability in millionths; 0 ends this.
    Loss(u32),
    /// Frames arrive so much later, in ns; 0 ends this.
    Delay(u32),
    /// Their delay varies by so much to either side, in ns; 0 ends this.
    Jitter(u32),
    /// Frames overtake those that are delayed with this probability in millionths; 0 ends this.
    Reorder(u32),
    /// One bit of a frame is flipped with this probability in millionths; 0 ends this.
    Corrupt(u32),
    /// Frames arrive twice with this probability in millionths; 0 ends this.
    Duplicate(u32),
}

/// Names of events: that somebody ordered, that came with an interface, and that another box has told.
const ORDERED: &str = "";
const CARRIER: &str = "carrier";
const TOLD: &str = "told";

/// The events of links, one link each.
#[derive(Debug)]
pub struct Failures {
    events: Vec<LinkEvent>,
    impaired: Impaired,
    convergence_ps: u64,
}

/// The links that impair the frames that get over them.
type Impaired = BTreeMap<usize, Impairment>;

impl Failures {
    /// None yet; routing learns of one `convergence_ps` late.
    pub fn new(convergence_ps: u64) -> Self {
        Self { events: Vec::new(), impaired: Impaired::new(), convergence_ps }
    }

    /// The events in force, and those of which routing has yet to learn the end.
    pub fn events(&self) -> &[LinkEvent] {
        &self.events
    }

    /// What a link does to frames that get over it.
    pub fn impairment(&self, link: usize) -> Impairment {
        self.impaired.get(&link).copied().unwrap_or_default()
    }

    /// Whether orders make sense together, and with those before.
    ///
    /// # Errors
    /// [`RunError::Port`] where frames are to overtake others that nothing delays.
    pub fn check(&self, links: &[usize], orders: &[Order]) -> Result<(), RunError> {
        let mut after = self.impaired.clone();
        orders.iter().for_each(|order| impair(&mut after, links, *order));
        let is_vain = |link: &Impairment| link.reorder_ppm > 0 && link.delay_ns == 0 && link.jitter_ns == 0;
        match after.values().any(is_vain) {
            true => Err(RunError::Port(
                "`reorder` has frames overtake those that are delayed, and none are: give the link a delay too, as in `delay=1ms reorder=1%`"
                    .into(),
            )),
            false => Ok(()),
        }
    }

    /// Carries an order out: what it replaces on these links ends, and what it asks for begins.
    pub fn order(&mut self, links: &[usize], order: Order, now_ps: u64) {
        self.settle(now_ps);
        impair(&mut self.impaired, links, order);
        let action = match order {
            Order::Delay(_) | Order::Jitter(_) | Order::Reorder(_) | Order::Corrupt(_) | Order::Duplicate(_) => return,
            Order::Up | Order::Rate(1_000_000..) | Order::Loss(0) => None,
            Order::Down => Some(LinkAction::Down { convergence_ps: self.convergence_ps }),
            Order::Silent => Some(LinkAction::SilentDrop),
            Order::Rate(ppm) => Some(LinkAction::Rate { ppm }),
            Order::Loss(ppm) => Some(LinkAction::Loss { ppm }),
        };
        let replaces = |event: &LinkEvent| match order {
            Order::Up => true,
            Order::Down => matches!(event.action, LinkAction::Down { .. }),
            Order::Silent => matches!(event.action, LinkAction::SilentDrop),
            Order::Rate(_) => matches!(event.action, LinkAction::Rate { .. }),
            Order::Loss(_) => matches!(event.action, LinkAction::Loss { .. }),
            _ => false,
        };
        for link in links {
            self.replace((ORDERED, *link), replaces, action, now_ps);
        }
    }

    /// Has links be down for as long as their interface has no carrier, whatever is ordered.
    pub fn set_carrier(&mut self, links: &[usize], has_carrier: bool, now_ps: u64) {
        self.settle(now_ps);
        let action = (!has_carrier).then_some(LinkAction::Down { convergence_ps: self.convergence_ps });
        for link in links {
            self.replace((CARRIER, *link), |_| true, action, now_ps);
        }
    }

    /// Takes what other boxes say: of the first `links` links those of `down` are down, the others up. Routing learns of each
    /// `convergence_ps` later.
    pub fn set_told(&mut self, down: &[usize], links: usize, now_ps: u64) {
        self.settle(now_ps);
        for link in 0..links {
            let action = down.contains(&link).then_some(LinkAction::Down { convergence_ps: self.convergence_ps });
            self.replace((TOLD, link), |_| true, action, now_ps);
        }
    }

    /// The links that are down, and not because another box says so.
    pub fn down(&self) -> Vec<usize> {
        let is_down = |event: &&LinkEvent| matches!(event.action, LinkAction::Down { .. }) && event.name != TOLD;
        let mut links: Vec<usize> = self
            .events
            .iter()
            .filter(|event| event.until_ps.is_none())
            .filter(is_down)
            .flat_map(|e| e.links.clone())
            .collect();
        links.sort_unstable();
        links.dedup();
        links
    }

    /// Ends what `replaces` says of the events of this name on a link, and begins an action.
    fn replace(
        &mut self,
        (name, link): (&str, usize),
        replaces: impl Fn(&LinkEvent) -> bool,
        action: Option<LinkAction>,
        now_ps: u64,
    ) {
        let own = |event: &&mut LinkEvent| event.name == name && event.links == [link] && event.until_ps.is_none();
        let present: Vec<_> = self.events.iter_mut().filter(own).filter(|event| replaces(event)).collect();
        // What is so already goes on: routing knows of it.
        if present.iter().any(|event| Some(event.action) == action) {
            return;
        }
        present.into_iter().for_each(|event| event.until_ps = Some(now_ps));
        let begins = |action| LinkEvent { name: name.into(), links: vec![link], at_ps: now_ps, until_ps: None, action };
        self.events.extend(action.map(begins));
    }

    /// The state of every link of `links` at `now_ps`.
    pub fn states(&self, links: usize, now_ps: u64) -> Vec<LinkState> {
        let last = |changes: &Vec<LinkChange>| changes.iter().rev().find(|change| change.at_ps <= now_ps).copied();
        changes(&self.events, links)
            .iter()
            .map(|changes| last(changes).map_or(LinkState::UP, |last| last.state))
            .collect()
    }

    /// Forgets what is over for everybody, and that beginnings were at different times where everybody knows of them: switches' tables
    /// hold a few changes only.
    fn settle(&mut self, now_ps: u64) {
        let known = |event: &LinkEvent, at_ps: u64| match event.action {
            LinkAction::Down { convergence_ps: u64::MAX } => true,
            LinkAction::Down { convergence_ps } => at_ps.saturating_add(convergence_ps) <= now_ps,
            _ => true,
        };
        self.events.retain(|event| event.until_ps.is_none_or(|until_ps| !known(event, until_ps)));
        for event in &mut self.events {
            if known(event, event.at_ps) {
                event.at_ps = 0;
            }
        }
    }
}

/// Carries out what an order says of impairments.
fn impair(impaired: &mut Impaired, links: &[usize], order: Order) {
    for link in links {
        let present = impaired.remove(link).unwrap_or_default();
        let after = match order {
            Order::Up => Impairment::default(),
            Order::Delay(ns) => Impairment { delay_ns: ns.into(), ..present },
            Order::Jitter(jitter_ns) => Impairment { jitter_ns, ..present },
            Order::Reorder(reorder_ppm) => Impairment { reorder_ppm, ..present },
            Order::Corrupt(corrupt_ppm) => Impairment { corrupt_ppm, ..present },
            Order::Duplicate(duplicate_ppm) => Impairment { duplicate_ppm, ..present },
            _ => present,
        };
        let after = after.complete();
        if after.is_any != 0 {
            impaired.insert(*link, after);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spray_fabric::{epoch_starts, known_down};

    fn states(failures: &Failures, now_ps: u64) -> [LinkState; 2] {
        failures.states(2, now_ps).try_into().unwrap()
    }

    #[test]
    fn orders_replace_their_like_and_up_ends_them_all() {
        let mut failures = Failures::new(100);
        failures.order(&[0, 1], Order::Rate(500_000), 1_000);
        failures.order(&[0], Order::Rate(250_000), 2_000);
        failures.order(&[0], Order::Loss(10_000), 3_000);
        let slow = LinkState { rate_ppm: 250_000, loss_ppm: 10_000, ..LinkState::UP };
        assert_eq!(states(&failures, 3_000), [slow, LinkState { rate_ppm: 500_000, ..LinkState::UP }]);
        failures.order(&[0], Order::Loss(0), 4_000);
        failures.order(&[1], Order::Rate(1_000_000), 4_000);
        assert_eq!(states(&failures, 4_000), [LinkState { rate_ppm: 250_000, ..LinkState::UP }, LinkState::UP]);
        failures.order(&[0], Order::Silent, 5_000);
        failures.order(&[0, 1], Order::Up, 6_000);
        assert_eq!(states(&failures, 6_000), [LinkState::UP; 2]);
        failures.order(&[0, 1], Order::Up, 7_000);
        assert_eq!(failures.events(), []);
    }

    /// What a link does beside failing adds up with that, order by order, until `up`.
    #[test]
    fn impairments_add_up_and_end_with_up() {
        let mut failures = Failures::new(100);
        for order in [Order::Delay(5_000), Order::Loss(10), Order::Jitter(1_000), Order::Corrupt(7)] {
            failures.order(&[1], order, 1_000);
        }
        let both = Impairment { delay_ns: 5_000, jitter_ns: 1_000, corrupt_ppm: 7, is_any: 1, ..Impairment::default() };
        assert_eq!([0, 1].map(|link| failures.impairment(link)), [Impairment::default(), both]);
        failures.order(&[1], Order::Corrupt(0), 2_000);
        assert_eq!(failures.impairment(1), Impairment { corrupt_ppm: 0, ..both });
        assert_eq!(states(&failures, 2_000)[1], LinkState { loss_ppm: 10, ..LinkState::UP });
        failures.order(&[0, 1], Order::Up, 3_000);
        assert_eq!((failures.impairment(1), failures.impaired.len()), (Impairment::default(), 0));
    }

    #[test]
    fn nothing_overtakes_where_nothing_is_delayed() {
        let mut failures = Failures::new(100);
        let [reorder, delay] = [Order::Reorder(1), Order::Delay(1_000)];
        assert!(failures.check(&[0], &[reorder]).is_err());
        assert!(failures.check(&[0], &[reorder, delay]).is_ok() && failures.check(&[0], &[Order::Reorder(0)]).is_ok());
        failures.order(&[0], delay, 1_000);
        assert!(failures.check(&[0], &[reorder]).is_ok() && failures.check(&[0], &[reorder, Order::Delay(0)]).is_err());
        assert!(failures.check(&[0, 1], &[reorder]).is_err(), "not on all of them");
    }

    #[test]
    fn a_link_without_carrier_stays_down_whatever_is_ordered() {
        let mut failures = Failures::new(100);
        failures.set_carrier(&[0], false, 1_000);
        failures.set_carrier(&[0], false, 1_500);
        failures.order(&[0], Order::Down, 2_000);
        failures.order(&[0], Order::Up, 3_000);
        assert!(!states(&failures, 3_000)[0].up);
        failures.set_carrier(&[0], true, 4_000);
        assert_eq!(states(&failures, 4_000), [LinkState::UP; 2]);
        failures.order(&[0], Order::Down, 5_000);
        failures.set_carrier(&[0], true, 6_000);
        assert!(!states(&failures, 6_000)[0].up, "what was ordered goes on");
    }

    #[test]
    fn what_others_say_is_down_is_down_and_not_said_again() {
        let mut failures = Failures::new(100);
        failures.set_told(&[1], 2, 1_000);
        failures.order(&[0], Order::Down, 1_000);
        failures.set_carrier(&[0], false, 1_000);
        assert!(!states(&failures, 1_000)[1].up);
        assert_eq!(failures.down(), [0]);
        failures.order(&[1], Order::Up, 2_000);
        assert!(!states(&failures, 2_000)[1].up, "who said so has to say that it is over");
        failures.set_told(&[], 2, 3_000);
        failures.order(&[0], Order::Up, 3_000);
        assert_eq!((states(&failures, 3_000)[1].up, failures.down()), (true, vec![0]));
        assert!(known_down(failures.events(), 1, 3_099) && !known_down(failures.events(), 1, 3_100));
    }

    /// Routing learns late of either end, and the tables need no more room however often links change.
    #[test]
    fn routing_learns_late_and_tables_do_not_grow() {
        let mut failures = Failures::new(100);
        for round in 1..50 {
            let now_ps = round * 10_000;
            failures.order(&[0], Order::Down, now_ps);
            assert!(!states(&failures, now_ps)[0].up);
            assert!(!known_down(failures.events(), 0, now_ps + 99) && known_down(failures.events(), 0, now_ps + 100));
            failures.order(&[0], Order::Down, now_ps + 500);
            failures.order(&[0], Order::Up, now_ps + 1_000);
            assert!(states(&failures, now_ps + 1_000)[0].up);
            assert!(
                known_down(failures.events(), 0, now_ps + 1_099) && !known_down(failures.events(), 0, now_ps + 1_100)
            );
            assert!(epoch_starts(failures.events()).len() <= 3);
        }
    }
}
