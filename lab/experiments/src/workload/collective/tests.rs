use std::collections::HashSet;

use super::*;

fn collective(operation: Operation, algorithm: Algorithm, bytes: u64) -> Collective {
    Collective { operation, algorithm, bytes, groups: 1, rounds: 1, compute_ps: 0, start_ps: 0, persistent: true }
}

/// The hosts that contributed to the sum of each piece at a host.
type HostSums = Vec<HashSet<usize>>;

/// Simulates a ring literally: chunk by chunk, each host adds the received data to its own, or
/// replaces it.
//= docs/specs/collectives.md#COL-6 all to all
#[test]
fn all_to_all_starts_with_the_next_host() {
    let (flows, _) = collective(Operation::AllToAll, Algorithm::Ring, 1 << 20).flows(&[5, 6, 7]);
    let pairs: Vec<_> = flows.iter().map(|flow| (flow.src, flow.dst)).collect();
    assert_eq!(pairs, [(5, 6), (6, 7), (7, 5), (5, 7), (6, 5), (7, 6)]);
}

//= docs/specs/collectives.md#COL-3 in step s host i sends
#[test]
fn a_ring_leaves_every_host_with_the_sum_of_all() {
    for hosts in [2, 3, 5, 8] {
        let round = collective(Operation::AllReduce, Algorithm::Ring, 1_000).round(hosts);
        let mut sums: Vec<HostSums> = (0..hosts).map(|host| vec![HashSet::from([host]); hosts]).collect();
        for step in 0..2 * (hosts - 1) {
            let sent: Vec<_> = (0..hosts)
                .map(|host| {
                    let chunk = (host + 2 * hosts - step) % hosts;
                    (host, chunk, sums[host][chunk].clone())
                })
                .collect();
            for (host, chunk, sum) in sent {
                let place = step * hosts + host;
                let Move { from, to, bytes, gathers, .. } = round.moves[place];
                assert_eq!((from, to, gathers), (host, (host + 1) % hosts, step >= hosts - 1));
                assert_eq!(bytes, 1_000 * (chunk as u64 + 1) / hosts as u64 - 1_000 * chunk as u64 / hosts as u64);
                sums[to][chunk].extend(sum);
            }
            if step + 2 == hosts {
                // After the reduce-scatter each host has the complete sum of one chunk.
                let whole = |sums: &HostSums| sums.iter().filter(|sum| sum.len() == hosts).count();
                assert!(sums.iter().all(|sums| whole(sums) == 1), "{hosts}");
            }
        }
        assert!(sums.iter().flatten().all(|sum| sum.len() == hosts), "{hosts}");
        // Each host sends all chunks but one, twice.
        let sent = |host: usize| round.moves.iter().filter(|own| own.from == host).map(|own| own.bytes).sum::<u64>();
        assert_eq!((0..hosts).map(sent).sum::<u64>(), 2 * 1_000 * (hosts as u64 - 1));
    }
}

//= docs/specs/collectives.md#COL-4 at half the distance
//= docs/specs/collectives.md#COL-3 rounded down
#[test]
fn halving_and_doubling_leave_every_host_with_the_sum_of_all() {
    // The last size is not divisible: no byte of it is omitted.
    for (hosts, bytes) in [(2usize, 1 << 20), (4, 1 << 20), (16, 1 << 20), (16, 1_000_003)] {
        let round = collective(Operation::AllReduce, Algorithm::HalvingDoubling, bytes).round(hosts);
        let edge = |chunk: usize| bytes * chunk as u64 / hosts as u64;
        let steps = hosts.ilog2() as usize;
        assert_eq!(round.moves.len(), 2 * steps * hosts);
        let mut sums: Vec<HostSums> = (0..hosts).map(|host| vec![HashSet::from([host]); hosts]).collect();
        let mut own: Vec<Vec<usize>> = vec![(0..hosts).collect(); hosts];
        for (step, moves) in round.moves.chunks(hosts).enumerate() {
            let distance = if step < steps { hosts >> (step + 1) } else { 1 << (step - steps) };
            let before = sums.clone();
            let had = own.clone();
            for one in moves {
                assert_eq!((one.to, one.gathers), (one.from ^ distance, step >= steps));
                let pieces: Vec<usize> = if step < steps {
                    // The half of the data that the other host keeps.
                    had[one.from].iter().copied().filter(|piece| (piece ^ one.from) & distance != 0).collect()
                } else {
                    had[one.from].clone()
                };
                assert_eq!(pieces.len(), distance);
                assert_eq!(one.bytes, pieces.iter().map(|piece| edge(piece + 1) - edge(*piece)).sum::<u64>());
                for piece in &pieces {
                    sums[one.to][*piece].extend(before[one.from][*piece].clone());
                }
                if step < steps {
                    own[one.from].retain(|piece| !pieces.contains(piece));
                } else {
                    own[one.to].extend(pieces);
                }
            }
        }
        assert!(sums.iter().flatten().all(|sum| sum.len() == hosts), "{hosts}");
    }
}

