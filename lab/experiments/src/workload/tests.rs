use super::*;
use spray_fabric::LeafSpine;
use spray_fabric::{Trigger, TriggerKind};

fn network(leaves: usize, hosts_per_leaf: usize) -> Network {
    LeafSpine::uniform([leaves, 4, hosts_per_leaf], 1_000_000_000, 0).network()
}

const EACH: FlowTemplate = FlowTemplate { bytes: 1000, start_ps: 7 };

fn flows(pattern: Pattern, network: &Network, seed: u64) -> Vec<(usize, usize)> {
    Plan::new(&[Workload::new(pattern)], network, seed).flows.iter().map(|flow| (flow.src, flow.dst)).collect()
}

#[test]
fn permutations_reach_every_host_once_and_cross_leaves_if_configured() {
    for (leaves, hosts) in [(2, 4), (2, 1), (3, 5), (16, 8)] {
        let network = network(leaves, hosts);
        for seed in 0..20 {
            for (cross, pattern) in [(true, Pattern::CrossLeafPermutation(EACH)), (false, Pattern::Permutation(EACH))] {
                let pairs = flows(pattern, &network, seed);
                let mut to: Vec<_> = pairs.iter().map(|(_, to)| *to).collect();
                to.sort_unstable();
                assert!(to.into_iter().eq(0..leaves * hosts));
                let apart = |(a, b): &(usize, usize)| a != b && (!cross || network.leaf_of(*a) != network.leaf_of(*b));
                assert!(pairs.iter().all(apart), "{pairs:?}");
            }
        }
    }
}

#[test]
fn permutations_depend_on_the_seed() {
    let network = network(4, 8);
    let draw = |seed| flows(Pattern::CrossLeafPermutation(EACH), &network, seed);
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
}

#[test]
fn a_permutation_across_leaves_uses_all_other_leaves() {
    let network = network(4, 8);
    let pairs = flows(Pattern::CrossLeafPermutation(EACH), &network, 3);
    let mut leaves: Vec<_> = pairs.iter().filter(|(src, _)| *src < 8).map(|(_, to)| network.leaf_of(*to)).collect();
    leaves.sort_unstable();
    leaves.dedup();
    assert_eq!(leaves, [1, 2, 3]);
}

#[test]
fn a_permutation_across_pods_leaves_every_pod() {
    let network = spray_fabric::FatTree::uniform([4, 2, 2, 4, 2], 1_000_000_000, 0).network();
    for seed in 0..20 {
        let pairs = flows(Pattern::CrossPodPermutation(EACH), &network, seed);
        assert!(pairs.iter().all(|(from, to)| from / 4 != to / 4), "{pairs:?}");
    }
}

#[test]
fn all_to_all_has_every_pair_once() {
    let pairs = flows(Pattern::AllToAll { each: EACH, open: None }, &network(2, 3), 1);
    assert_eq!(pairs[..7], [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (0, 2)]);
    let mut all = pairs.clone();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 30);
}

#[test]
fn tornado_and_incast_take_the_far_side() {
    let network = network(2, 4);
    let tornado = flows(Pattern::Tornado(EACH), &network, 1);
    assert_eq!(tornado[..5], [(0, 4), (1, 5), (2, 6), (3, 7), (4, 0)]);
    let incast = flows(Pattern::Incast { senders: 5, receiver: Some(1), each: EACH }, &network, 1);
    assert_eq!(incast, [(5, 1), (6, 1), (7, 1), (4, 1), (0, 1)]);
}

#[test]
fn payload_is_generated_by_the_seed_or_read_from_a_file() {
    let workload = |payload| Workload { payload, ..Workload::new(Pattern::Flows(Vec::new())) };
    let flow = |flow, bytes| Flow { flow, src: 0, dst: 1, bytes, start_ps: 0, ..Flow::default() };
    let generated = workload(Payload::Generated);
    assert_eq!(generated.payload(&flow(0, 99), 1), generated.payload(&flow(0, 99), 1));
    assert_ne!(generated.payload(&flow(0, 99), 1), generated.payload(&flow(1, 99), 1));
    assert_ne!(generated.payload(&flow(0, 99), 1), generated.payload(&flow(0, 99), 2));
    let file = workload(Payload::File { path: PathBuf::new(), bytes: Bytes::from_static(b"abc") });
    assert_eq!(file.payload(&flow(0, 2), 1), "ab");
    assert_eq!(file.payload(&flow(3, 7), 1), "abcabca");
}

