//! Changes of links of a deployed fabric, by the rules of scenarios' link events.

use std::collections::BTreeMap;
use std::mem::discriminant;

use spray_fabric::{LinkAction, LinkChange, LinkEvent, LinkState, changes};
use spray_pipeline::impairment::Impairment;

use crate::RunError;

/// A change of a link. The settings of one call are its whole state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkSetting {
    /// Up and unimpaired, but for the other settings.
    Up,
    /// Administratively down; routing sees it.
    Down,
    /// Drops every frame, unseen by routing.
    Silent,
    /// Reduces the rate to this share, in millionths.
    Rate(u32),
    /// Drops frames at random with this probability, in millionths.
    Loss(u32),
    /// Delays frames by this time, in ns.
    Delay(u32),
    /// The maximum deviation from that delay in either direction, in ns.
    Jitter(u32),
    /// Lets frames overtake delayed ones with this probability, in millionths.
    Reorder(u32),
    /// Flips one bit of a frame with this probability, in millionths.
    Corrupt(u32),
    /// Duplicates frames with this probability, in millionths.
    Duplicate(u32),
}

/// Names of events by cause: the user, the interface, another machine.
const ORDERED: &str = "";
const CARRIER: &str = "carrier";
const REMOTE: &str = "remote";

/// The state of all links, as events of one link each.
#[derive(Debug)]
pub struct Failures {
    events: Vec<LinkEvent>,
    impaired: BTreeMap<usize, Impairment>,
    convergence_ps: u64,
}

impl Failures {
    /// Creates an empty list; routing sees failures `convergence_ps` late.
    pub fn new(convergence_ps: u64) -> Self {
        Self { events: Vec::new(), impaired: BTreeMap::new(), convergence_ps }
    }

    /// The events in force, and those that ended but routing does not see yet.
    pub fn events(&self) -> &[LinkEvent] {
        &self.events
    }

    pub fn impairment(&self, link: usize) -> Impairment {
        self.impaired.get(&link).copied().unwrap_or_default()
    }

    /// Checks that `settings` describe one state.
    ///
    /// # Errors
    /// [`RunError::Port`] where a kind is repeated, `up` is not alone, or `reorder` lacks a delay.
    pub fn check(settings: &[LinkSetting]) -> Result<(), RunError> {
        let is_again = |at: usize| settings[..at].iter().any(|one| discriminant(one) == discriminant(&settings[at]));
        let after = impairment(settings);
        let why = if (0..settings.len()).any(is_again) {
            "a change is repeated; a command sets the whole state of a link"
        } else if settings.iter().skip(1).any(|order| *order == LinkSetting::Up) {
            "`up` resets the link: give it alone"
        } else if after.reorder_ppm > 0 && after.delay_ns == 0 && after.jitter_ns == 0 {
            "`reorder` needs a delay too, as in `delay=1ms reorder=1%`"
        } else {
            return Ok(());
        };
        Err(RunError::Port(why.into()))
    }

    /// Replaces the ordered state of links.
    pub fn order(&mut self, links: &[usize], settings: &[LinkSetting], now_ps: u64) {
        self.prune(now_ps);
        let action = |order: &LinkSetting| match order {
            LinkSetting::Down => Some(LinkAction::Down { convergence_ps: self.convergence_ps }),
            LinkSetting::Silent => Some(LinkAction::SilentDrop),
            LinkSetting::Rate(ppm @ ..1_000_000) => Some(LinkAction::Rate { ppm: *ppm }),
            LinkSetting::Loss(ppm @ 1..) => Some(LinkAction::Loss { ppm: *ppm }),
            _ => None,
        };
        let actions: Vec<LinkAction> = settings.iter().filter_map(action).collect();
        let impairment = impairment(settings);
        for link in links {
            self.replace(ORDERED, *link, &actions, now_ps);
            self.impaired.remove(link);
            if impairment.is_any != 0 {
                self.impaired.insert(*link, impairment);
            }
        }
    }

    /// Sets links down while their interface has no carrier, regardless of settings.
    pub fn set_carrier(&mut self, links: &[usize], has_carrier: bool, now_ps: u64) {
        self.prune(now_ps);
        let action = (!has_carrier).then_some(LinkAction::Down { convergence_ps: self.convergence_ps });
        for link in links {
            self.replace(CARRIER, *link, action.as_slice(), now_ps);
        }
    }

