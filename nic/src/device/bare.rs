//! Bare frames: what a device and the path carry when nothing is acknowledged, checked or copied.

use spray_wire::offsets::{ETHERTYPE, ETHERTYPE_V6, udp_payload_offset, udp_src_port_offset, v6};
use spray_wire::{Ev, Ports, switch_view};

use super::Device;

/// One frame, sent again and again: what follows its head is written into each of the device's frames once, and goes again from there.
#[derive(Debug)]
pub struct Bare {
    template: Box<[u8]>,
    v6: bool,
    /// Entropy values that take turns; 0: the template's port stays.
    evs: u16,
    turn: u16,
}

/// Bytes of UDP payload by which a bare frame is known: a zero, which is no version of ours; a byte; what makes up for the source port in
/// the UDP checksum; the number of the receiver's connection; and random ones, by which the sender knows what lies in a frame of its device.
const HEAD: usize = 16;
const BALANCE: usize = 2;
const NUMBER: usize = 4;
const MARK: usize = 8;

impl Bare {
    /// The frame as it stands, from its Ethernet header on.
    #[must_use]
    pub fn new(template: &[u8]) -> Self {
        let v6 = template.get(ETHERTYPE..ETHERTYPE + 2) == Some(&ETHERTYPE_V6.to_be_bytes()[..]);
        Self { template: template.into(), v6, evs: 0, turn: 0 }
    }

    /// Has source ports take turns, those that stand for so many entropy values. The template's UDP payload begins with [`payload`].
    pub(crate) fn spread(self, evs: u16) -> Self {
        Self { evs, ..self }
    }

    /// Bytes before the UDP payload.
    #[must_use]
    pub fn header_bytes(v6: bool) -> usize {
        udp_payload_offset(v6)
    }

    /// Queues frames for sending, `most` at most and as many as the device has room for, and returns how many. They go at the next flush.
    pub fn send<D: Device>(&mut self, device: &mut D, most: u64) -> u64 {
        let mut sent = 0;
        while sent < most {
            let Some(id) = device.allocate() else { break };
            self.write(device.frame_mut(&id));
            if let Err(id) = device.transmit(id, self.template.len() as u32) {
                device.release(id);
                break;
            }
            sent += 1;
        }
        sent
    }

    /// Writes the head, and the rest unless it is there from the last time: no other frame has the mark.
    fn write(&mut self, frame: &mut [u8]) {
        self.take_turn();
        let end = self.template.len().min(udp_payload_offset(self.v6) + HEAD);
        let mark = end.saturating_sub(HEAD - MARK)..end;
        let written = if frame[mark.clone()] == self.template[mark] { end } else { self.template.len() };
        frame[..written].copy_from_slice(&self.template[..written]);
    }

    fn take_turn(&mut self) {
        let Some(next) = (self.turn + 1).checked_rem(self.evs) else { return };
        self.turn = next;
        let port = Ev::new(next).port(self.evs.into()).number();
        let (at, balance) = (udp_src_port_offset(self.v6), udp_payload_offset(self.v6) + BALANCE);
        self.template[at..at + 2].copy_from_slice(&port.to_be_bytes());
        self.template[balance..balance + 2].copy_from_slice(&(!port).to_be_bytes());
        if self.v6 {
            self.template[v6::LABEL..v6::LABEL + 2].copy_from_slice(&port.to_be_bytes());
        }
    }
}

/// Fewest bytes of a bare frame: none is padded on its way.
pub(crate) fn least(v6: bool) -> usize {
    (udp_payload_offset(v6) + HEAD).max(60)
}

/// The beginning of the UDP payload of bare frames from this source port, to the connection that their receiver gave this number.
pub(crate) fn payload(port: u16, number: u32, mark: u64) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[BALANCE..NUMBER].copy_from_slice(&(!port).to_be_bytes());
    head[NUMBER..MARK].copy_from_slice(&number.to_be_bytes());
    head[MARK..].copy_from_slice(&mark.to_be_bytes());
    head
}

/// The number of a bare frame's connection, and whether it came by IPv6. Nothing else of the frame is looked at.
pub(crate) fn number(frame: &[u8], ports: Ports) -> Option<(u32, bool)> {
    let v6 = switch_view::classify(frame, ports)?;
    let head: &[u8; HEAD] = frame.get(udp_payload_offset(v6)..)?.first_chunk()?;
    let number = head[NUMBER..MARK].try_into().map(u32::from_be_bytes).ok()?;
    (head[0] == 0).then_some((number, v6))
}