#[test]
fn a_matrix_is_read_and_its_errors_are_located() {
    let text = "Nodes 4\nConnections 2\n0->3 id 1 start 0 size 4096 # first\n2->1 id 2 start 5000 size 1 prio 3\n";
    let matrix = parse_matrix(text, 4).unwrap();
    assert_eq!(matrix.flows[1], Flow { flow: 1, src: 2, dst: 1, bytes: 1, start_ps: 5000, ..Flow::default() });
    assert_eq!((matrix.triggers, matrix.warnings.len()), (None, 1), "{:?}", matrix.warnings);
    let chain = "0->1 start 0 size 1 send_done_trigger 7\n1->2 trigger 7 size 1\n";
    let cases = [
        ("Nodes 5\n", 1, 1, "at most 4"),
        ("Nodes\n", 1, 1, "needs a value"),
        ("Nodes 4 5\n", 1, 9, "one too many"),
        ("0->4 id 1 start 0 size 1\n", 1, 1, "below 4"),
        ("  1->1 id 1 start 0 size 1\n", 1, 3, "different"),
        ("0->1 id 1 start 0\n", 1, 1, "needs a size"),
        ("0->1 id 1 start 0 size 0\n", 1, 19, "endless"),
        ("0->1 id 1 size 9\n", 1, 1, "one of `start` and `trigger`"),
        ("0->1 start 0 trigger 1 size 9\n", 1, 1, "one of `start` and `trigger`"),
        ("0->1 id 1 start x size 1\n", 1, 17, "whole number"),
        ("0->1 id 1 start 0 size\n", 1, 19, "needs a value"),
        ("0->1 start 0 size 1 size 1\n", 1, 21, "given twice"),
        ("0->1 id 1 start 0 size 1 colour 3\n", 1, 26, "allowed: id"),
        ("0->1 start 0 size 1.5\n", 1, 19, "whole number"),
        ("0->1 start -1 size 1\n", 1, 12, "whole number"),
        ("0->1 msg start 0 size 1\n", 1, 1, "no connection"),
        ("0->1 id 1 msg start 0 size 1\n0->2 id 1 msg start 0 size 1\n", 2, 1, "from 0 to 1"),
        ("0->1 id 1 msg start 9 size 1\n0->1 id 1 msg start 0 size 1\n", 2, 1, "in order of start"),
        ("Failures 1\n0->1 start 0 size 1\n", 1, 1, "[[link_event]]"),
        ("0->1 start 0 size 1\nfailure switch_type TOR switch_id 0 link_id 1\n", 2, 1, "[[link_event]]"),
        ("hello\n", 1, 1, "is no flow"),
        ("", 1, 1, "no flows"),
        (chain, 1, 21, "trigger 7 is not described"),
        (&format!("{chain}trigger id 7 twoshot\n"), 3, 14, "`multishot` or `barrier"),
        (&format!("{chain}trigger 7 oneshot\n"), 3, 9, "no word of a trigger"),
        (&format!("{chain}trigger oneshot\n"), 3, 1, "no id or no kind"),
        (&format!("{chain}trigger id 7 oneshot multishot\n"), 3, 22, "one too many"),
        (&format!("{chain}trigger id 7 oneshot count 2\n"), 3, 28, "only barriers"),
        (&format!("{chain}trigger id 7 barrier\n"), 3, 14, "no `count`"),
        (&format!("{chain}trigger id 7 barrier count 0\n"), 3, 28, "1 to"),
        (&format!("{chain}trigger id 7 oneshot\ntrigger id 7 oneshot\n"), 4, 12, "twice"),
        (&format!("{chain}trigger id 7 barrier count 2\n"), 2, 1, "never starts"),
    ];
    for (text, line, column, message) in cases {
        let error = parse_matrix(text, 4).unwrap_err();
        let found = (error.line, error.column) == (line, column) && error.message.contains(message);
        assert!(found, "{text:?}: {error:?}");
    }
}

