//! Limits of numbers: times at the end of the clock, messages beyond 4 GiB.

use super::*;
use crate::rng;
use crate::tests::at_step;

/// Times beyond the range of picoseconds, up to the last one.
const TIMES: [Time; 6] = [
    at_step((u64::MAX - 1) / Time::STEP_PS),
    at_step(1 << 63),
    Time::NEVER.before(2 * US),
    Time::NEVER.before(1_000),
    Time::NEVER.before(Time::STEP_PS),
    Time::NEVER,
];

fn arrival(data: spray_wire::Data) -> Arrival {
    Arrival { data, port: spray_wire::EvPort::new(50_000), hops: 1, ..Arrival::default() }
}

/// The maximum number of frames at one time.
const MOST: usize = 3_000;

#[test]
fn every_loop_ends_at_the_end_of_the_clock() {
    for (balancer, cc) in BalancerKind::ALL.into_iter().flat_map(|balancer| CcKind::ALL.map(|cc| (balancer, cc))) {
        let mut config = FlowConfig { balancer: balancer.into(), ..config() };
        config.cc = cc.into();
        let mut rng = rng::stream(1, 1);
        let mut sender = Sender::new(&config, config.window_packets, config.max_data_bytes, &mut rng);
        let mut receiver = Receiver::new(&config);
        for (number, now) in TIMES.into_iter().enumerate() {
            sender.send_message(number as u32, 100_000).unwrap();
            for frames in 0.. {
                assert!(frames < MOST, "{balancer:?} and {cc:?} at {now:?}");
                match sender.poll_transmit(now, &mut rng, &mut ()) {
                    None => break,
                    Some(Transmit::Data { data, .. }) if frames % 2 == 0 => {
                        let _ = receiver.on_data(now, &arrival(data));
                    }
                    Some(_) => {}
                }
                while let Some(ack) = receiver.poll_ack() {
                    sender.on_ack(now, &ack, &mut ());
                }
            }
            receiver.on_timeout(now);
            sender.on_timeout(now, &mut ());
            let _ = (sender.poll_timeout(), receiver.poll_timeout());
            while sender.poll_event().is_some() {}
            while let Some((_, bytes)) = receiver.message_completed() {
                receiver.consumed(bytes);
            }
        }
    }
}

/// No byte of the message is in memory: only the offsets of the packets are checked.
#[test]
fn a_message_beyond_4_gib_sends_every_byte_once() {
    let bytes = (4 << 30) + 123_456_789u64;
    let (payload_bytes, max_message_bytes) = (65_000, 5 << 30);
    let config = FlowConfig {
        payload_bytes,
        max_message_bytes,
        max_data_bytes: max_message_bytes,
        give_up_ps: 1 << 60,
        ..open_config()
    };
    let mut rng = rng::stream(1, 1);
    let mut sender = Sender::new(&config, config.window_packets, config.max_data_bytes, &mut rng);
    let mut receiver = Receiver::new(&config);
    sender.send_message(7, bytes).unwrap();
    let packets = bytes.div_ceil(payload_bytes.into());
    let mut seen = std::vec![false; packets as usize];
    let (mut now, mut sent, mut completed) = (Time::ZERO, 0u64, None);
    while completed.is_none() {
        now = now.after(US);
        sender.on_timeout(now, &mut ());
        while let Some(Transmit::Data { data, .. }) = sender.poll_transmit(now, &mut rng, &mut ()) {
            sent += 1;
            // One packet in 101 is lost.
            if sent % 101 == 0 {
                continue;
            }
            if let DataOutcome::New { place: Some(_) } = receiver.on_data(now, &arrival(data)) {
                let packet = data.offset / u64::from(payload_bytes);
                assert_eq!(data.offset % u64::from(payload_bytes), 0);
                assert_eq!(u64::from(data.payload_bytes), (bytes - data.offset).min(payload_bytes.into()));
                assert!(!std::mem::replace(&mut seen[packet as usize], true), "packet {packet} was received twice");
            }
            completed = completed.or(receiver.message_completed());
        }
        while let Some(ack) = receiver.poll_ack() {
            sender.on_ack(now, &ack, &mut ());
        }
        assert!(!sender.has_failed() && now < at(10_000_000 * US), "{:?}", sender.stats());
    }
    assert_eq!(completed, Some((7, bytes)));
    assert!(seen.into_iter().all(|seen| seen));
    assert_eq!((receiver.stats().bytes, sender.stats().bytes_sent), (bytes, bytes));
}
