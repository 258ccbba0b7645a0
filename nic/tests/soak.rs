//! Endpoints in long use, in virtual time: a million successive connections, and 300 days, or 20
//! with keys. Allocations are counted: at the end no more memory is in use than near the beginning.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod counting;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use counting::{Counting, counts};
use spray_nic::device::{DeviceHealth, Impairments, MemoryConfig, MemoryDevice, MemoryNetwork};
use spray_nic::keys::{Keys, PrivateKey};
use spray_nic::{Bytes, ConnectionId, Endpoint, EndpointConfig, EndpointEvent, Kind, Peer, Time};

#[global_allocator]
static COUNTING: Counting = Counting;

const US: u64 = 1_000_000;
const SECOND_PS: u64 = 1_000_000_000_000;
const DAY_S: u64 = 86_400;
/// The size of each endpoint's connection table.
const SLOTS: u32 = 16;
/// The interval of keep-alive probes on an idle connection.
const KEEP_ALIVE_S: u64 = 20;

fn peer(host: u8) -> Peer {
    Peer { address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, host + 1)), mac: [2, 0, 0, 0, 0, host + 1] }
}

fn config(host: u8, keys: Option<&Keys>) -> EndpointConfig {
    let Peer { address, mac } = peer(host);
    let config = EndpointConfig::real(address, mac, 1400).unwrap();
    let config = config.with_give_up(Duration::from_secs(3 * KEEP_ALIVE_S)).with_max_message(100_000);
    let config = EndpointConfig { max_connections: SLOTS, seed: Some(host.into()), ..config };
    match keys {
        Some(keys) => config.with_keys(keys.clone()),
        None => config,
    }
}

/// Returns the content of a message, which differs between messages.
fn content(number: u64, bytes: usize) -> Bytes {
    (0..bytes as u64).map(|at| (number * 7 + at * 31) as u8).collect()
}

/// The events of one endpoint since they were last evaluated.
#[derive(Debug, Default)]
struct Observed {
    accepted: Option<ConnectionId>,
    received: Vec<(ConnectionId, Bytes)>,
    delivered: u64,
    /// Connections that were closed, or that failed at either end because one end aborted them.
    ended: u64,
}

/// Two endpoints connected by an in-memory network.
struct Pair {
    network: MemoryNetwork,
    hosts: [Endpoint<MemoryDevice>; 2],
    observed: [Observed; 2],
    now: Time,
    polls: u64,
}

impl Pair {
    fn new(keys: Option<&Keys>) -> Self {
        let impairments = Impairments::delay(5 * US);
        let network = MemoryNetwork::new(MemoryConfig { impairments, ..MemoryConfig::default() });
        let hosts = [0, 1].map(|host| Endpoint::new(network.attach(peer(host).mac), config(host, keys)).unwrap());
        Self { network, hosts, observed: Default::default(), now: Time::ZERO, polls: 0 }
    }

    /// Polls both endpoints whenever something is due, until `end` or until `enough` returns true.
    fn run(&mut self, end: Time, enough: impl Fn(&Self) -> bool) -> bool {
        loop {
            self.network.advance(self.now);
            let mut next_at = self.network.next_due().unwrap_or(Time::NEVER);
            for (host, observed) in self.hosts.iter_mut().zip(&mut self.observed) {
                next_at = next_at.min(host.poll(self.now).unwrap_or(Time::NEVER));
                while let Some(event) = host.poll_event() {
                    observed.take(event);
                }
            }
            self.polls += 2;
            let next_at = next_at.min(self.network.next_due().unwrap_or(Time::NEVER)).max(self.now.after(100_000));
            if enough(self) {
                return true;
            }
            if next_at > end {
                self.now = end;
                return false;
            }
            self.now = next_at;
        }
    }

    /// Runs until `enough` returns true; panics after a second.
    fn run_until(&mut self, what: &str, enough: impl Fn(&Self) -> bool) {
        let end = self.now.after(SECOND_PS);
        assert!(self.run(end, enough), "{what}: {:?}", self.observed);
    }

    /// Sends a message from one end and receives it at the other.
    fn exchange(&mut self, from: usize, connection: ConnectionId, data: &Bytes) -> ConnectionId {
        self.hosts[from].send_at(connection, data.clone(), self.now).unwrap();
        self.run_until("delivery", |pair| {
            pair.observed[1 - from].received.len() == 1 && pair.observed[from].delivered == 1
        });
        let (there, received) = self.observed[1 - from].received.pop().unwrap();
        assert!(received == *data && std::mem::take(&mut self.observed[from].delivered) == 1);
        there
    }

    /// Opens a connection with a message and answers it.
    fn open(&mut self, number: u64) -> [ConnectionId; 2] {
        let ours = self.hosts[0].connect(self.now, peer(1), None).unwrap();
        let theirs = self.exchange(0, ours, &content(number, 700 + (number % 3_000) as usize));
        assert_eq!(self.observed[1].accepted.take(), Some(theirs));
        assert_eq!(self.exchange(1, theirs, &content(number, 100)), ours);
        [ours, theirs]
    }

