//! Rules of the NIC that direct frames to a queue of their shard: one for each of the host's ports.

use std::io;
use std::net::IpAddr;

use spray_wire::Ports;

use super::restore::RestoreOnExit;
use crate::endpoint::Shard;
use crate::net::drivers;
use crate::net::ethtool::{Ethtool, Feature, Request, Rule, RuleTable};

/// The rules of an interface that is taken over. Dropping it removes them, and restores those that
/// were there before.
#[derive(Debug)]
pub(super) struct Rules {
    count: usize,
    undo: RestoreOnExit,
}

impl Rules {
    /// Prepares the rules. `None` where the driver has none.
    ///
    /// # Errors
    /// Why the NIC's rules are not changed.
    pub(super) fn begin(nic: &Ethtool, interface: &str) -> io::Result<Option<Self>> {
        let Some(heeds) = nic.feature(Feature::NTUPLE)? else { return Ok(None) };
        let driver = nic.driver().unwrap_or_default().name;
        if !heeds && drivers::resets_link_for_rules(&driver) {
            return Err(io::Error::other(format!(
                "{driver} resets its link to heed rules, so let it always: `ethtool -K {interface} ntuple on`"
            )));
        }
        let undo = RestoreOnExit::begin(interface, &[])?;
        if !heeds {
            undo.add(&nic.feature_request(Feature::NTUPLE, false)?)?;
            nic.set_feature(Feature::NTUPLE, true)?;
        }
        Ok(Some(Self { count: 0, undo }))
    }

    /// Sets rules that direct frames to `address` to these queues, which `shards` shards serve.
    ///
    /// # Errors
    /// Why the NIC does not accept all of them. It then has none.
    pub(super) fn put(
        self,
        table: &impl RuleTable,
        address: IpAddr,
        ports: Ports,
        queues: &[u32],
        shards: usize,
    ) -> io::Result<Self> {
        let rules = wanted(address, ports, queues, shards);
        let count = put(table, rules, |request| self.undo.add(request))?;
        Ok(Self { count, ..self })
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }
}

/// Returns a rule for each port, without a location: to a queue of the port's shard. The ports of a
/// shard are spread over its queues.
fn wanted(
    address: IpAddr,
    ports: Ports,
    queues: &[u32],
    shards: usize,
) -> impl Iterator<Item = Rule> + Clone + use<'_> {
    let whole = Shard::all(shards).next().unwrap_or(Shard::SINGLE);
    (0..Ports::COUNT as u8).map(move |number| {
        let shard = whole.shard_of_port(number);
        let of_it: Vec<u32> = queues
            .iter()
            .enumerate()
            .filter(|(place, _)| whole.shard_of_queue(*place) == shard)
            .map(|(_, &queue)| queue)
            .collect();
        let turn = usize::from(number) / shards.max(1);
        Rule::new(address, ports.at(number), of_it[turn % of_it.len()])
    })
}

