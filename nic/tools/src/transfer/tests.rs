//! Both ends over an in-memory network with reordering, loss and outages. Only the file threads run
//! in real time.

use std::cell::Cell;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use spray_core::flow::FlowConfig;
use spray_core::loss::RtoConfig;
use spray_core::path::{self, BalancerKind};
use spray_nic::device::{Impairments, LinkState, MemoryConfig, MemoryDevice, MemoryNetwork};
use spray_nic::{ConnectionId, Endpoint, EndpointConfig, EndpointEvent, Peer, Time};
use spray_test_support::Folder;

use super::format::{Answer, Description, EntryKind, Message, PIECE_BYTES};
use super::out::Out;
use super::outgoing::{Outgoing, Source};
use super::recv::Receiving;
use super::send::Sending;
use super::timeouts::Limits;
use super::tree::{Entry, Tree};
use crate::failure::{Failure, Outcome};
use crate::progress::{Progress, now};
use crate::session::{End, Outage, Step, Wake};

mod bounds;
mod folders;

const US: u64 = 1_000_000;
const MS: u64 = 1000 * US;
/// The index of the receiver; the senders follow.
const RECEIVER: usize = 0;

type Memory = Endpoint<MemoryDevice>;

/// The work of a host after each poll.
type Role<'a> = Box<dyn FnMut(&mut Memory, Time) -> Step + 'a>;

fn address(host: usize) -> (IpAddr, [u8; 6]) {
    (Ipv4Addr::new(10, 0, 0, host as u8 + 1).into(), [2, 0, 0, 0, 0, host as u8])
}

fn receiver() -> Peer {
    let (address, mac) = address(RECEIVER);
    Peer { address, mac }
}

fn config(host: usize) -> EndpointConfig {
    const RTT_PS: u64 = 4 * MS;
    const LINK_BPS: u64 = 1_000_000_000;
    let (address, mac) = address(host);
    let path = path::Path { bdp_packets: 250, ..path::Path::new(RTT_PS, LINK_BPS, 3090) };
    let flow = FlowConfig::new(BalancerKind::Reps, path, 90);
    let rto = RtoConfig { initial_ps: 20 * MS, min_ps: 10 * MS, max_ps: 100 * MS };
    let flow = FlowConfig { rto, give_up_ps: 500 * MS, ..flow };
    EndpointConfig { idle_timeout_ps: 500 * MS, ..EndpointConfig::new(address, mac, flow) }
}

fn content(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect()
}

fn file(path: &str, bytes: u64) -> Description {
    Description { path: path.into(), kind: EntryKind::File { bytes }, mode: 0o644 }
}

/// Returns a sender of one file in memory.
fn sending(description: Description, content: &[u8]) -> Sending {
    let Description { path, kind, mode } = description.clone();
    let entry = Entry { path, kind, mode, source: "".into(), named: true };
    let source: Source = Box::new(std::io::Cursor::new(content.to_vec()));
    let outgoing = Outgoing::start_with(std::iter::once(Ok((description, source))), Wake::default()).unwrap();
    let tree = Tree { entries: vec![entry], ..Tree::default() };
    Sending::new(tree, outgoing, receiver(), Duration::from_secs(60))
}

fn role<'a>(sending: Sending) -> Role<'a> {
    counting(sending).0
}

/// Payload bytes delivered by a sender.
type Delivered = Rc<Cell<u64>>;

/// Returns a sender that closes its connection after success, as the command does.
fn counting<'a>(mut sending: Sending) -> (Role<'a>, Delivered) {
    let delivered = Delivered::default();
    let (count, mut is_closing) = (Rc::clone(&delivered), false);
    let role: Role<'a> = Box::new(move |endpoint, now| {
        if !is_closing {
            let step = sending.step(endpoint, now);
            count.set(sending.delivered_bytes);
            is_closing = matches!(step, Err(End(Ok(()))));
            if !is_closing {
                return step;
            }
            endpoint.close_all();
        }
        match endpoint.connections() {
            0 => Err(End(sending.outcome())),
            _ => Ok(()),
        }
    });
    (role, delivered)
}

fn sender<'a>(content: &[u8]) -> Role<'a> {
    sender_of("x.bin", content)
}

fn sender_of<'a>(name: &str, content: &[u8]) -> Role<'a> {
    role(sending(file(name, content.len() as u64), content))
}

fn send(endpoint: &mut Memory, connection: ConnectionId, message: Bytes) {
    endpoint.send(connection, message).unwrap();
}