    /// Closes a connection from one side or the other, or aborts it.
    fn end(&mut self, number: u64, [ours, theirs]: [ConnectionId; 2]) {
        match number % 3 {
            0 => self.hosts[0].close(ours),
            1 => self.hosts[1].close(theirs),
            _ => self.hosts[0].abort(ours),
        }
        self.run_until("the end", |pair| pair.observed.iter().all(|observed| observed.ended == 1));
        self.observed.iter_mut().for_each(|observed| observed.ended = 0);
    }

    /// Checks that every frame is accounted for and that none is held.
    fn audit(self) {
        for host in self.hosts {
            assert_eq!((host.connections(), host.stats().control_dropped, host.stats().invalid), (0, 0, 0));
            let device = host.into_device();
            device.audit().unwrap();
            assert_eq!(device.frame_counts().held, 0);
        }
        self.network.audit().unwrap();
    }
}

impl Observed {
    fn take(&mut self, event: EndpointEvent) {
        match event {
            EndpointEvent::Accepted { connection, .. } => assert_eq!(self.accepted.replace(connection), None),
            EndpointEvent::Received { connection, data, .. } => self.received.push((connection, data)),
            EndpointEvent::Delivered { .. } => self.delivered += 1,
            EndpointEvent::Closed { .. } | EndpointEvent::Failed { .. } => self.ended += 1,
            _ => {}
        }
    }
}

fn keys() -> Keys {
    Keys::new(PrivateKey::generate().unwrap(), vec![])
}

/// The cost of a hundred connections.
#[derive(Clone, Copy, Debug)]
struct Cost {
    live_bytes: i64,
    allocations: u64,
    polls: u64,
}

/// Opens and closes `count` connections, with messages in both directions.
fn connections(count: u64, keys: Option<&Keys>) {
    let mut pair = Pair::new(keys);
    let mut numbers: [Vec<u32>; 2] = [(); 2].map(|()| Vec::with_capacity(count as usize));
    let mut costs = Vec::with_capacity(count as usize / 300 + 1);
    for round in 0..count / 300 {
        let (before, polls) = (counts(), pair.polls);
        for number in 0..300 {
            let both = pair.open(number);
            pair.end(number, both);
            numbers.iter_mut().zip(both).for_each(|(numbers, id)| numbers.push(id.raw()));
        }
        let after = counts();
        let allocations = after.allocations - before.allocations;
        costs.push(Cost { live_bytes: after.live_bytes, allocations, polls: pair.polls - polls });
        assert_eq!(pair.hosts.each_ref().map(Endpoint::connections), [0, 0], "after {round}");
    }
    check_costs(&costs);
    numbers.into_iter().for_each(check_numbers);
    pair.audit();
}

/// The last rounds must cost what early ones did. Queues have grown to their final sizes after two
/// rounds.
fn check_costs(costs: &[Cost]) {
    let (first, last) = (costs[2], costs[costs.len() - 1]);
    println!("{first:?}, {last:?}");
    let most = |of: fn(&Cost) -> u64| costs[2..].iter().map(of).max().unwrap();
    assert!(costs[2..].iter().all(|cost| cost.live_bytes <= first.live_bytes + 4_096), "memory does not grow");
    assert!(most(|cost| cost.allocations) <= first.allocations + first.allocations / 50);
    assert!(most(|cost| cost.polls) <= first.polls + first.polls / 50);
}

/// No two of these connections have the same number.
fn check_numbers(mut numbers: Vec<u32>) {
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]));
}

//= docs/specs/endpoint.md#END-36 no age limit
#[test]
fn hundreds_of_connections_leave_no_memory() {
    connections(1_500, None);
    connections(1_500, Some(&keys()));
}

//= docs/specs/endpoint.md#END-36 no age limit
#[test]
#[ignore = "cargo xtask ci runs it"]
fn a_million_connections_leave_no_memory() {
    let count = std::env::var("SOAK_CONNECTIONS").map_or(1_060_000, |count| count.parse().unwrap());
    connections(count, None);
}

//= docs/specs/endpoint.md#END-36 no age limit
#[test]
#[ignore = "cargo xtask ci runs it"]
fn twenty_thousand_sealed_connections_leave_no_memory() {
    connections(20_000, Some(&keys()));
}