    /// Sets which of the first `links` links other machines advertise as down.
    pub fn set_down_remotely(&mut self, down: &[usize], links: usize, now_ps: u64) {
        self.prune(now_ps);
        for link in 0..links {
            let action = down.contains(&link).then_some(LinkAction::Down { convergence_ps: self.convergence_ps });
            self.replace(REMOTE, link, action.as_slice(), now_ps);
        }
    }

    /// The links that are down by order or carrier.
    pub fn down(&self) -> Vec<usize> {
        let is_down = |event: &&LinkEvent| {
            event.until_ps.is_none() && event.name != REMOTE && matches!(event.action, LinkAction::Down { .. })
        };
        let down = self.events.iter().filter(is_down);
        let mut links: Vec<usize> = down.flat_map(|event| event.links.clone()).collect();
        links.sort_unstable();
        links.dedup();
        links
    }

    /// Replaces a link's events of this name. Those in force keep their start, seen by routing.
    fn replace(&mut self, name: &str, link: usize, actions: &[LinkAction], now_ps: u64) {
        let own = |event: &&mut LinkEvent| event.name == name && event.links == [link] && event.until_ps.is_none();
        let mut missing = actions.to_vec();
        for event in self.events.iter_mut().filter(own) {
            match missing.iter().position(|action| *action == event.action) {
                Some(place) => drop(missing.remove(place)),
                None => event.until_ps = Some(now_ps),
            }
        }
        let begins = |action| LinkEvent { name: name.into(), links: vec![link], at_ps: now_ps, until_ps: None, action };
        self.events.extend(missing.into_iter().map(begins));
    }

    pub fn states(&self, links: usize, now_ps: u64) -> Vec<LinkState> {
        let last = |changes: &Vec<LinkChange>| changes.iter().rev().find(|change| change.at_ps <= now_ps).copied();
        changes(&self.events, links)
            .iter()
            .map(|changes| last(changes).map_or(LinkState::UP, |last| last.state))
            .collect()
    }

