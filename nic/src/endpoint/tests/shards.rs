//! Hosts that consist of several endpoints.

use super::*;
use crate::device::DeviceHealth as _;
use crate::device::{DeviceStats, Steering};
use crate::keys::{Keys, PrivateKey};

const SHARDS: usize = 3;
const CONNECTIONS: usize = 4;

/// The endpoints of two hosts, the second one's after the first one's.
fn rig(steering: Steering) -> Rig {
    rig_with(steering, BalancerKind::Reps, SHARDS)
}

fn rig_with(steering: Steering, balancer: BalancerKind, shards: usize) -> Rig {
    rig_of(steering, shards, |flow| FlowConfig::new(balancer, flow.path, flow.header_bytes), |_| {})
}

fn rig_of(
    steering: Steering,
    shards: usize,
    make: impl Fn(FlowConfig) -> FlowConfig,
    change: impl Fn(&mut EndpointConfig),
) -> Rig {
    let network = MemoryNetwork::new(MemoryConfig {
        frame_size: 2048,
        queues: shards as u32,
        steering,
        impairments: Impairments { delay_ps: 5 * US, jitter_ps: 5 * US, ..Impairments::default() },
        ..MemoryConfig::default()
    });
    let host = |number| {
        let devices = network.attach_shards(mac(number)).unwrap();
        let shards = devices.into_iter().zip(Shard::all(shards));
        let (make, change) = (&make, &change);
        shards.map(move |(device, shard)| {
            let flow = FlowConfig { ack_every: 4, ack_evs: 4, ..make(flow(false)) };
            let mut config = EndpointConfig { shard, seed: None, flow, ..config(number, false) };
            change(&mut config);
            Endpoint::new(device, config).unwrap()
        })
    };
    let endpoints: Vec<_> = (0..2).flat_map(host).collect();
    let count = endpoints.len();
    let (events, dead) = (vec![Vec::new(); count], vec![false; count]);
    Rig { network, endpoints, events, now: Time::ZERO, v6: false, dead }
}

/// Every shard opens connections and sends a message by each. Returns the frames that were handed over, and the messages that each
/// shard of the second host received.
fn exchange(steering: Steering) -> (u64, Vec<usize>) {
    let mut rig = rig(steering);
    for shard in 0..SHARDS {
        for number in 0..CONNECTIONS {
            let connection = rig.endpoints[shard].connect(rig.now, peer(1, false), None).unwrap();
            rig.endpoints[shard].send(connection, content(number, 30_000)).unwrap();
        }
    }
    let all = |rig: &Rig| (0..SHARDS).map(|shard| rig.delivered(shard)).sum::<usize>() == SHARDS * CONNECTIONS;
    assert!(rig.run(10 * US, 1000 * MS, |rig| all(rig)), "{:?}", rig.endpoints[0].stats());
    assert!((0..2 * SHARDS).all(|shard| rig.failed(shard).is_empty()));
    let unknown = rig.endpoints.iter().map(|endpoint| endpoint.stats().unknown_connection).sum::<u64>();
    assert_eq!(unknown, 0, "no frame comes to a shard that it is not for");
    for endpoint in &mut rig.endpoints[..SHARDS] {
        endpoint.close_all();
    }
    let closed = |rig: &Rig| (0..2 * SHARDS).map(|shard| rig.closed(shard)).sum::<usize>();
    assert!(rig.run(10 * US, 1000 * MS, |rig| closed(rig) == 2 * SHARDS * CONNECTIONS));
    let handed_over = rig.endpoints.iter().map(|endpoint| endpoint.device().stats().handed_over).sum();
    let received = (SHARDS..2 * SHARDS).map(|shard| rig.received(shard).len()).collect();
    rig.audit();
    (handed_over, received)
}

//= docs/specs/endpoint.md#END-44 Several endpoints of a host
#[test]
fn frames_reach_their_shard_by_whichever_queue() {
    let (handed_over, received) = exchange(Steering::Hash);
    assert!(handed_over > 100, "two of three come by the wrong queue: {handed_over}");
    assert_eq!(received, [CONNECTIONS; SHARDS], "connections spread over the shards");
}

/// Whatever queue a Rekey comes by, and whichever shards have the connection.
//= docs/specs/endpoint.md#END-46 fresh keys
#[test]
fn keys_change_between_all_shards() {
    let keys = Keys::new(PrivateKey::generate().unwrap(), vec![]);
    let change = |config: &mut EndpointConfig| {
        (config.keys, config.idle_timeout_ps) = (Some(keys.clone()), 1000 * MS);
    };
    let mut rig = rig_of(Steering::Hash, SHARDS, |flow| flow, change);
    let mut all = Vec::new();
    for shard in 0..SHARDS {
        all.extend(
            (0..CONNECTIONS).map(|_| (shard, rig.endpoints[shard].connect(rig.now, peer(1, false), None).unwrap())),
        );
    }
    for round in 1..=3 {
        for &(shard, connection) in &all {
            rig.endpoints[shard].send_at(connection, content(round, 30_000), rig.now).unwrap();
        }
        let delivered = |rig: &Rig| (0..SHARDS).map(|shard| rig.delivered(shard)).sum::<usize>();
        assert!(rig.run(10 * US, 1000 * MS, |rig| delivered(rig) == round * all.len()), "{round}");
        rig.run(50 * MS, 129_000 * MS, |_| false);
    }
    let connections = rig.endpoints.iter().flat_map(|endpoint| endpoint.machine.table.iter());
    let generations: Vec<u16> =
        connections.filter_map(|connection| Some(connection.seals.as_ref()?.opener.generation())).collect();
    assert_eq!(generations, vec![3; 2 * all.len()]);
    assert!((0..2 * SHARDS).all(|shard| rig.failed(shard).is_empty()));
    rig.audit();
}