#[test]
fn matrices_of_other_projects_are_read() {
    let read = |text: &str| parse_matrix(text, 4).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    // Decimals, a wrong count, failures that are none, CRLF, repeated ids, ids of their own.
    let matrix = read(
        "Nodes 2\r\nConnections 64\r\nFailures 0\r\n0->1 id 1 start 1.5e6 size 2e3\r\n1->2 id 1 start 7.5 size 9.0\r\n",
    );
    let found: Vec<_> = matrix.flows.iter().map(|flow| (flow.start_ps, flow.bytes, flow.connection)).collect();
    assert_eq!(found, [(1_500_000, 2_000, None), (7, 9, None)]);
    let expected = [
        "line 1: `Nodes` is 2, but flows name host 2",
        "line 2: `Connections` is 64, but the file has 2, which are used",
        "line 5: `start` has a fraction of a picosecond, ignored in 1 flows",
    ];
    assert_eq!(matrix.warnings, expected);
    // Messages of two connections, one with numbers.
    let messages = "0->1 id 5 msg start 0 size 1\n2->3 id 6 start 3 msg 1 size 1\n0->1 id 5 msg start 4 size 1\n\
                    2->3 id 6 msg 2 trigger 1 size 1\n0->1 size 1 start 9 msg id 5 send_done_trigger 1\n\
                    trigger oneshot id 1\n";
    let connections: Vec<_> = read(messages).flows.iter().map(|flow| flow.connection).collect();
    assert_eq!(connections, [None, None, Some(0), Some(1), Some(0)]);
    let barrier = "0->1 start 0 size 1 send_done_trigger 1\n2->3 trigger 1 size 1\ntrigger count 1 barrier id 1\n";
    assert_eq!(read(barrier).triggers.unwrap().list, [Trigger::new(TriggerKind::Barrier(1))]);
}

#[test]
fn triggers_of_all_kinds_are_read() {
    let text = "Nodes 4\nConnections 6\nTriggers 3\n\
                0->1 id 1 start 0 size 9 send_done_trigger 10 recv_done_trigger 30\n\
                1->2 id 2 trigger 10 size 9 send_done_trigger 20\n\
                2->3 id 3 TRIGGER 10 size 9 send_done_trigger 20\n\
                3->0 id 4 trigger 20 size 9 recv_done_trigger 30\n\
                0->2 id 5 trigger 30 size 9\n\
                0->3 id 6 trigger 30 size 9\n\
                trigger id 30 multishot\ntrigger id 10 oneshot\ntrigger id 20 Barrier count 2\n";
    let triggers = parse_matrix(text, 4).unwrap().triggers.unwrap();
    let kinds = [TriggerKind::Multishot, TriggerKind::Oneshot, TriggerKind::Barrier(2)];
    assert_eq!(triggers.list, kinds.map(Trigger::new));
    let starts: Vec<_> = triggers.of_flow.iter().map(|flow| flow.start).collect();
    assert_eq!(starts, [None, Some(1), Some(1), Some(2), Some(0), Some(0)]);
    assert_eq!(triggers.of_flow[0], FlowTriggers { start: None, on_sent: Some(1), on_received: Some(0) });
    // Without a second signal to the multishot trigger, its second flow never starts.
    let error = parse_matrix(&text.replace("size 9 recv_done_trigger 30\n0", "size 9\n0"), 4).unwrap_err();
    assert_eq!((error.line, error.message.contains("never starts")), (9, true), "{error:?}");
}

//= docs/specs/closed-loop.md#CL-1 at most one open message
#[test]
fn messages_beyond_the_open_ones_wait_for_others_of_their_host() {
    for open in [1, 3, 50] {
        let triggers = ClosedLoop { open, until_ps: None }.triggers(600, 12);
        assert_eq!((triggers.never_started(), triggers.list.len(), triggers.of_flow.len()), (None, 12, 600));
        for (flow, own) in triggers.of_flow.iter().enumerate() {
            let waits = flow >= open as usize * 12;
            assert_eq!((own.start, own.on_sent), (waits.then_some(flow % 12), Some(flow % 12)));
        }
    }
}
