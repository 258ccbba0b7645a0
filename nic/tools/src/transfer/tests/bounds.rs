//! Timeouts and limits of a receiver.

use super::*;

const S: u64 = 1000 * MS;

/// Returns a sender of these messages and nothing more. It ends with the receiver's reason or with
/// its connection.
fn idle<'a>(messages: Vec<Vec<u8>>) -> Role<'a> {
    let mut connection = None;
    let mut last_reason = None;
    Box::new(move |endpoint, now| {
        if connection.is_none() {
            let made = *connection.insert(endpoint.connect(now, receiver(), None).unwrap());
            messages.iter().for_each(|message| send(endpoint, made, Bytes::copy_from_slice(message)));
        }
        while let Some(event) = endpoint.poll_event() {
            match event {
                EndpointEvent::Received { data, .. } => {
                    if let Some(Answer::Ended { reason }) = Answer::decode(&data) {
                        last_reason = Some(reason);
                    }
                }
                EndpointEvent::Closed { .. } | EndpointEvent::Failed { .. } => {
                    let why = last_reason.take().unwrap_or_else(|| format!("not told, after {} s", now.ps() / S));
                    return Err(Failure::failed(why).into());
                }
                _ => {}
            }
        }
        Ok(())
    })
}

/// Returns a sender that starts at `at_ps`.
fn later<'a>(mut role: Role<'a>, at_ps: u64) -> Role<'a> {
    Box::new(move |endpoint, now| if now.ps() < at_ps { Ok(()) } else { role(endpoint, now) })
}

const LIMITS: Limits = Limits { first_ps: 10 * S, bytes_ps: 20 * S };

fn run_limited(folder: &Folder, keep: bool, senders: Vec<Role<'_>>) -> Vec<Outcome> {
    run_within(LIMITS, folder.path(), keep, senders, Impairments::delay(100 * US), 1)
}

#[test]
//= docs/specs/endpoint.md#END-25 continues to listen
fn a_silent_client_is_disconnected_and_another_served() {
    let (folder, content) = (Folder::new(), content(PIECE_BYTES));
    let outcomes = run_limited(&folder, false, vec![idle(vec![]), later(sender(&content), 15 * S)]);
    assert_eq!(error(&outcomes[1]), "no message came for 10 s");
    assert!(outcomes[RECEIVER].is_ok() && outcomes[2].is_ok(), "{outcomes:?}");
    assert!(fs::read(folder.path().join("x.bin")).unwrap() == content);
}

#[test]
//= docs/specs/endpoint.md#END-26 Probes and acknowledgements are no progress
fn a_stalled_transfer_ends_and_its_data_is_removed() {
    let content = content(2 * PIECE_BYTES);
    let all = messages(&file("x.bin", content.len() as u64), &content);
    for sent in [1, 2] {
        let folder = Folder::new();
        let outcomes = run_limited(&folder, false, vec![idle(all[..sent].to_vec())]);
        assert_eq!(error(&outcomes[1]), "nothing of use arrived for 20 s");
        assert!(error(&outcomes[RECEIVER]).contains("nothing was received"), "{outcomes:?}");
        assert_eq!(files(&folder), 0, "{sent}");
    }
}

#[test]
//= docs/specs/endpoint.md#END-27 16 transfers at once
fn sixteen_silent_senders_do_not_keep_others_out() {
    let (folder, content) = (Folder::new(), content(1000));
    let idles = (0..20).map(|n| later(idle(vec![]), n * MS));
    let outcomes = run_limited(&folder, true, idles.chain([later(sender(&content), S)]).collect());
    assert!(outcomes[21].is_ok(), "{outcomes:?}");
    let evicted = outcomes[1..21].iter().map(error).filter(|why| why == "it gave way to another sender").count();
    assert_eq!(evicted, 5, "{outcomes:?}");
}

#[test]
//= docs/specs/endpoint.md#END-27 the new one is refused
fn active_senders_are_not_evicted() {
    let folder = Folder::new();
    let begun = (0..16).map(|n| idle(vec![Message::Entry(0, file(&format!("{n}"), 5)).encode()]));
    let late = later(sender(&content(5)), S);
    let outcomes = run_limited(&folder, true, begun.chain([late]).collect());
    assert!(error(&outcomes[17]).contains("takes from 16 senders at once"), "{outcomes:?}");
    let ended = outcomes[1..17].iter().map(error).filter(|why| why == "nothing of use arrived for 20 s");
    assert_eq!(ended.count(), 16, "{outcomes:?}");
}