/// Returns a sender of these messages that then closes; it ends with its connection.
fn script<'a>(messages: Vec<Vec<u8>>) -> Role<'a> {
    let mut begun = false;
    Box::new(move |endpoint, now| {
        if !std::mem::replace(&mut begun, true) {
            let connection = endpoint.connect(now, receiver(), None).unwrap();
            messages.iter().for_each(|message| send(endpoint, connection, Bytes::copy_from_slice(message)));
            endpoint.close(connection);
        }
        while let Some(event) = endpoint.poll_event() {
            match event {
                EndpointEvent::Closed { .. } | EndpointEvent::Failed { .. } => return Err(End(Ok(()))),
                _ => {}
            }
        }
        Ok(())
    })
}

/// Runs a receiver into `out` and these senders until all have ended, and returns their outcomes.
/// Hosts that have ended are not polled any more.
fn run(out: &Path, keep: bool, senders: Vec<Role<'_>>, impairments: Impairments, seed: u64) -> Vec<Outcome> {
    // Simulated time is faster than the file threads.
    const PATIENT: Limits = Limits { first_ps: u64::MAX, bytes_ps: u64::MAX };
    run_within(PATIENT, out, keep, senders, impairments, seed)
}

/// Runs them with these timeouts of the receiver.
fn run_within(
    limits: Limits,
    out: &Path,
    keep: bool,
    senders: Vec<Role<'_>>,
    impairments: Impairments,
    seed: u64,
) -> Vec<Outcome> {
    let network = MemoryNetwork::new(MemoryConfig { seed, impairments, ..MemoryConfig::default() });
    let mut receiving = Receiving::new(Out::new(out).unwrap(), keep, limits, Progress::on_stderr()).unwrap();
    let all = senders.len();
    let receiver: Role<'_> = Box::new(move |endpoint, now| receiving.step(endpoint, now));
    let mut roles: Vec<Role<'_>> = std::iter::once(receiver).chain(senders).collect();
    let attach = |host: usize| Endpoint::new(network.attach(address(host).1), config(host)).unwrap();
    let mut endpoints: Vec<Memory> = (0..roles.len()).map(attach).collect();
    let mut outcomes: Vec<Option<Outcome>> = roles.iter().map(|_| None).collect();
    for step in 0..100_000_000_u64 {
        let now = Time::from_ps(step * 100 * US);
        network.advance(now);
        for ((endpoint, role), outcome) in endpoints.iter_mut().zip(&mut roles).zip(&mut outcomes) {
            if outcome.is_none() {
                endpoint.poll(now);
                *outcome = role(endpoint, now).err().map(|End(outcome)| outcome);
            }
        }
        if outcomes[1..].iter().flatten().count() == all && (keep || outcomes[RECEIVER].is_some()) {
            return outcomes.into_iter().map(|outcome| outcome.unwrap_or(Ok(()))).collect();
        }
        // Lets the file threads run.
        std::thread::yield_now();
    }
    panic!("a transfer has not ended");
}

fn error(outcome: &Outcome) -> String {
    outcome.as_ref().map_or_else(Failure::to_string, |()| "no error".into())
}

fn files(folder: &Folder) -> usize {
    fs::read_dir(folder.path()).unwrap().count()
}

#[test]
fn a_file_arrives_over_paths_that_reorder_and_lose() {
    let impairments = Impairments { delay_ps: 100 * US, jitter_ps: 2 * MS, loss_ppm: 1000, ..Impairments::default() };
    // The single packet of a short file may arrive before its description.
    for (seed, bytes) in (0..20).map(|seed| (seed, 100)).chain((0..8).map(|seed| (seed, 2 * PIECE_BYTES + 1234))) {
        let (folder, content) = (Folder::new(), content(bytes));
        let outcomes = run(folder.path(), false, vec![sender(&content)], impairments, seed);
        assert!(outcomes.iter().all(Result::is_ok), "seed {seed}, {bytes} bytes: {outcomes:?}");
        assert!(fs::read(folder.path().join("x.bin")).unwrap() == content);
        assert_eq!(files(&folder), 1);
    }
}

#[test]
fn an_empty_file_arrives() {
    let folder = Folder::new();
    let outcomes = run(folder.path(), false, vec![sender(&[])], Impairments::delay(100 * US), 1);
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(fs::read(folder.path().join("x.bin")).unwrap(), b"");
}