/// The share of the second host's frames that come misrouted, once every shard has sent it some messages.
fn misrouted(balancer: BalancerKind, shards: usize) -> f64 {
    let mut rig = rig_with(Steering::Hash, balancer, shards);
    let connections: Vec<_> =
        (0..shards).map(|shard| rig.endpoints[shard].connect(rig.now, peer(1, false), None).unwrap()).collect();
    let counts = |rig: &Rig| {
        let stats: DeviceStats = rig.endpoints[shards..].iter().map(|endpoint| endpoint.device().stats()).sum();
        [stats.handed_over, stats.rx]
    };
    let mut share = 0.0;
    for number in 0..5 {
        let before = counts(&rig);
        for (shard, &connection) in connections.iter().enumerate() {
            rig.endpoints[shard].send(connection, content(number, 400_000)).unwrap();
        }
        let all = |rig: &Rig| (0..shards).map(|shard| rig.delivered(shard)).sum::<usize>() == shards * (number + 1);
        assert!(rig.run(10 * US, 1000 * MS, |rig| all(rig)));
        let after = counts(&rig);
        share = (after[0] - before[0]) as f64 / (after[1] - before[1]) as f64;
    }
    share
}

const SPRAYING: [BalancerKind; 3] = [BalancerKind::Ops, BalancerKind::Reps, BalancerKind::RepsPlus];

//= docs/specs/transport.md#TRN-64 keep to values that
#[test]
fn senders_that_recycle_keep_to_values_of_the_right_queue() {
    // Three queues are no bits of a hash.
    let [ops, reps, plus] = SPRAYING.map(|balancer| misrouted(balancer, 3));
    assert!(ops > 0.6 && reps < 0.3 && plus < 0.2, "two of three queues are wrong: {ops}, {reps}, {plus}");
}

//= docs/specs/transport.md#TRN-65 goes as chosen
#[test]
fn senders_that_spray_learn_which_values_are_of_the_right_queue() {
    // Of 1,024 values 256 and more are of the right one of up to four.
    for shards in [2, 4] {
        let shares = SPRAYING.map(|balancer| misrouted(balancer, shards));
        assert!(shares.iter().all(|share| *share < 0.1), "{shards} queues, one of 16 packets to learn: {shares:?}");
    }
    let ecmp = misrouted(BalancerKind::Ecmp, 2);
    assert!([0.0, 0.5, 1.0].iter().any(|share| (ecmp - share).abs() < 0.1), "each connection has its path: {ecmp}");
}

//= docs/specs/endpoint.md#END-44 Several endpoints of a host
#[test]
fn nothing_is_handed_over_where_the_nic_goes_by_the_port() {
    // 64 ports are no multiple of three, but every port has its queue.
    assert_eq!(exchange(Steering::Rules), (0, vec![CONNECTIONS; SHARDS]));
}

#[test]
fn the_answer_to_a_stranger_comes_to_the_shard_that_asked() {
    let mut rig = rig(Steering::Hash);
    let connections: Vec<_> =
        (0..SHARDS).map(|shard| rig.endpoints[shard].connect(Time::ZERO, peer(1, false), None).unwrap()).collect();
    assert!(rig.run(10 * US, 100 * MS, |rig| (SHARDS..2 * SHARDS).all(|shard| rig.accepted(shard).len() == 1)));
    // The peer starts anew and knows nobody.
    for shard in SHARDS..2 * SHARDS {
        let device = std::mem::replace(&mut rig.endpoints[shard], lonely()).into_device();
        let own = EndpointConfig { shard: Shard::all(SHARDS).nth(shard - SHARDS).unwrap(), ..config(1, false) };
        rig.endpoints[shard] = Endpoint::new(device, own).unwrap();
    }
    for (shard, connection) in connections.into_iter().enumerate() {
        rig.endpoints[shard].send(connection, content(0, 100)).unwrap();
    }
    let is_told = |rig: &Rig| (0..SHARDS).all(|shard| rig.failed(shard) == [ConnectionError::Reset]);
    assert!(rig.run(10 * US, 10 * MS, |rig| is_told(rig)), "before any timeout");
}

fn lonely() -> Endpoint<MemoryDevice> {
    Endpoint::new(MemoryNetwork::default().attach(mac(9)), config(9, false)).unwrap()
}