/// Returns a sender that describes a folder every 2 s. It ends with the receiver's reason or with
/// its connection.
fn slow<'a>() -> Role<'a> {
    let (mut begun, mut number, mut last_reason) = (None, 0, None);
    Box::new(move |endpoint, now| {
        let connection = *begun.get_or_insert_with(|| endpoint.connect(now, receiver(), None).unwrap());
        if now.ps() >= u64::from(number) * 2 * S {
            let description = Description { path: "folder".into(), kind: EntryKind::Folder, mode: 0o755 };
            let _ = endpoint.send(connection, Message::Entry(number, description).encode().into());
            number += 1;
        }
        while let Some(event) = endpoint.poll_event() {
            match event {
                EndpointEvent::Received { data, .. } => {
                    if let Some(Answer::Ended { reason }) = Answer::decode(&data) {
                        last_reason = Some(reason);
                    }
                }
                EndpointEvent::Closed { .. } | EndpointEvent::Failed { .. } => {
                    return Err(Failure::failed(last_reason.take().unwrap_or_default()).into());
                }
                _ if number > 20 => return Err(End(Ok(()))),
                _ => {}
            }
        }
        Ok(())
    })
}

#[test]
//= docs/specs/endpoint.md#END-27 fewer than 35,000 bytes
fn slow_senders_are_evicted() {
    let (folder, content) = (Folder::new(), content(1000));
    let others = (0..16).map(|_| slow());
    let outcomes = run_limited(&folder, true, others.chain([later(sender(&content), 25 * S)]).collect());
    assert!(outcomes[17].is_ok(), "{:?}", outcomes[17]);
    let evicted = outcomes[1..17].iter().map(error).filter(|why| why == "it gave way to another sender").count();
    assert_eq!(evicted, 1, "{outcomes:?}");
}

/// A sender that was killed and started again is served while its first connection is still open.
#[test]
//= docs/specs/endpoint.md#END-27 16 transfers at once
fn an_address_may_start_a_second_transfer() {
    let (folder, network) = (Folder::new(), MemoryNetwork::new(MemoryConfig::default()));
    let attach = |host: usize| {
        let mac = address(host).1;
        Endpoint::new(network.attach(mac), EndpointConfig { mac, ..config(host.min(1)) }).unwrap()
    };
    let (mut server, mut first, mut second) = (attach(RECEIVER), attach(1), attach(2));
    let mut receiving = Receiving::new(Out::new(folder.path()).unwrap(), true, LIMITS, Progress::on_stderr()).unwrap();
    let content = content(PIECE_BYTES);
    let mut killed = idle(vec![Message::Entry(0, file("x.bin", PIECE_BYTES)).encode()]);
    let mut again = sender(&content);
    for step in 0..200_000_u64 {
        let now = Time::from_ps(step * 100 * US);
        network.advance(now);
        server.poll(now);
        receiving.step(&mut server, now).ok().unwrap();
        if now.ps() < S / 10 {
            first.poll(now);
            assert!(killed(&mut first, now).is_ok());
            continue;
        }
        second.poll(now);
        if let Err(End(outcome)) = again(&mut second, now) {
            assert!(outcome.is_ok() && now.ps() < 2 * S, "{outcome:?} at {} ms", now.ps() / MS);
            assert!(fs::read(folder.path().join("x.bin")).unwrap() == content);
            return;
        }
        std::thread::yield_now();
    }
    panic!("the second has not ended");
}

/// The receiver is alive but consumes nothing, so that the sender may send no more.
#[test]
//= docs/specs/endpoint.md#END-26 within 300 s if it has sent all that the grant permits
fn a_sender_leaves_a_receiver_that_takes_nothing() {
    let network = MemoryNetwork::new(MemoryConfig::default());
    let limited = |host| {
        let EndpointConfig { flow, .. } = config(host);
        let flow = FlowConfig { max_data_bytes: 2 * PIECE_BYTES, max_message_bytes: 2 * PIECE_BYTES, ..flow };
        Endpoint::new(network.attach(address(host).1), EndpointConfig { flow, ..config(host) }).unwrap()
    };
    let (mut receiver, mut sender) = (limited(RECEIVER), limited(1));
    let content = content(8 * PIECE_BYTES);
    let mut sending = sending(file("x.bin", content.len() as u64), &content);
    // The time of the last byte: the sender reads its file in real time.
    let (mut is_ready, mut bytes, mut last_ps) = (false, 0, 0);
    for now_ps in (0..4000 * S).step_by(1000 * US as usize) {
        let now = Time::from_ps(now_ps);
        network.advance(now);
        receiver.poll(now);
        sender.poll(now);
        while !is_ready && let Some(event) = receiver.poll_event() {
            if let EndpointEvent::Received { connection, .. } = event {
                is_ready = true;
                send(&mut receiver, connection, Answer::Ready { number: 0 }.encode().into());
            }
        }
        let taken = receiver.totals().1.bytes;
        if taken > bytes {
            (bytes, last_ps) = (taken, now_ps);
        }
        if let Err(End(outcome)) = sending.step(&mut sender, now) {
            assert!(error(&outcome).contains("takes nothing more"), "{outcome:?}");
            assert!((299 * S..305 * S).contains(&(now_ps - last_ps)), "{now_ps} {last_ps}");
            return;
        }
        std::thread::yield_now();
    }
    panic!("the sender does not time out");
}
