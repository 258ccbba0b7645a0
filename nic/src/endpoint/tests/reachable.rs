//! Path information given to connections.

use spray_core::path::{AnyBalancer, Balancer, Ev, SendInfo};
use spray_core::rng::stream;

use super::*;

/// Returns the entropy values of a connection's next packets, each once.
fn next(rig: &mut Rig, id: ConnectionId) -> Vec<Ev> {
    let table = &mut rig.endpoints[0].machine.table;
    let index = table.find(id).unwrap();
    let flow = table.slot(index).unwrap().flow.as_ref().expect("an open connection");
    let AnyBalancer::HostDr(balancer) = flow.sending.sender.balancer() else { panic!("another balancer") };
    let (mut balancer, mut rng, path) = (balancer.clone(), stream(1, 1), super::flow(false).path);
    let full = SendInfo { bytes: 1_000, unsent_bytes: 1, ..SendInfo::default() };
    let mut evs: Vec<_> = (0..200).map(|_| balancer.next_ev(path.at(Time::ZERO), &full, &mut rng)).collect();
    evs.sort_unstable();
    evs.dedup();
    evs
}

#[test]
fn paths_reach_the_balancer_before_and_after_the_handshake() {
    let mut rig = Rig::with(2, false, Impairments::default(), |_, config| {
        config.flow.balancer = BalancerKind::HostDr.into();
    });
    let connection = rig.connect(0, 1);
    rig.endpoints[0].on_reachable(connection, &[7, 5, 6].map(|ev| [Ev::new(ev); 8]));
    rig.endpoints[0].on_reachable(ConnectionId(0xffff), &[[Ev::new(1); 8]]);
    rig.endpoints[0].send(connection, content(1, 50_000)).unwrap();
    assert!(rig.run(US, 100 * MS, |rig| rig.delivered(0) == 1));
    assert_eq!(next(&mut rig, connection), [5, 6, 7].map(Ev::new));
    rig.endpoints[0].on_reachable(connection, &[[Ev::new(9); 8]]);
    assert_eq!(next(&mut rig, connection), [9].map(Ev::new));
    rig.endpoints[0].send(connection, content(2, 50_000)).unwrap();
    assert!(rig.run(US, 100 * MS, |rig| rig.delivered(0) == 2));
    assert_eq!(rig.received(1)[1].2, content(2, 50_000));
    rig.audit();
}
