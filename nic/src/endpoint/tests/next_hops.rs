//! Answers go to the next hop of a client, not to the Ethernet source of its frames.

use spray_wire::{Accept, Body, Probe, Retry, Terms};

use super::hostile::{RAW_HOST, RawHost, client_terms};
use super::*;
use crate::keys::{Keys, PrivateKey};

/// Creates a rig in which host 1 resolves next hops.
fn resolving(keys: Option<&Keys>) -> Rig {
    let mut rig = Rig::with(2, false, Impairments::delay(US), |_, config| config.keys = keys.cloned());
    rig.endpoints[1].resolve_next_hops();
    rig
}

/// Runs for `for_ps`, and resolves the addresses of hosts as the kernel would.
fn run(rig: &mut Rig, for_ps: u64) -> usize {
    let mut resolved = 0;
    rig.run(US, for_ps, |rig| {
        for unresolved in rig.endpoints[1].unresolved().collect::<Vec<_>>() {
            resolved += 1;
            for host in [0, RAW_HOST].into_iter().filter(|&host| address(host, false) == unresolved) {
                rig.endpoints[1].set_next_hop(unresolved, mac(host));
            }
        }
        false
    });
    resolved
}

/// A host on the segment requests a connection from the address of host 0, and answers what it
/// receives.
//= docs/specs/endpoint.md#END-47 to the next hop that the kernel
#[test]
fn a_host_cannot_connect_from_another_hosts_address() {
    for known in [false, true] {
        let mut rig = resolving(None);
        let mut raw_host = RawHost::new(&rig);
        if known {
            rig.connect(0, 1);
            run(&mut rig, 20 * US);
            assert_eq!(rig.accepted(1).len(), 1);
        }
        let connect = |rig: &Rig, raw_host: &mut RawHost, token| {
            raw_host.send(rig, 0, 1, 0, 0, &Body::Connect(Terms { token, ..client_terms(7) }));
        };
        connect(&rig, &mut raw_host, [0; 16]);
        for _ in 0..100 {
            run(&mut rig, 5 * US);
            for body in raw_host.received() {
                match body {
                    Body::Retry(Retry { token }) => connect(&rig, &mut raw_host, token),
                    Body::Accept(Accept { connection, cookie, .. }) => {
                        let proof = Body::Probe(Probe { token: 1, timestamp: Time::ZERO });
                        raw_host.send(&rig, 0, 1, connection, cookie, &proof);
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(rig.accepted(1).len(), usize::from(known));
        assert_eq!(rig.endpoints[1].stats().sent[Kind::Accept], u64::from(known));
        assert_eq!(rig.endpoints[1].connections(), usize::from(known));
        rig.audit();
    }
}

//= docs/specs/endpoint.md#END-47 to the next hop that the kernel
#[test]
fn resolving_the_next_hop_adds_no_round_trip() {
    for keys in [None, Some(Keys::new(PrivateKey::generate().unwrap(), vec![]))] {
        let mut rig = resolving(keys.as_ref());
        for (round, lookups) in [1, 0].into_iter().enumerate() {
            rig.connect(0, 1);
            assert_eq!(run(&mut rig, 20 * US), lookups);
            assert_eq!(rig.accepted(1).len(), round + 1);
            assert_eq!(rig.endpoints[0].stats().sent[Kind::Connect], 2 * (round as u64 + 1));
        }
        rig.audit();
    }
}

/// The Connects of a client arrive through one router, and the way back leads through another.
//= docs/specs/endpoint.md#END-47 the second half depends on
#[test]
fn an_asymmetric_route_takes_one_more_retry() {
    let (mut rig, router) = (resolving(None), 6);
    let mut raw_host = RawHost::new(&rig);
    let client = RAW_HOST;
    let mut back = RawHost::at(&rig, router);
    let connect = |rig: &Rig, raw_host: &mut RawHost, token| {
        raw_host.send(rig, client, 1, 0, 0, &Body::Connect(Terms { token, ..client_terms(7) }));
        token
    };
    connect(&rig, &mut raw_host, [0; 16]);
    rig.run(US, 10 * US, |_| false);
    let [Body::Retry(Retry { token })] = raw_host.received()[..] else { panic!("one Retry") };
    connect(&rig, &mut raw_host, token);
    rig.run(US, 10 * US, |_| false);
    assert!(rig.endpoints[1].unresolved().eq([address(client, false)]));
    assert!(raw_host.received().is_empty() && back.received().is_empty());
    rig.endpoints[1].set_next_hop(address(client, false), mac(router));
    rig.run(US, 10 * US, |_| false);
    let [Body::Retry(Retry { token })] = back.received()[..] else { panic!("one Retry") };
    connect(&rig, &mut raw_host, token);
    rig.run(US, 10 * US, |_| false);
    assert!(matches!(back.received()[..], [Body::Accept(_)]) && raw_host.received().is_empty());
    rig.audit();
}

//= docs/specs/endpoint.md#END-47 64 clients wait
#[test]
fn clients_that_wait_for_their_next_hop_are_bounded() {
    let mut rig = resolving(None);
    let mut raw_host = RawHost::new(&rig);
    rig.run(US, 5 * US, |_| false);
    for number in 0..1000 {
        let from = 0x900 + number as usize;
        let machine = &rig.endpoints[1].machine;
        let client = Peer { address: address(from, false), mac: mac(RAW_HOST) };
        let token = machine.tokens.make(machine.clock, client, number, 5);
        raw_host.send(&rig, from, 1, 0, 0, &Body::Connect(Terms { token, ..client_terms(number) }));
        rig.run(US, US, |_| false);
    }
    rig.run(US, 10 * US, |_| false);
    // A burst of 64, then one per millisecond.
    let unresolved: Vec<_> = rig.endpoints[1].unresolved().collect();
    assert!((64..=66).contains(&unresolved.len()), "{}", unresolved.len());
    (0..1000).for_each(|number| rig.endpoints[1].set_next_hop(address(0x900 + number, false), mac(RAW_HOST)));
    assert_eq!(rig.endpoints[1].connections(), 16, "the table's size");
    rig.run(US, 10 * US, |_| false);
    let accepts = raw_host.received().len();
    assert_eq!(accepts, 64, "one for each that waited");
    rig.audit();
}
