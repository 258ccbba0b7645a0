//! A receiver that acknowledges packets before they can have arrived (RFC 9000 §21.4). The sender
//! skips no packet numbers; these are the bounds on what such a receiver gains.

use std::io;

use spray_core::cc::{CcKind, ControlConfig, FixedRateConfig};
use spray_core::units::Gbps;
use spray_wire::{Accept, Ack, Body, EvPort, Pull};

use super::hostile::{RawHost, client_terms};
use super::*;
use crate::device::{DeviceHealth, DeviceInfo, DeviceStats, FrameCounts, FrameId, Received};

/// The receiver's number among the hosts, and its number and cookie of the connection.
const RECEIVER: usize = 1;
/// Frames of full size that wait for the link.
const RING_FRAMES: u64 = 64;
const FRAME_BYTES: u64 = 1_200;
const MESSAGE_BYTES: usize = 20_000;
const MESSAGES: usize = 16;

/// A device whose tx ring drains at [`LINK_BPS`].
#[derive(Debug)]
struct Uplink {
    device: MemoryDevice,
    now: Time,
    /// When the ring is empty.
    idle_at: Time,
    sent_bytes: u64,
}

impl Device for Uplink {
    fn receive(&mut self, out: &mut Vec<Received>, budget: usize) -> io::Result<usize> {
        self.device.receive(out, budget)
    }

    fn frame(&self, id: &FrameId, len: u32) -> &[u8] {
        self.device.frame(id, len)
    }

    fn frame_mut(&mut self, id: &FrameId) -> &mut [u8] {
        self.device.frame_mut(id)
    }

    fn release(&mut self, id: FrameId) {
        self.device.release(id);
    }

    fn allocate(&mut self) -> Option<FrameId> {
        self.device.allocate()
    }

    fn transmit(&mut self, id: FrameId, len: u32) -> Result<(), FrameId> {
        let idle_at = self.idle_at.max(self.now).after(link_ps(len.into()));
        if idle_at > self.now.after(link_ps(RING_FRAMES * FRAME_BYTES)) {
            return Err(id);
        }
        self.device.transmit(id, len)?;
        self.idle_at = idle_at;
        self.sent_bytes += u64::from(len);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.device.flush()
    }

    fn info(&self) -> DeviceInfo {
        self.device.info()
    }
}

impl DeviceHealth for Uplink {
    fn stats(&self) -> DeviceStats {
        self.device.stats()
    }

    fn frame_counts(&self) -> FrameCounts {
        self.device.frame_counts()
    }

    fn audit(&self) -> Result<(), String> {
        self.device.audit()
    }
}

fn link_ps(bytes: u64) -> u64 {
    bytes * 8 * 1_000_000_000_000 / LINK_BPS
}

/// A sender with a backlog, and a receiver that reads the sender's counters, and so acknowledges
/// earlier than any real one.
struct Early {
    rig: Rig,
    sender: Endpoint<Uplink>,
    receiver: RawHost,
    connection: ConnectionId,
    cookie: u64,
    /// Packets that are acknowledged.
    acknowledged: u64,
}

impl Early {
    fn new(flow: FlowConfig) -> Self {
        let rig = Rig::new(0, false, Impairments::default());
        let device = Uplink { device: rig.network.attach(mac(0)), now: Time::ZERO, idle_at: Time::ZERO, sent_bytes: 0 };
        let mut sender = Endpoint::new(device, EndpointConfig { flow, ..config(0, false) }).unwrap();
        let receiver = RawHost::at(&rig, RECEIVER);
        let connection = sender.connect(Time::ZERO, peer(RECEIVER, false), None).unwrap();
        let mut early = Self { rig, sender, receiver, connection, cookie: 0, acknowledged: 0 };
        early.poll(Time::from_ps(US));
        let [Body::Connect(asks)] = early.received()[..] else { panic!("one Connect") };
        early.cookie = asks.cookie;
        let grants =
            Accept { connection: 9, cookie: 8, window_packets: 1 << 16, max_data: u64::MAX >> 1, ..client_terms(9) };
        early.tell(&Body::Accept(grants));
        early.poll(Time::from_ps(2 * US));
        for seed in 0..MESSAGES {
            early.sender.send(early.connection, content(seed, MESSAGE_BYTES)).unwrap();
        }
        early
    }

    fn tell(&mut self, body: &Body) {
        self.receiver.send(&self.rig, RECEIVER, 0, self.connection.raw(), self.cookie, body);
    }

    fn received(&mut self) -> Vec<Body> {
        self.rig.network.advance(self.rig.now);
        self.receiver.received()
    }

    /// Polls the sender once. A message follows each one that is delivered.
    fn poll(&mut self, now: Time) {
        self.rig.now = now;
        self.sender.device_mut().now = now;
        self.rig.network.advance(now);
        self.sender.poll(now);
        while let Some(event) = self.sender.poll_event() {
            if let EndpointEvent::Delivered { .. } = event {
                self.sender.send(self.connection, content(1, MESSAGE_BYTES)).unwrap();
            }
        }
    }

    fn stats(&self) -> ConnectionStats {
        self.sender.connection_stats(self.connection).unwrap()
    }

    /// Packets that the sender has sent, each once.
    fn sent(&self) -> u64 {
        let sender = self.stats().sender;
        sender.packets_sent - sender.retransmits
    }

    fn ack(&self, cumulative: u64) -> Ack {
        // The packet is still in the tx ring: the round-trip time is the minimum, 1 ps.
        let timestamp_echo = self.rig.now;
        Ack { cumulative, sack_base: cumulative, timestamp_echo, packets: 1, port: EvPort::new(7), ..Ack::default() }
    }

