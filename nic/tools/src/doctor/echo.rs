//! ICMP echo requests through an AF_XDP socket. Replies pass to the kernel, and to a raw socket.

use std::cell::Cell;
use std::io::Read;
use std::net::IpAddr;
use std::time::Duration;

use etherparse::PacketBuilder;
use socket2::{Domain, Protocol, Socket, Type};
use spray_nic::device::{Device, DeviceHealth, XskDevice};
use spray_nic::net::Interface;
use spray_nic::sys::monotonic_ns;

pub(super) const REQUESTS: u16 = 16;

/// A peer and the route to it.
pub(super) struct Echo {
    macs: [[u8; 6]; 2],
    from: IpAddr,
    to: IpAddr,
    answers: Socket,
    /// Identifies the echoes of a queue.
    id: Cell<u16>,
}

impl Echo {
    pub(super) fn open(interface: &Interface, to: IpAddr) -> Result<Self, String> {
        let from = interface.own_address(Some(to)).map_err(|error| error.to_string())?;
        let next_hop = interface.next_hop(to).map_err(|error| error.to_string())?;
        let protocol = if to.is_ipv4() { Protocol::ICMPV4 } else { Protocol::ICMPV6 };
        let open = || {
            let socket = Socket::new(Domain::for_address((to, 0).into()), Type::RAW, Some(protocol))?;
            socket.bind_device(Some(interface.l3_interface().name.as_bytes()))?;
            socket.set_read_timeout(Some(Duration::from_millis(10)))?;
            Ok(socket)
        };
        let answers = open().map_err(|error: std::io::Error| format!("a raw socket for the answers: {error}"))?;
        Ok(Self {
            macs: [interface.l3_interface().mac, next_hop],
            from,
            to,
            answers,
            id: Cell::new(std::process::id() as u16),
        })
    }

    /// Sends requests, and waits up to a second for replies and completions.
    pub(super) fn run(&self, device: &mut XskDevice) -> Result<(), String> {
        const PATIENCE_NS: u64 = 1_000_000_000;
        let id = self.id.replace(self.id.get().wrapping_add(1));
        for number in 0..REQUESTS {
            self.send(device, &self.request(id, number)?)?;
        }
        let (begun, mut answered) = (monotonic_ns(), 0_u32);
        let all = u32::from(u16::MAX >> (16 - REQUESTS));
        while answered != all || device.frame_counts().tx > 0 {
            if monotonic_ns() - begun > PATIENCE_NS {
                return Err(missing(answered, device.frame_counts().tx));
            }
            device.flush().map_err(|error| error.to_string())?;
            answered |= self.answer(id).map_or(0, |number| 1 << number);
        }
        Ok(())
    }

    fn send(&self, device: &mut XskDevice, frame: &[u8]) -> Result<(), String> {
        let id = device.allocate().ok_or("it has no free frame")?;
        device.frame_mut(&id)[..frame.len()].copy_from_slice(frame);
        device.transmit(id, frame.len() as u32).map_err(|_| "its ring takes no frame")?;
        device.flush().map_err(|error| format!("sending: {error}"))
    }

    fn request(&self, id: u16, number: u16) -> Result<Vec<u8>, String> {
        const PAYLOAD: [u8; 56] = [0x5a; 56];
        let ethernet = PacketBuilder::ethernet2(self.macs[0], self.macs[1]);
        let mut frame = Vec::with_capacity(128);
        let written = match (self.from, self.to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => ethernet
                .ipv4(from.octets(), to.octets(), 64)
                .icmpv4_echo_request(id, number)
                .write(&mut frame, &PAYLOAD),
            (IpAddr::V6(from), IpAddr::V6(to)) => ethernet
                .ipv6(from.octets(), to.octets(), 64)
                .icmpv6_echo_request(id, number)
                .write(&mut frame, &PAYLOAD),
            _ => return Err("the addresses are not of the same IP version".into()),
        };
        written.map_err(|error| error.to_string())?;
        Ok(frame)
    }

    /// The number of a reply to `id`, if one comes soon.
    fn answer(&self, id: u16) -> Option<u16> {
        let mut packet = [0; 2048];
        let length = (&self.answers).read(&mut packet).ok()?;
        number_of(&packet[..length], self.to.is_ipv4(), id).filter(|number| *number < REQUESTS)
    }
}

/// The number of a reply to `id`. IPv4 packets include their header.
fn number_of(packet: &[u8], v4: bool, id: u16) -> Option<u16> {
    const ANSWERS: [u8; 2] = [0, 129];
    let header = if v4 { usize::from(packet.first()? & 15) * 4 } else { 0 };
    let icmp: &[u8; 8] = packet.get(header..)?.first_chunk()?;
    let [kind, 0, _, _, a, b, c, d] = *icmp else { return None };
    (ANSWERS[usize::from(!v4)] == kind && u16::from_be_bytes([a, b]) == id).then(|| u16::from_be_bytes([c, d]))
}

fn missing(answered: u32, unsent: usize) -> String {
    let answers = format!("{} of {REQUESTS} echoes came back within a second", answered.count_ones());
    match unsent {
        0 => answers,
        frames => format!("{answers}, and {frames} frames did not come back from the driver"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_echoes_to_this_host_count() {
        let v6 = [129, 0, 0, 0, 0x12, 0x34, 0, 7];
        assert_eq!((number_of(&v6, false, 0x1234), number_of(&v6, false, 1)), (Some(7), None));
        let mut v4 = [0; 28];
        v4[0] = 0x45;
        v4[20..].copy_from_slice(&[0, 0, 0, 0, 0x12, 0x34, 0, 9]);
        assert_eq!(number_of(&v4, true, 0x1234), Some(9));
        v4[20] = 8;
        assert_eq!(
            (number_of(&v4, true, 0x1234), number_of(&v4[..20], true, 0x1234)),
            (None, None),
            "a request, and half"
        );
        assert_eq!(missing(0b101, 0), "2 of 16 echoes came back within a second");
    }
}
