//! A flow that changes its path is one connection at both ends.

use spray_core::path::{AnyBalancer, BalancerConfig, Ev, FlowcutConfig};
use spray_core::units::{ByteSize, Ratio};

use super::*;

/// Returns settings under which a path counts as congested if its round trips are longer than the
/// base, until a message ends.
fn flowcut() -> FlowConfig {
    let own = FlowcutConfig {
        rtt_ratio: Ratio::permille(1_000),
        weight: Ratio::permille(1_000),
        tail_bytes: Some(ByteSize::new(0)),
        ..FlowcutConfig::default()
    };
    FlowConfig { balancer: BalancerConfig::Flowcut(own), ..flow(false) }
}

/// Returns the entropy value that a host's connection uses.
fn ev(rig: &Rig, host: usize, connection: ConnectionId) -> Ev {
    let connection = rig.endpoints[host].machine.table.get(connection).unwrap();
    match connection.flow.as_ref().unwrap().sending.sender.balancer() {
        AnyBalancer::Flowcut(flowcut) => flowcut.ev(),
        other => panic!("{other:?}"),
    }
}

//= docs/specs/flowcut.md#FLC-6 restoring the source port
#[test]
fn a_connection_keeps_its_number_when_its_path_changes() {
    let impairments = Impairments { delay_ps: 15 * US, ..Impairments::default() };
    let mut rig = Rig::with(2, false, impairments, |_, config| config.flow = flowcut());
    let connection = rig.connect(0, 1);
    let mut paths = Vec::new();
    for message in 0..12 {
        rig.endpoints[0].send(connection, content(message, 20_000)).unwrap();
        assert!(
            rig.run(10 * US, 50 * MS, |rig| rig.delivered(0) == message + 1 && rig.received(1).len() == message + 1)
        );
        paths.push(ev(&rig, 0, connection));
    }
    paths.sort_unstable();
    paths.dedup();
    assert!(paths.len() >= 10, "each message drains its path, so that the next one takes another: {paths:?}");
    // One connection at either end with the same number throughout; its messages arrive whole and
    // in order.
    assert_eq!((rig.endpoints[0].connections(), rig.endpoints[1].connections()), (1, 1));
    let accepted = rig.accepted(1);
    assert_eq!(accepted.len(), 1);
    let received = rig.received(1);
    for (number, (from, message, data)) in received.iter().enumerate() {
        assert_eq!((*from, *message), (accepted[0], MessageId(number as u32)));
        assert_eq!(*data, content(number, 20_000));
    }
    let stats = rig.endpoints[1].connection_stats(accepted[0]).unwrap();
    assert_eq!((stats.receiver.order.reordered, stats.receiver.duplicates), (0, 0));
    // In the reverse direction the same connection has other paths.
    rig.endpoints[1].send(accepted[0], content(99, 5_000)).unwrap();
    assert!(rig.run(10 * US, 50 * MS, |rig| rig.received(0).len() == 1));
    assert_eq!(rig.received(0)[0].0, connection);
}
