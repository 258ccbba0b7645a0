use std::collections::HashSet;

use super::*;

fn collective(operation: Operation, algorithm: Algorithm, bytes: u64) -> Collective {
    Collective { operation, algorithm, bytes, groups: 1, rounds: 1, compute_ps: 0, start_ps: 0, persistent: true }
}

/// What a host has of each piece: the hosts that contributed to its sum.
type Held = Vec<HashSet<usize>>;

/// Plays a ring literally: chunk by chunk, each host adds what it gets to what it has, or replaces it.
//= docs/specs/collectives.md#COL-6 all to all
#[test]
fn all_to_all_begins_with_the_host_after() {
    let (flows, _) = collective(Operation::AllToAll, Algorithm::Ring, 1 << 20).flows(&[5, 6, 7]);
    let pairs: Vec<_> = flows.iter().map(|flow| (flow.src, flow.dst)).collect();
    assert_eq!(pairs, [(5, 6), (6, 7), (7, 5), (5, 7), (6, 5), (7, 6)]);
}

//= docs/specs/collectives.md#COL-3 in step s host i sends
#[test]
fn a_ring_leaves_every_host_with_the_sum_of_all() {
    for hosts in [2, 3, 5, 8] {
        let round = collective(Operation::AllReduce, Algorithm::Ring, 1_000).round(hosts);
        let mut held: Vec<Held> = (0..hosts).map(|host| vec![HashSet::from([host]); hosts]).collect();
        for step in 0..2 * (hosts - 1) {
            let sent: Vec<_> = (0..hosts)
                .map(|host| {
                    let chunk = (host + 2 * hosts - step) % hosts;
                    (host, chunk, held[host][chunk].clone())
                })
                .collect();
            for (host, chunk, sum) in sent {
                let place = step * hosts + host;
                let Move { from, to, bytes, gathers, .. } = round.moves[place];
                assert_eq!((from, to, gathers), (host, (host + 1) % hosts, step >= hosts - 1));
                assert_eq!(bytes, 1_000 * (chunk as u64 + 1) / hosts as u64 - 1_000 * chunk as u64 / hosts as u64);
                held[to][chunk].extend(sum);
            }
            if step + 2 == hosts {
                // After the reduce-scatter each host has the whole sum of one chunk.
                let whole = |held: &Held| held.iter().filter(|sum| sum.len() == hosts).count();
                assert!(held.iter().all(|held| whole(held) == 1), "{hosts}");
            }
        }
        assert!(held.iter().flatten().all(|sum| sum.len() == hosts), "{hosts}");
        // Each host sends all chunks but one, twice.
        let sent = |host: usize| round.moves.iter().filter(|own| own.from == host).map(|own| own.bytes).sum::<u64>();
        assert_eq!((0..hosts).map(sent).sum::<u64>(), 2 * 1_000 * (hosts as u64 - 1));
    }
}

//= docs/specs/collectives.md#COL-4 at half the distance
//= docs/specs/collectives.md#COL-3 rounded down
#[test]
fn halving_and_doubling_leave_every_host_with_the_sum_of_all() {
    // The last does not divide: nothing of it is left out.
    for (hosts, bytes) in [(2usize, 1 << 20), (4, 1 << 20), (16, 1 << 20), (16, 1_000_003)] {
        let round = collective(Operation::AllReduce, Algorithm::HalvingDoubling, bytes).round(hosts);
        let edge = |chunk: usize| bytes * chunk as u64 / hosts as u64;
        let steps = hosts.ilog2() as usize;
        assert_eq!(round.moves.len(), 2 * steps * hosts);
        let mut held: Vec<Held> = (0..hosts).map(|host| vec![HashSet::from([host]); hosts]).collect();
        let mut own: Vec<Vec<usize>> = vec![(0..hosts).collect(); hosts];
        for (step, moves) in round.moves.chunks(hosts).enumerate() {
            let distance = if step < steps { hosts >> (step + 1) } else { 1 << (step - steps) };
            let before = held.clone();
            let had = own.clone();
            for one in moves {
                assert_eq!((one.to, one.gathers), (one.from ^ distance, step >= steps));
                let pieces: Vec<usize> = if step < steps {
                    // The half that the other keeps.
                    had[one.from].iter().copied().filter(|piece| (piece ^ one.from) & distance != 0).collect()
                } else {
                    had[one.from].clone()
                };
                assert_eq!(pieces.len(), distance);
                assert_eq!(one.bytes, pieces.iter().map(|piece| edge(piece + 1) - edge(*piece)).sum::<u64>());
                for piece in &pieces {
                    held[one.to][*piece].extend(before[one.from][*piece].clone());
                }
                if step < steps {
                    own[one.from].retain(|piece| !pieces.contains(piece));
                } else {
                    own[one.to].extend(pieces);
                }
            }
        }
        assert!(held.iter().flatten().all(|sum| sum.len() == hosts), "{hosts}");
    }
}