/// Sends `count` bytes through one connection, in messages of 100,000 bytes, of which sixteen are
/// in flight at a time.
fn bytes(count: u64, keys: Option<&Keys>) {
    let mut pair = Pair::new(keys);
    let both = pair.open(0);
    let data = content(1, 100_000);
    let (mut sent, mut taken, mut live) = (0, 0, Vec::with_capacity(1_000));
    let messages = count / data.len() as u64;
    while taken < messages {
        while sent < messages && sent - pair.observed[0].delivered < 16 {
            pair.hosts[0].send_at(both[0], data.clone(), pair.now).unwrap();
            sent += 1;
        }
        let delivered = pair.observed[0].delivered;
        pair.run_until("more", |pair| pair.observed[0].delivered > delivered && !pair.observed[1].received.is_empty());
        for (connection, received) in pair.observed[1].received.drain(..) {
            assert!(connection == both[1] && received == data);
            taken += 1;
        }
        if taken / (messages / 1_000).max(1) > live.len() as u64 && live.len() < 1_000 {
            live.push(counts().live_bytes);
        }
    }
    pair.run_until("the last message", |pair| pair.observed[0].delivered == messages);
    let (sender, receiver) = pair.hosts[0].totals();
    let (early, most) = (live[..100].iter().max().unwrap(), live.iter().max().unwrap());
    println!("{messages} messages, {} packets, {early} bytes in use early and {most} at most", sender.packets_sent);
    assert!(*most <= early + 4 * data.len() as i64);
    assert_eq!((pair.hosts[1].totals().1.messages, receiver.messages), (messages + 1, 1));
    pair.observed[0].delivered = 0;
    pair.end(0, both);
    pair.audit();
}

//= docs/specs/endpoint.md#END-36 no age limit
#[test]
#[ignore = "cargo xtask ci runs it"]
fn bytes_for_the_time_available() {
    bytes(soak_bytes(), None);
}

/// Keys change during the transfer from 22 GB on.
//= docs/specs/endpoint.md#END-36 no age limit
#[test]
#[ignore = "cargo xtask ci runs it"]
fn sealed_bytes_for_the_time_available() {
    bytes(soak_bytes(), Some(&keys()));
}

fn soak_bytes() -> u64 {
    std::env::var("SOAK_BYTES").map_or(1_000_000_000, |count| count.parse().unwrap())
}

/// Runs `count` days with one idle connection, one with a message in each direction every 100 s,
/// and every day another one that lasts a minute.
fn days(count: u64, keys: Option<&Keys>) {
    let mut pair = Pair::new(keys);
    let idle = pair.open(0);
    let busy = pair.open(1);
    let mut ends = Vec::with_capacity(count as usize);
    let mut message_count = 0;
    for day in 0..count {
        let begun = pair.now;
        let daily = pair.open(day);
        for turn in 0..DAY_S / 100 {
            let now = pair.now;
            assert_eq!(pair.exchange(0, busy[0], &content(turn, 900)), busy[1]);
            assert_eq!(pair.exchange(1, busy[1], &content(turn, 3_000)), busy[0]);
            if turn == 0 {
                assert!(!pair.run(now.after(60 * SECOND_PS), |_| false));
                pair.end(day, daily);
            }
            assert!(!pair.run(now.after(100 * SECOND_PS), |_| false));
        }
        assert!(pair.now >= begun.after(DAY_S * SECOND_PS));
        let probes: u64 = pair.hosts.iter().map(|host| host.stats().sent[Kind::Probe]).sum();
        ends.push((probes - message_count, counts().live_bytes));
        message_count = probes;
    }
    check_days(&ends);
    let later = pair.now.after(DAY_S / 2 * SECOND_PS);
    assert!(!pair.run(later, |_| false));
    [idle, busy].into_iter().for_each(|both| pair.end(0, both));
    pair.audit();
}

/// Each day must have as many keep-alives as the third, and use no more memory.
fn check_days(ends: &[(u64, i64)]) {
    let (probes, live_bytes) = ends[2];
    println!("{} days, {probes} probes a day, {live_bytes} bytes; {:?} on the last", ends.len(), ends[ends.len() - 1]);
    // Only the idle connection is probed, every 20 s, plus the time of an answer.
    assert!((DAY_S / KEEP_ALIVE_S..3 * DAY_S / KEEP_ALIVE_S).contains(&probes));
    for (day, end) in ends.iter().enumerate().skip(2) {
        assert!(end.0.abs_diff(probes) <= probes / 100, "day {day}: {end:?}");
        assert!(end.1 <= live_bytes + 4_096, "day {day}: {end:?}");
    }
}

//= docs/specs/endpoint.md#END-36 no age limit
#[test]
fn days_leave_no_memory() {
    days(4, None);
}

//= docs/specs/endpoint.md#END-36 no age limit
#[test]
#[ignore = "cargo xtask ci runs it"]
fn three_hundred_days_leave_no_memory() {
    days(300, None);
}

/// Keys change 14,000 times in each of the two connections, which takes most of the time.
//= docs/specs/endpoint.md#END-36 no age limit
#[test]
#[ignore = "cargo xtask ci runs it"]
fn twenty_sealed_days_leave_no_memory() {
    days(20, Some(&keys()));
}
