#![expect(unsafe_code, reason = "receives stand for those of an application")]

use proptest::prelude::*;

use super::*;

fn receive(context: usize, from: Option<u8>, tag: Option<(u64, u64)>) -> Receive {
    // SAFETY: nothing is read or written.
    let buffers = unsafe { Buffers::new(&[]) }.unwrap();
    let from = from.map(|last| IpAddr::from([10, 0, 0, last]));
    Receive { buffers, from, tag, context, is_reported: true, least: None, is_last: false }
}

fn arrival(number: u8, from: u8, tag: Option<u64>) -> Arrival<u8> {
    let message = Bytes::copy_from_slice(&[number]);
    Arrival { from: [10, 0, 0, from].into(), connection: from, header: Header { tag, ..Header::default() }, message }
}

/// Posts a receive for one message.
fn received<C: Copy + PartialEq>(matching: &mut Matching<C>, receive: Receive) -> Option<(Receive, Arrival<C>)> {
    let mut met = None;
    matching.receive(receive, |receive, arrival| assert!(met.replace((receive, arrival)).is_none()));
    met
}

/// A literal implementation of the rule: of all matching pairs, the oldest receive and the oldest
/// arrival.
#[derive(Default)]
struct Oracle {
    receives: Vec<Receive>,
    arrivals: Vec<Arrival<u8>>,
}

impl Oracle {
    fn pair(&mut self) -> Option<(usize, u8)> {
        for at in 0..self.receives.len() {
            for of in 0..self.arrivals.len() {
                let (receive, arrival) = (&self.receives[at], &self.arrivals[of]);
                let from = receive.from.is_none_or(|from| from == arrival.from);
                let tag = match (receive.tag, arrival.header.tag) {
                    (None, None) => true,
                    (Some((tag, ignored)), Some(other)) => tag | ignored == other | ignored,
                    _ => false,
                };
                if from && tag {
                    return Some((self.receives.remove(at).context, self.arrivals.remove(of).message[0]));
                }
            }
        }
        None
    }
}

proptest! {
    #[test]
    fn the_oldest_matching_pair_is_matched(steps in prop::collection::vec(
        (any::<bool>(), prop::option::of(0u8..3), prop::option::of((0u64..4, 0u64..4)), 0u8..20), 1..80)
    ) {
        let (mut matching, mut oracle) = (Matching::default(), Oracle::default());
        for (number, (is_receive, from, tag, what)) in steps.into_iter().enumerate() {
            let met = if what == 0 {
                let cancelled = matching.cancel(number / 2).map(|receive| receive.context);
                let at = oracle.receives.iter().position(|receive| receive.context == number / 2);
                prop_assert_eq!(cancelled, at.map(|at| oracle.receives.remove(at).context));
                None
            } else if is_receive {
                let receive = receive(number, from, tag);
                let seen = matching.peek(&receive).map(|arrival| arrival.message.clone());
                oracle.receives.push(receive);
                let met = received(&mut matching, receive);
                prop_assert_eq!(seen, met.as_ref().map(|(_, arrival)| arrival.message.clone()));
                met
            } else {
                let arrival = arrival(number as u8, from.unwrap_or(0), tag.map(|(tag, _)| tag));
                oracle.arrivals.push(arrival.clone());
                matching.arrive(arrival)
            };
            prop_assert_eq!(met.map(|(receive, arrival)| (receive.context, arrival.message[0])), oracle.pair());
            prop_assert_eq!(matching.waiting(), oracle.receives.len());
            prop_assert_eq!(matching.count(|_| true).0, oracle.arrivals.len());
        }
    }
}

#[test]
fn messages_of_a_closed_connection_are_removed() {
    let mut matching = Matching::default();
    for (number, from, tag) in [(0, 1, None), (1, 2, None), (2, 1, Some(5)), (3, 2, Some(5))] {
        assert!(matching.arrive(arrival(number, from, tag)).is_none());
    }
    assert_eq!(matching.count(|connection| connection == 1), (2, 2));
    matching.forget(1);
    assert_eq!(matching.count(|_| true), (2, 2));
    assert_eq!(received(&mut matching, receive(0, None, Some((5, 0)))).unwrap().1.message[0], 3);
    assert_eq!(received(&mut matching, receive(0, None, None)).unwrap().1.message[0], 1);
}

#[test]
fn a_multi_receive_accepts_messages_until_it_is_nearly_full() {
    let memory = [0_u8; 100];
    let piece = libc::iovec { iov_base: memory.as_ptr().cast_mut().cast(), iov_len: memory.len() };
    // SAFETY: nothing is read or written.
    let buffers = unsafe { Buffers::new(&[piece]) }.unwrap();
    let several = |context| Receive { buffers, least: Some(16), is_reported: false, ..receive(context, None, None) };
    let message = |bytes: usize| Arrival { message: vec![0; header::BYTES + bytes].into(), ..arrival(0, 1, None) };
    let (mut matching, start) = (Matching::default(), memory.as_ptr().addr());
    let mut got = Vec::new();
    let mut note = |receive: Receive, arrival: Arrival<u8>| {
        let at = receive.buffers.address() - start;
        got.push((receive.context, at, arrival.bytes(), receive.is_last, receive.is_reported));
    };
    // Messages that wait are placed in it at once, later ones after them.
    for bytes in [40, 20] {
        assert!(matching.arrive(message(bytes)).is_none());
    }
    matching.receive(several(1), &mut note);
    for bytes in [10, 14, 30] {
        matching.arrive(message(bytes)).into_iter().for_each(|(receive, arrival)| note(receive, arrival));
    }
    matching.receive(several(2), &mut note);
    let first =
        [(1, 0, 40, false, false), (1, 40, 20, false, false), (1, 60, 10, false, false), (1, 70, 14, false, false)];
    assert_eq!(got, [&first[..], &[(1, 84, 30, true, true)]].concat());
    assert_eq!((matching.waiting(), matching.cancel(2).unwrap().buffers.bytes()), (1, 100));
}