//= docs/specs/collectives.md#COL-5 up the tree
#[test]
fn a_tree_sums_every_piece_at_its_root_and_tells_all() {
    for (hosts, bytes) in [(2, 1), (7, 3 * PIECE_BYTES), (10, 2 * PIECE_BYTES + 5)] {
        let round = collective(Operation::AllReduce, Algorithm::Tree, bytes).round(hosts);
        let of_piece = 2 * (hosts - 1);
        assert_eq!(round.moves.len() as u64, bytes.div_ceil(PIECE_BYTES) * of_piece as u64);
        for (piece, moves) in round.moves.chunks(of_piece).enumerate() {
            let mut sum: Vec<HashSet<usize>> = (0..hosts).map(|host| HashSet::from([host])).collect();
            for (place, one) in moves.iter().enumerate() {
                // A host sends what it has when all that it waits for has come.
                let came = |need: &usize| round.moves[*need].to == one.from && *need < piece * of_piece + place;
                assert!(one.needs.iter().all(came), "{one:?}");
                let sent = sum[one.from].clone();
                sum[one.to].extend(sent);
            }
            assert!(sum.iter().all(|sum| sum.len() == hosts), "{hosts}");
            assert!(moves.iter().all(|one| one.bytes == (bytes - piece as u64 * PIECE_BYTES).min(PIECE_BYTES)));
        }
    }
}

/// Runs the flows by their triggers, each taking a time of its own. Returns when each started and ended.
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

/// A time for each flow that looks random.
fn uneven(flow: &Flow) -> u64 {
    100 + u64::from(flow.flow).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 900
}

//= docs/specs/collectives.md#COL-1 waits for its inputs
//= docs/specs/collectives.md#COL-2 computes between rounds
#[test]
fn every_message_waits_for_what_it_is_made_from_and_for_nothing_else() {
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
                    let came = own.needs.iter().map(|need| one[*need].2).max().unwrap_or(ready[own.from]);
                    assert!(*start >= came, "{operation:?} {algorithm:?}: {own:?}");
                    // Moves of a host stay in their order, as those of a connection do.
                    let earlier = round.moves.iter().zip(one).take_while(|(other, _)| !std::ptr::eq(*other, own));
                    let behind =
                        |other: &Move| other.from == own.from && (round.in_order || (persistent && other.to == own.to));
                    let held = earlier.filter(|(other, _)| behind(other)).map(|(_, other)| other.1).max().unwrap_or(0);
                    let floor = if round.in_order { ready[own.from] } else { 0 };
                    assert_eq!(*start, came.max(held).max(floor), "{operation:?} {algorithm:?}: {own:?}");
                }
                for (host, ready) in ready.iter_mut().enumerate() {
                    let came = round.moves.iter().zip(one).filter(|(own, _)| own.to == host);
                    *ready = came.map(|(_, (_, _, end))| end + 50).max().unwrap();
                }
            }
        }
    }
}

//= docs/specs/collectives.md#COL-9 connections
#[test]
fn messages_between_two_hosts_share_a_connection_unless_each_is_to_have_a_new_one() {
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
        // What all hosts send in one of them: what benchmarks of collectives take the bus bandwidth from.
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
fn fsdp_has_the_papers_messages_in_rings_of_128() {
    for (model, packets) in [(Model::Llama7B, 104), (Model::Llama70B, 418), (Model::Llama405B, 1_570)] {
        let groups = Model::RINGS as usize;
        let collective = Collective { groups, ..collective(Operation::Layer, Algorithm::Ring, model.bytes()) };
        let (flows, _) = collective.flows(&(0..1_024).collect::<Vec<_>>());
        assert!(flows.iter().all(|flow| flow.dst == (flow.src + 8) % 1_024 && flow.bytes == packets * 4_096));
        assert_eq!(flows.iter().filter_map(|flow| flow.step).max(), Some(1));
        assert_eq!(flows.len() as u64, collective.messages(1_024));
    }
}