    /// Removes events after routing has seen their end, and sets the start of those that it has
    /// seen to 0: the switches' tables hold few changes.
    fn prune(&mut self, now_ps: u64) {
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

fn impairment(settings: &[LinkSetting]) -> Impairment {
    let mut link = Impairment::default();
    for order in settings {
        match *order {
            LinkSetting::Delay(ns) => link.delay_ns = ns.into(),
            LinkSetting::Jitter(ns) => link.jitter_ns = ns,
            LinkSetting::Reorder(ppm) => link.reorder_ppm = ppm,
            LinkSetting::Corrupt(ppm) => link.corrupt_ppm = ppm,
            LinkSetting::Duplicate(ppm) => link.duplicate_ppm = ppm,
            _ => {}
        }
    }
    link.complete()
}

#[cfg(test)]
mod tests {
    use super::*;
    use spray_fabric::{epoch_starts, known_down};

    fn states(failures: &Failures, now_ps: u64) -> [LinkState; 2] {
        failures.states(2, now_ps).try_into().unwrap()
    }

    #[test]
    fn an_order_replaces_the_whole_state_of_a_link() {
        let mut failures = Failures::new(100);
        failures.order(&[0, 1], &[LinkSetting::Rate(500_000)], 1_000);
        failures.order(&[0], &[LinkSetting::Silent], 2_000);
        failures.order(&[0], &[LinkSetting::Rate(250_000), LinkSetting::Loss(10_000)], 3_000);
        let slow = LinkState { rate_ppm: 250_000, loss_ppm: 10_000, ..LinkState::UP };
        assert_eq!(states(&failures, 3_000), [slow, LinkState { rate_ppm: 500_000, ..LinkState::UP }]);
        failures.order(&[0], &[LinkSetting::Up, LinkSetting::Loss(10_000), LinkSetting::Delay(5_000)], 4_000);
        failures.order(&[1], &[LinkSetting::Rate(1_000_000), LinkSetting::Loss(0)], 4_000);
        assert_eq!(states(&failures, 4_000), [LinkState { loss_ppm: 10_000, ..LinkState::UP }, LinkState::UP]);
        let delayed = Impairment { delay_ns: 5_000, is_any: 1, ..Impairment::default() };
        assert_eq!([0, 1].map(|link| failures.impairment(link)), [delayed, Impairment::default()]);
        failures.order(&[0], &[LinkSetting::Corrupt(7)], 5_000);
        assert_eq!(failures.impairment(0), Impairment { corrupt_ppm: 7, is_any: 1, ..Impairment::default() });
        failures.order(&[0, 1], &[LinkSetting::Up], 6_000);
        assert_eq!(states(&failures, 6_000), [LinkState::UP; 2]);
        failures.order(&[0, 1], &[LinkSetting::Up], 7_000);
        assert_eq!((failures.events(), failures.impaired.len()), (&[][..], 0));
    }

    #[test]
    fn invalid_orders_are_rejected() {
        let [reorder, delay] = [LinkSetting::Reorder(1), LinkSetting::Delay(1_000)];
        for good in [
            &[reorder, delay][..],
            &[LinkSetting::Up, LinkSetting::Down],
            &[LinkSetting::Reorder(0)],
            &[LinkSetting::Up],
        ] {
            assert!(Failures::check(good).is_ok(), "{good:?}");
        }
        for bad in [
            &[reorder][..],
            &[reorder, LinkSetting::Delay(0)],
            &[delay, LinkSetting::Delay(0)],
            &[delay, LinkSetting::Up],
        ] {
            assert!(Failures::check(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_link_without_carrier_stays_down_despite_orders() {
        let mut failures = Failures::new(100);
        failures.set_carrier(&[0], false, 1_000);
        failures.set_carrier(&[0], false, 1_500);
        failures.order(&[0], &[LinkSetting::Down], 2_000);
        failures.order(&[0], &[LinkSetting::Up], 3_000);
        assert!(!states(&failures, 3_000)[0].up);
        failures.set_carrier(&[0], true, 4_000);
        assert_eq!(states(&failures, 4_000), [LinkState::UP; 2]);
        failures.order(&[0], &[LinkSetting::Down], 5_000);
        failures.set_carrier(&[0], true, 6_000);
        assert!(!states(&failures, 6_000)[0].up, "the ordered state persists");
    }

    #[test]
    fn links_reported_down_by_others_are_down_and_not_reported_again() {
        let mut failures = Failures::new(100);
        failures.set_down_remotely(&[1], 2, 1_000);
        failures.order(&[0], &[LinkSetting::Down], 1_000);
        failures.set_carrier(&[0], false, 1_000);
        assert!(!states(&failures, 1_000)[1].up);
        assert_eq!(failures.down(), [0]);
        failures.order(&[1], &[LinkSetting::Up], 2_000);
        assert!(!states(&failures, 2_000)[1].up, "only the reporting machine can withdraw it");
        failures.set_down_remotely(&[], 2, 3_000);
        failures.order(&[0], &[LinkSetting::Up], 3_000);
        assert_eq!((states(&failures, 3_000)[1].up, failures.down()), (true, vec![0]));
        assert!(known_down(failures.events(), 1, 3_099) && !known_down(failures.events(), 1, 3_100));
    }

    /// Routing detects both the failure and the repair with a delay, and repeated changes need no
    /// further table entries.
    #[test]
    fn routing_is_delayed_and_tables_do_not_grow() {
        let mut failures = Failures::new(100);
        for round in 1..50 {
            let now_ps = round * 10_000;
            failures.order(&[0], &[LinkSetting::Down], now_ps);
            assert!(!states(&failures, now_ps)[0].up);
            assert!(!known_down(failures.events(), 0, now_ps + 99) && known_down(failures.events(), 0, now_ps + 100));
            failures.order(&[0], &[LinkSetting::Down], now_ps + 500);
            failures.order(&[0], &[LinkSetting::Up], now_ps + 1_000);
            assert!(states(&failures, now_ps + 1_000)[0].up);
            assert!(
                known_down(failures.events(), 0, now_ps + 1_099) && !known_down(failures.events(), 0, now_ps + 1_100)
            );
            assert!(epoch_starts(failures.events()).len() <= 3);
        }
    }
}