#[test]
fn of_two_senders_of_one_name_one_is_confirmed() {
    let folder = Folder::new();
    let contents = [content(PIECE_BYTES), content(PIECE_BYTES + 1)];
    let senders = contents.iter().map(|content| sender(content)).collect();
    let outcomes = run(folder.path(), true, senders, Impairments::delay(100 * US), 1);
    let won = outcomes[1..].iter().position(Result::is_ok).expect("one of them");
    assert!(error(&outcomes[2 - won]).contains("refused it: x.bin exists already"), "{outcomes:?}");
    assert!(fs::read(folder.path().join("x.bin")).unwrap() == contents[won]);
    assert_eq!(files(&folder), 1);
}

/// Both are complete at the same time.
#[test]
fn of_two_senders_to_one_that_takes_one_transfer_one_is_confirmed() {
    for seed in 0..10 {
        let folder = Folder::new();
        let contents = [content(PIECE_BYTES), content(PIECE_BYTES + 1)];
        let senders = contents.iter().zip(["a", "b"]).map(|(content, name)| sender_of(name, content)).collect();
        let outcomes = run(folder.path(), false, senders, Impairments::delay(100 * US), seed);
        let won: Vec<usize> = (0..2).filter(|&place| outcomes[1 + place].is_ok()).collect();
        assert_eq!(won.len(), 1, "{outcomes:?}");
        assert!(error(&outcomes[2 - won[0]]).contains("takes only one"), "{outcomes:?}");
        assert!(fs::read(folder.path().join(["a", "b"][won[0]])).unwrap() == contents[won[0]]);
        assert_eq!(files(&folder), 1);
    }
}

#[test]
fn several_senders_at_once_are_all_served() {
    let folder = Folder::new();
    let contents: Vec<Vec<u8>> = (0..4).map(|n| content(PIECE_BYTES + n)).collect();
    let named = contents.iter().enumerate().map(|(n, content)| sender_of(&format!("{n}.bin"), content));
    let outcomes = run(folder.path(), true, named.collect(), Impairments::delay(100 * US), 1);
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    for (n, content) in contents.iter().enumerate() {
        assert!(fs::read(folder.path().join(format!("{n}.bin"))).unwrap() == *content, "{n}");
    }
    assert_eq!(files(&folder), 4);
}

#[test]
fn without_keep_a_second_sender_is_refused() {
    let folder = Folder::new();
    let idle: Role<'_> = {
        let mut connection = None;
        let mut answer = None;
        Box::new(move |endpoint, now| {
            connection.get_or_insert_with(|| endpoint.connect(now, receiver(), None).unwrap());
            while let Some(event) = endpoint.poll_event() {
                match event {
                    EndpointEvent::Received { data, .. } => answer = Answer::decode(&data),
                    EndpointEvent::Closed { .. } => {
                        assert!(
                            matches!(&answer, Some(Answer::Ended { reason }) if reason.contains("--keep")),
                            "{answer:?}"
                        );
                        return Err(End(Ok(())));
                    }
                    _ => {}
                }
            }
            Ok(())
        })
    };
    let senders = vec![sender(&content(2 * PIECE_BYTES)), idle];
    let outcomes = run(folder.path(), false, senders, Impairments::delay(100 * US), 1);
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}

/// Returns the messages of a file: description, pieces and sum.
fn messages(description: &Description, content: &[u8]) -> Vec<Vec<u8>> {
    let pieces = content.chunks(PIECE_BYTES as usize).enumerate();
    let pieces = pieces.map(|(index, data)| Message::Piece { number: 0, index: index as u64, data }.encode());
    let sum = Message::Sum { number: 0, sum: Sha256::digest(content).into() };
    let begin = Message::Entry(0, description.clone()).encode();
    std::iter::once(begin).chain(pieces).chain([sum.encode(), Message::End(1).encode()]).collect()
}

/// A sender that disappears after the verdict: its last acknowledgement and Close are lost.
#[test]
fn a_complete_file_counts_though_the_close_is_lost() {
    for polls_after_the_verdict in [0, 1] {
        let (folder, content) = (Folder::new(), content(PIECE_BYTES + 7));
        let mut begun = None;
        let mut left = polls_after_the_verdict;
        let mut rest = messages(&file("x.bin", content.len() as u64), &content);
        let first = rest.remove(0);
        let mut verdict_received = false;
        let disappearing: Role<'_> = Box::new(move |endpoint, now| {
            let connection = *begun.get_or_insert_with(|| {
                let connection = endpoint.connect(now, receiver(), None).unwrap();
                endpoint.send(connection, first.clone().into()).unwrap();
                connection
            });
            while let Some(event) = endpoint.poll_event() {
                let EndpointEvent::Received { data, .. } = event else { continue };
                match Answer::decode(&data) {
                    Some(Answer::Ready { .. }) => {
                        rest.drain(..).for_each(|message| send(endpoint, connection, message.into()));
                    }
                    answer => verdict_received = matches!(answer, Some(Answer::Verified { .. })),
                }
            }
            if verdict_received && left == 0 {
                return Err(End(Ok(())));
            }
            left -= u32::from(verdict_received);
            Ok(())
        });
        // Everything that it sends afterwards is lost.
        let outcomes = run(folder.path(), false, vec![disappearing], Impairments::delay(100 * US), 1);
        assert!(outcomes[RECEIVER].is_ok(), "{outcomes:?}");
        assert_eq!(fs::read(folder.path().join("x.bin")).unwrap(), content);
    }
}

