//! Frames come to the queue of the shard that they are for by rules of the NIC, one for each of the host's ports, where it has such rules.

use std::io;
use std::net::IpAddr;

use spray_wire::Ports;

use super::undo::Undo;
use crate::endpoint::Shard;
use crate::net::ethtool::{Request, Rule, RuleTable};

/// The rules of an interface, for as long as it is taken over.
#[derive(Debug)]
pub(super) struct Rules {
    count: usize,
    _undo: Undo,
}

impl Rules {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Has the NIC bring frames to `address` to these queues, which are dealt out to so many shards.
    ///
    /// # Errors
    /// Why it has no such rules, or does not take them all. Then it has none of them.
    pub(super) fn set(
        table: &impl RuleTable,
        interface: &str,
        (address, ports): (IpAddr, Ports),
        (queues, shards): (&[u32], usize),
    ) -> io::Result<Self> {
        let heeds = table.heeds()?.ok_or(io::ErrorKind::Unsupported)?;
        let undo = Undo::begin(interface, &[])?;
        let tell = |request: &Request| undo.tell(request);
        let count = put(table, heeds, wanted((address, ports), (queues, shards)), tell)?;
        Ok(Self { count, _undo: undo })
    }
}

/// A rule for each port: to a queue of the shard that the port is for. A shard's ports are spread over its queues.
fn wanted(
    (address, ports): (IpAddr, Ports),
    (queues, shards): (&[u32], usize),
) -> impl Iterator<Item = Rule> + use<'_> {
    let whole = Shard::all(shards).next().unwrap_or(Shard::WHOLE);
    (0..Ports::COUNT as u8).map(move |number| {
        let shard = whole.taking(number);
        let of_it: Vec<u32> = queues
            .iter()
            .enumerate()
            .filter(|(place, _)| whole.serving(*place) == shard)
            .map(|(_, &queue)| queue)
            .collect();
        let turn = usize::from(number) / shards.max(1);
        Rule { address, port: ports.at(number), queue: of_it[turn % of_it.len()] }
    })
}

/// Puts rules into a table that does or does not heed them yet, and tells for each change what undoes it. Returns how many there are.
///
/// # Errors
/// As the table says. What was changed is undone by whoever was told.
fn put(
    table: &impl RuleTable,
    heeds: bool,
    rules: impl Iterator<Item = Rule>,
    tell: impl Fn(&Request) -> io::Result<()>,
) -> io::Result<usize> {
    if !heeds {
        tell(&table.heed_request(false)?)?;
        table.heed(true)?;
    }
    let mut count = 0;
    for rule in rules {
        let place = table.add(rule)?;
        tell(&table.removal(place))?;
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;

    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    /// A NIC with room for so many rules. Others have put one there.
    struct Fake {
        rules: RefCell<BTreeMap<u32, Rule>>,
        heeds: Cell<bool>,
        room: u32,
        /// What undoes its changes.
        told: RefCell<Vec<Request>>,
    }

    impl RuleTable for Fake {
        fn heeds(&self) -> io::Result<Option<bool>> {
            Ok(Some(self.heeds.get()))
        }

        fn heed(&self, on: bool) -> io::Result<()> {
            self.heeds.set(on);
            Ok(())
        }

        fn heed_request(&self, on: bool) -> io::Result<Request> {
            let mut request = Request::NONE;
            request.0[1] = if on { 1 } else { 2 };
            Ok(request)
        }

        fn add(&self, rule: Rule) -> io::Result<u32> {
            let place = (0..self.room).rev().find(|place| !self.rules.borrow().contains_key(place));
            let place = place.ok_or_else(|| io::Error::other("full"))?;
            self.rules.borrow_mut().insert(place, rule);
            Ok(place)
        }
    }

    impl Fake {
        fn new(room: u32) -> Self {
            let others = Rule { address: ADDRESS, port: 80, queue: 0 };
            Self {
                rules: RefCell::new([(room - 1, others)].into()),
                heeds: Cell::new(false),
                room,
                told: RefCell::default(),
            }
        }

        /// What the child is told.
        fn hear(&self, request: &Request) -> io::Result<()> {
            self.told.borrow_mut().push(*request);
            Ok(())
        }

        /// What it does at the end.
        fn undo(&self) {
            for request in self.told.borrow().iter().rev() {
                match request.0[1] {
                    0 => drop(self.rules.borrow_mut().remove(&request.0[44])),
                    on => self.heeds.set(on == 1),
                }
            }
        }
    }

    fn all(queues: &[u32], shards: usize) -> Vec<Rule> {
        wanted((ADDRESS, Ports::DEFAULT), (queues, shards)).collect()
    }

    #[test]
    fn each_port_goes_to_a_queue_of_its_shard_and_each_queue_gets_as_many() {
        for (queues, shards) in [(1, 1), (4, 4), (8, 4), (4, 2), (64, 64), (6, 3)] {
            // The interface's queues need not be the first.
            let queues: Vec<u32> = (100..100 + queues).collect();
            let whole = Shard::all(shards).next().unwrap();
            let mut of_queue = BTreeMap::new();
            for (number, rule) in all(&queues, shards).into_iter().enumerate() {
                assert_eq!((rule.address, rule.port), (ADDRESS, Ports::DEFAULT.first() + number as u16));
                let place = (rule.queue - 100) as usize;
                assert_eq!(
                    whole.serving(place),
                    whole.taking(number as u8),
                    "port {number} of {queues:?}, {shards} shards"
                );
                *of_queue.entry(rule.queue).or_insert(0) += 1;
            }
            let [least, most] = [of_queue.values().min(), of_queue.values().max()].map(Option::unwrap);
            assert!(of_queue.len() == queues.len() && most - least <= 1 + *least / 4, "{of_queue:?}");
        }
    }

    #[test]
    fn what_was_put_is_undone_and_the_rules_of_others_stay() {
        let nic = Fake::new(100);
        assert_eq!(put(&nic, false, all(&[0, 1], 2).into_iter(), |request| nic.hear(request)).unwrap(), 64);
        assert!(nic.heeds.get() && nic.rules.borrow().len() == 65);
        nic.undo();
        assert!(!nic.heeds.get() && nic.rules.borrow().len() == 1 && nic.rules.borrow()[&99].port == 80);
    }

    #[test]
    fn a_table_without_room_for_all_is_an_error_and_has_none_afterwards() {
        let nic = Fake::new(40);
        let error = put(&nic, true, all(&[0, 1], 2).into_iter(), |request| nic.hear(request)).unwrap_err();
        assert_eq!(error.to_string(), "full");
        nic.undo();
        assert!(nic.rules.borrow().len() == 1);
    }
}