//= docs/specs/collectives.md#COL-5 up the tree
#[test]
fn a_tree_sums_every_piece_at_its_root_and_broadcasts_it() {
    for (hosts, bytes) in [(2, 1), (7, 3 * PIECE_BYTES), (10, 2 * PIECE_BYTES + 5)] {
        let round = collective(Operation::AllReduce, Algorithm::Tree, bytes).round(hosts);
        let of_piece = 2 * (hosts - 1);
        assert_eq!(round.moves.len() as u64, bytes.div_ceil(PIECE_BYTES) * of_piece as u64);
        for (piece, moves) in round.moves.chunks(of_piece).enumerate() {
            let mut sum: Vec<HashSet<usize>> = (0..hosts).map(|host| HashSet::from([host])).collect();
            for (place, one) in moves.iter().enumerate() {
                // A host sends once all messages that it depends on have arrived.
                let arrived = |need: &usize| round.moves[*need].to == one.from && *need < piece * of_piece + place;
                assert!(one.needs.iter().all(arrived), "{one:?}");
                let sent = sum[one.from].clone();
                sum[one.to].extend(sent);
            }
            assert!(sum.iter().all(|sum| sum.len() == hosts), "{hosts}");
            assert!(moves.iter().all(|one| one.bytes == (bytes - piece as u64 * PIECE_BYTES).min(PIECE_BYTES)));
        }
    }
}

/// Runs the flows by their triggers with individual durations. Returns the start and end of each.
fn play(collective: Collective, hosts: usize, time: impl Fn(&Flow) -> u64) -> Vec<(Flow, u64, u64)> {
    use std::collections::BTreeSet;

    use spray_fabric::{Action, FlowScheduler, Start};

    let (flows, triggers) = collective.flows(&(0..hosts).collect::<Vec<_>>());
    let triggers = triggers.unwrap_or_default();
    let own = |flow: &Flow| triggers.of_flow.get(flow.flow as usize).copied().unwrap_or_default();
    let start = |flow: &Flow| {
        let connection = flow.connection.map(|flow| flow as usize);
        (own(flow).start.map_or(Start::At(flow.start_ps), Start::OnTrigger), connection)
    };
    let mut starts = FlowScheduler::new(flows.iter().map(start), &triggers.list);
    let mut events: BTreeSet<(u64, u8, usize)> = BTreeSet::new();
    let mut times: Vec<Option<(u64, u64)>> = vec![None; flows.len()];
    let mut due = Vec::new();
    starts.begin(&mut |at_ps, what| due.push((at_ps, what)));
    loop {
        for (at_ps, what) in due.drain(..) {
            match what {
                Action::StartFlow(flow) => {
                    assert_eq!(times[flow].replace((at_ps, at_ps + time(&flows[flow]))), None, "started twice");
                    events.insert((at_ps + time(&flows[flow]), 0, flow));
                }
                Action::SignalTrigger(trigger) => drop(events.insert((at_ps, 1, trigger))),
            }
        }
        let Some((at_ps, kind, number)) = events.pop_first() else { break };
        let trigger = if kind == 1 { Some(number) } else { own(&flows[number]).on_received };
        trigger.into_iter().for_each(|trigger| starts.signal(at_ps, trigger, &mut |at, what| due.push((at, what))));
    }
    flows.iter().zip(times).map(|(flow, times)| (*flow, times.unwrap().0, times.unwrap().1)).collect()
}

const ALL: [(Operation, Algorithm); 9] = [
    (Operation::Layer, Algorithm::Ring),
    (Operation::AllReduce, Algorithm::Ring),
    (Operation::AllReduce, Algorithm::HalvingDoubling),
    (Operation::AllReduce, Algorithm::Tree),
    (Operation::AllGather, Algorithm::Ring),
    (Operation::AllGather, Algorithm::HalvingDoubling),
    (Operation::ReduceScatter, Algorithm::Ring),
    (Operation::ReduceScatter, Algorithm::HalvingDoubling),
    (Operation::AllToAll, Algorithm::Ring),
];

/// Returns a pseudo-random duration for each flow.
fn uneven(flow: &Flow) -> u64 {
    100 + u64::from(flow.flow).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 900
}