    /// Acknowledges all that was sent, and grants all credit.
    fn acknowledge(&mut self) {
        self.acknowledged = self.sent();
        let ack = Ack { max_data: u64::MAX >> 1, ..self.ack(self.acknowledged) };
        self.tell(&Body::Ack(ack));
        self.tell(&Body::Pull(Pull { credit_bytes: u64::MAX >> 1 }));
    }
}

/// Each congestion control, whether the path's maximum window bounds it, and its maximum rate.
fn controls() -> impl Iterator<Item = (CcKind, ControlConfig, bool, u64)> {
    CcKind::ALL.into_iter().map(|kind| match kind {
        CcKind::FixedRate => {
            let rate_bps = LINK_BPS / 10;
            let own = FixedRateConfig { rate_gbps: Some(Gbps::from_bps(rate_bps)) };
            (kind, ControlConfig::FixedRate(own), true, rate_bps)
        }
        CcKind::Eqds | CcKind::Dcqcn => (kind, kind.into(), false, LINK_BPS),
        _ => (kind, kind.into(), true, LINK_BPS),
    })
}

//= docs/specs/transport.md#TRN-3 bytes in flight stay within the window
//= docs/specs/transport.md#TRN-4 the packet window
#[test]
fn acks_before_arrival_gain_no_more_than_the_window_and_the_link_rate() {
    for ((kind, cc, has_window, rate_bps), learns) in controls().flat_map(|control| [(control, false), (control, true)])
    {
        let known = FlowConfig { cc, window_packets: 256, ..flow(false) };
        let flow = if learns { known.learning() } else { known };
        let packets_bytes = u64::from(flow.window_packets) * u64::from(flow.packet_bytes());
        let window_bytes = flow.path.max_window_bytes.max(flow.path.initial_window_bytes).min(packets_bytes);
        let most_bytes = if has_window { window_bytes } else { packets_bytes };
        let mut early = Early::new(flow);
        let (begun, sent_before, mut least_kept) = (early.rig.now, early.sender.device().sent_bytes, usize::MAX);
        for step in 0..5_000 {
            let now = begun.after(step * US / 5);
            // Until no further packet is sent at this time.
            for _ in 0..100 {
                early.poll(now);
                let stats = early.stats();
                assert!(stats.in_flight_bytes <= most_bytes, "{kind:?}, {learns}: {stats:?}");
                assert!(!has_window || stats.window_bytes <= window_bytes, "{kind:?}, {learns}: {stats:?}");
                if early.sent() == early.acknowledged {
                    break;
                }
                early.acknowledge();
            }
            early.received();
            let table = &early.sender.machine.table;
            let kept = table.get(early.connection).unwrap().send_buffers.kept();
            least_kept = least_kept.min(kept);
            assert!(kept <= 2 * least_kept + 256, "{kind:?}: {kept} messages kept");
        }
        let elapsed_ps = early.rig.now.since(begun);
        let (sent_bytes, stats) = (early.sender.device().sent_bytes - sent_before, early.stats());
        assert_eq!((stats.in_flight_bytes, stats.sender.invalid_acks, stats.sender.retransmits), (0, 0, 0), "{kind:?}");
        let paced_bytes = (u128::from(rate_bps) * u128::from(elapsed_ps) / 8_000_000_000_000) as u64;
        let ahead = RING_FRAMES + u64::from(flow.path.catch_up_packets);
        println!("{kind:?}, learns {learns}: {sent_bytes} of {paced_bytes} bytes, window {}", stats.window_bytes);
        assert!(sent_bytes <= paced_bytes + ahead * FRAME_BYTES, "{kind:?}: {sent_bytes} of {paced_bytes}");
        // `docs/security.md` states that the link rate is reached.
        assert!(kind != CcKind::Dctcp || sent_bytes >= paced_bytes * 9 / 10, "{sent_bytes} of {paced_bytes}");
    }
}

//= docs/specs/transport.md#TRN-20 refused ACKs
#[test]
fn acks_of_packets_not_yet_sent_are_counted_and_have_no_effect() {
    let mut early = Early::new(flow(false));
    let (begun, mut refused) = (early.rig.now, 0);
    for step in 0..500 {
        early.poll(begun.after(step * US));
        let (before, sent) = (early.stats(), early.sent());
        let guesses = [1, 2, 64, u64::MAX - sent].map(|ahead| early.ack(sent + ahead));
        // Bit 255 is that of the next packet, or of a later one.
        let bits = [(sent, [1, 0, 0, 0]), (sent.saturating_sub(255), [0, 0, 0, 1 << 63])]
            .map(|(sack_base, bitmap)| Ack { sack_base, bitmap, ..early.ack(sent.saturating_sub(255)) });
        for ack in guesses.into_iter().chain(bits) {
            refused += 1;
            early.tell(&Body::Ack(ack));
        }
        early.poll(begun.after(step * US));
        let after = early.stats();
        assert_eq!(after.sender.invalid_acks, refused, "step {step}");
        assert_eq!((after.sender.acks, after.sender.packets_acked), (before.sender.acks, before.sender.packets_acked));
        assert_eq!(
            (after.rtt_min_ps, after.sender.messages_delivered),
            (before.rtt_min_ps, before.sender.messages_delivered)
        );
        if step % 2 == 0 {
            early.acknowledge();
        }
    }
    assert!(early.acknowledged > 500, "{} packets", early.acknowledged);
}