#[test]
fn incomplete_files_are_failures_and_are_removed() {
    let content = content(2 * PIECE_BYTES);
    let all = messages(&file("x.bin", content.len() as u64), &content);
    let wrong = Message::Sum { number: 0, sum: [7; 32] }.encode();
    let short = Message::Piece { number: 0, index: 0, data: &content[1..PIECE_BYTES as usize] }.encode();
    let scripts = [
        vec![],
        all[..1].to_vec(),
        all[..2].to_vec(),
        vec![all[0].clone(), all[2].clone()],
        all[..3].to_vec(),
        // Complete, with a wrong sum.
        vec![all[0].clone(), all[1].clone(), all[2].clone(), wrong],
        vec![all[0].clone(), all[1].clone(), short],
        // Without a description.
        vec![all[1].clone(), all[0].clone()],
        vec![content[..100].to_vec()],
    ];
    for messages in scripts {
        let (folder, lengths) = (Folder::new(), messages.iter().map(Vec::len).collect::<Vec<_>>());
        let outcomes = run(folder.path(), false, vec![script(messages)], Impairments::delay(100 * US), 1);
        assert!(error(&outcomes[RECEIVER]).contains("nothing was received"), "{lengths:?}: {outcomes:?}");
        assert_eq!(files(&folder), 0, "{lengths:?}");
    }
}

/// The sender does not wait for the verdict.
#[test]
fn a_complete_file_is_kept_when_its_sender_leaves_first() {
    let (folder, content) = (Folder::new(), content(100));
    let messages = messages(&file("x.bin", 100), &content);
    let outcomes = run(folder.path(), false, vec![script(messages)], Impairments::delay(100 * US), 1);
    assert!(outcomes[RECEIVER].is_ok(), "{outcomes:?}");
    assert_eq!(fs::read(folder.path().join("x.bin")).unwrap(), content);
}

#[test]
fn a_refused_sender_gets_the_reason() {
    let folder = Folder::new();
    fs::write(folder.path().join("x.bin"), "mine").unwrap();
    let outcomes = run(folder.path(), false, vec![sender(&content(PIECE_BYTES))], Impairments::delay(100 * US), 1);
    assert!(error(&outcomes[1]).contains("refused it: x.bin exists already"), "{outcomes:?}");
    assert!(error(&outcomes[RECEIVER]).contains("nothing was received"), "{outcomes:?}");
    assert_eq!(fs::read(folder.path().join("x.bin")).unwrap(), b"mine");
}

#[test]
fn long_outages_and_removed_interfaces_end_the_command() {
    let network = MemoryNetwork::new(MemoryConfig::default());
    let mut endpoint = Endpoint::new(network.attach(address(0).1), config(0)).unwrap();
    let (begun, limit) = (now(), Duration::from_secs(5));
    let mut outage = Outage::new("eth7", limit);
    let mut at = Time::ZERO;
    // Returns the result of the check after `seconds`, while a Connect is pending.
    let mut check = |seconds: f32, state: LinkState| {
        network.set_link(0, state);
        at = at.after(MS);
        endpoint.connect(at, receiver(), None).unwrap();
        for _ in 0..20 {
            endpoint.poll(at);
        }
        outage.check(&endpoint, begun + Duration::from_secs_f32(seconds)).err().map(|failure| error(&Err(failure)))
    };
    for cycle in 0..3 {
        let start = cycle as f32 * 10.0;
        assert_eq!(check(start + 1.0, LinkState::Down), None);
        assert_eq!(check(start + 5.9, LinkState::Down), None, "short outages do not add up");
        assert_eq!(check(start + 6.1, LinkState::Up), None);
    }
    assert_eq!(check(41.0, LinkState::Down), None);
    assert!(check(46.1, LinkState::Down).unwrap().contains("eth7 has been down for 5 s"));
    assert!(check(47.0, LinkState::Removed).unwrap().starts_with("interface eth7 was removed, or spray's XDP program"));
}