/// Inserts rules into a table, in place of those that match the same packets, of a killed run or of
/// the operator. Reports for each change what undoes it. Returns the number of rules.
///
/// # Errors
/// As the table. The reports undo what was changed.
fn put(
    table: &impl RuleTable,
    rules: impl Iterator<Item = Rule> + Clone,
    tell: impl Fn(&Request) -> io::Result<()>,
) -> io::Result<usize> {
    let mut there = table.contents()?;
    let for_the_same =
        |other: &Rule| rules.clone().any(|rule| (rule.address, rule.port) == (other.address, other.port));
    for rule in there.rules.into_iter().filter(for_the_same) {
        tell(&rule.insertion())?;
        table.remove(rule)?;
        there.free.push(rule.place);
    }
    let mut count = 0;
    for rule in rules {
        let place = there.free.pop().ok_or_else(|| io::Error::other("the NIC has no room for more rules"))?;
        let place = table.add(Rule { place, ..rule })?;
        tell(&Rule { place, ..rule }.removal())?;
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use super::*;
    use crate::net::ethtool::Contents;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    /// A NIC with room for `room` rules. Like drivers, it refuses a second rule for the same
    /// packets and replaces a rule at an occupied location.
    struct Fake {
        rules: RefCell<BTreeMap<u32, Rule>>,
        room: u32,
        /// The requests that undo its changes.
        undo_requests: RefCell<Vec<Request>>,
    }

    impl RuleTable for Fake {
        fn contents(&self) -> io::Result<Contents> {
            let rules = self.rules.borrow();
            let free = (0..self.room).filter(|place| !rules.contains_key(place)).collect();
            Ok(Contents { rules: rules.values().copied().collect(), free })
        }

        fn add(&self, rule: Rule) -> io::Result<u32> {
            let same = |other: &Rule| (other.address, other.port) == (rule.address, rule.port);
            if self.rules.borrow().values().any(same) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            self.rules.borrow_mut().insert(rule.place, rule);
            Ok(rule.place)
        }

        fn remove(&self, rule: Rule) -> io::Result<()> {
            assert_eq!(self.rules.borrow_mut().remove(&rule.place), Some(rule));
            Ok(())
        }
    }

    impl Fake {
        fn new(room: u32, rules: &[Rule]) -> Self {
            let rules = rules.iter().map(|rule| (rule.place, *rule)).collect();
            Self { rules: RefCell::new(rules), room, undo_requests: RefCell::default() }
        }

        fn put(&self, queues: &[u32], shards: usize) -> io::Result<usize> {
            put(self, wanted(ADDRESS, Ports::DEFAULT, queues, shards), |request| {
                self.undo_requests.borrow_mut().push(*request);
                Ok(())
            })
        }

        fn all(&self) -> Vec<Rule> {
            self.rules.borrow().values().copied().collect()
        }

        /// Does what the undo process does at the end.
        fn undo(&self) {
            for request in self.undo_requests.borrow().iter().rev() {
                let here: Vec<Rule> = self.all();
                match here.iter().find(|rule| rule.removal() == *request) {
                    Some(rule) => self.remove(*rule).unwrap(),
                    None => drop(self.add(request.rule().unwrap()).unwrap()),
                }
            }
        }
    }

    fn rule(port: u16, queue: u32, place: u32) -> Rule {
        Rule { address: ADDRESS, port, queue, place }
    }

    #[test]
    fn each_port_maps_to_a_queue_of_its_shard_evenly() {
        for (queues, shards) in [(1, 1), (4, 4), (8, 4), (4, 2), (64, 64), (6, 3)] {
            // The interface's queues need not start at 0.
            let queues: Vec<u32> = (100..100 + queues).collect();
            let whole = Shard::all(shards).next().unwrap();
            let mut of_queue = BTreeMap::new();
            for (number, rule) in wanted(ADDRESS, Ports::DEFAULT, &queues, shards).enumerate() {
                assert_eq!((rule.address, rule.port), (ADDRESS, Ports::DEFAULT.first() + number as u16));
                let place = (rule.queue - 100) as usize;
                assert_eq!(
                    whole.shard_of_queue(place),
                    whole.shard_of_port(number as u8),
                    "port {number} of {queues:?}, {shards} shards"
                );
                *of_queue.entry(rule.queue).or_insert(0) += 1;
            }
            let [least, most] = [of_queue.values().min(), of_queue.values().max()].map(Option::unwrap);
            assert!(of_queue.len() == queues.len() && most - least <= 1 + *least / 4, "{of_queue:?}");
        }
    }

    #[test]
    fn own_rules_are_removed_and_other_rules_stay() {
        let others = [rule(80, 0, 99)];
        let nic = Fake::new(100, &others);
        assert_eq!(nic.put(&[0, 1], 2).unwrap(), 64);
        assert!(nic.all().len() == 65 && nic.all()[64] == others[0]);
        nic.undo();
        assert_eq!(nic.all(), others);
    }

    /// The table is filled by rules for other queues, left behind by a run that was killed with all
    /// its processes.
    #[test]
    fn rules_for_the_same_packets_are_replaced_and_restored() {
        let first = Ports::DEFAULT.first();
        let left: Vec<Rule> = (0..64).map(|number| rule(first + number, 7, number.into())).collect();
        let nic = Fake::new(64, &left);
        assert_eq!(nic.put(&[0, 1], 2).unwrap(), 64);
        assert!(nic.all().len() == 64 && nic.all().iter().all(|rule| rule.queue < 2));
        nic.undo();
        assert_eq!(nic.all(), left);
    }

    #[test]
    fn a_full_rule_table_is_an_error_and_keeps_no_rule() {
        let nic = Fake::new(40, &[rule(80, 0, 39)]);
        assert_eq!(nic.put(&[0, 1], 2).unwrap_err().to_string(), "the NIC has no room for more rules");
        nic.undo();
        assert_eq!(nic.all(), [rule(80, 0, 39)]);
    }
}