//= docs/specs/collectives.md#COL-1 waits for its inputs
//= docs/specs/collectives.md#COL-2 computes between rounds
#[test]
fn every_message_waits_for_its_inputs_only() {
    for (operation, algorithm) in ALL {
        for persistent in [true, false] {
            let rounds = 3;
            let collective =
                Collective { rounds, compute_ps: 50, persistent, ..collective(operation, algorithm, 2 * PIECE_BYTES) };
            let played = play(collective, 8, uneven);
            let round = collective.round(8);
            assert_eq!(played.len() as u64, collective.messages(8), "{operation:?} {algorithm:?}");
            let mut ready = [0; 8];
            for one in played.chunks(round.moves.len()) {
                for (own, (flow, start, _)) in round.moves.iter().zip(one) {
                    assert_eq!((flow.src, flow.dst, flow.bytes), (own.from, own.to, own.bytes));
                    let arrived = own.needs.iter().map(|need| one[*need].2).max().unwrap_or(ready[own.from]);
                    assert!(*start >= arrived, "{operation:?} {algorithm:?}: {own:?}");
                    // Moves of a host stay in order, as on a connection.
                    let earlier = round.moves.iter().zip(one).take_while(|(other, _)| !std::ptr::eq(*other, own));
                    let behind =
                        |other: &Move| other.from == own.from && (round.in_order || (persistent && other.to == own.to));
                    let previous =
                        earlier.filter(|(other, _)| behind(other)).map(|(_, other)| other.1).max().unwrap_or(0);
                    let floor = if round.in_order { ready[own.from] } else { 0 };
                    assert_eq!(*start, arrived.max(previous).max(floor), "{operation:?} {algorithm:?}: {own:?}");
                }
                for (host, ready) in ready.iter_mut().enumerate() {
                    let arrived = round.moves.iter().zip(one).filter(|(own, _)| own.to == host);
                    *ready = arrived.map(|(_, (_, _, end))| end + 50).max().unwrap();
                }
            }
        }
    }
}

//= docs/specs/collectives.md#COL-9 connections
#[test]
fn messages_between_two_hosts_share_a_connection_if_persistent() {
    let rounds = Collective { rounds: 4, ..collective(Operation::AllReduce, Algorithm::Ring, 1 << 20) };
    let (flows, _) = rounds.flows(&[5, 6, 7]);
    let own = |flow: &&Flow| flow.connection.is_none();
    assert_eq!(flows.iter().filter(own).map(|flow| (flow.src, flow.dst)).collect::<Vec<_>>(), [(5, 6), (6, 7), (7, 5)]);
    assert!(flows.iter().all(|flow| flow.connection.is_none_or(|of| flows[of as usize].src == flow.src)));
    let (flows, _) = Collective { persistent: false, ..rounds }.flows(&[5, 6, 7]);
    assert!(flows.iter().all(|flow| flow.connection.is_none()));
}

//= docs/specs/collectives.md#COL-7 completion time of a collective
#[test]
fn a_round_is_one_collective_by_every_algorithm_and_a_layer_of_fsdp_is_two() {
    for (operation, algorithm) in ALL {
        let rounds = Collective { rounds: 3, groups: 2, ..collective(operation, algorithm, 2 * PIECE_BYTES) };
        let (flows, _) = rounds.flows(&(0..16).collect::<Vec<_>>());
        let all: HashSet<u32> = flows.iter().filter_map(|flow| flow.step).collect();
        let parts = if operation == Operation::Layer { 2 } else { 1 };
        assert_eq!(all, (0..3 * parts).collect(), "{operation:?} {algorithm:?}");
        // The bytes that each host sends, from which benchmarks of collectives derive the bus
        // bandwidth.
        let sent =
            |number: u32| flows.iter().filter(|flow| flow.step == Some(number)).map(|flow| flow.bytes).sum::<u64>();
        let bytes = 2 * PIECE_BYTES;
        let of_a_group = match operation {
            Operation::AllReduce => 2 * 7 * bytes,
            Operation::AllToAll => 8 * 7 * bytes,
            Operation::Layer | Operation::AllGather | Operation::ReduceScatter => 7 * bytes,
        };
        assert!((0..3 * parts).all(|number| sent(number) == 2 * of_a_group), "{operation:?} {algorithm:?}");
    }
}

//= docs/specs/collectives.md#COL-8 a layer of a ring
//= docs/specs/collectives.md#COL-8 two collectives
#[test]
fn fsdp_has_the_messages_of_the_paper_in_rings_of_128() {
    for (model, packets) in [(Model::Llama7B, 104), (Model::Llama70B, 418), (Model::Llama405B, 1_570)] {
        let groups = Model::RINGS as usize;
        let collective = Collective { groups, ..collective(Operation::Layer, Algorithm::Ring, model.bytes()) };
        let (flows, _) = collective.flows(&(0..1_024).collect::<Vec<_>>());
        assert!(flows.iter().all(|flow| flow.dst == (flow.src + 8) % 1_024 && flow.bytes == packets * 4_096));
        assert_eq!(flows.iter().filter_map(|flow| flow.step).max(), Some(1));
        assert_eq!(flows.len() as u64, collective.messages(1_024));
    }
}
