//! Data of a deployed fabric, with the same layout in the kernel's maps and in memory.
//!
//! An XDP program cannot delay frames. It redirects each to a process, behind a [`DelayHeader`]
//! with the time and the egress port; or forwards it at once, at rates that a process cannot
//! handle.

use spray_wire::switch_view::{Packet, neighbour_of, source_of};

use crate::scheme::NO_PORT;
use crate::tables::Tables;

/// Returns the switches' time in ps: the kernel's monotonic clock since `origin_ns`, shared with
/// the loader. The kernel's clock itself would exceed 64 bits of ps after 213 days.
//= docs/specs/switch.md#SW-31 one clock
#[inline(always)]
pub const fn elapsed_ps(origin_ns: u64, now_ns: u64) -> u64 {
    now_ns.wrapping_sub(origin_ns).wrapping_mul(1000)
}

/// What is behind an ingress interface.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    /// The switch that frames enter.
    pub switch: u32,
    /// The port of the host's own link; [`NO_PORT`] for frames from another switch, or, on an
    /// external interface, from another machine.
    pub host_link: u32,
    /// The index of the socket of queue 0; those of the further queues follow.
    pub socket: u32,
    /// 1: external, other frames are the kernel's. 0: created by the fabric.
    pub external: u32,
    /// 1: frames are forwarded at once. 0: they are delayed.
    pub undelayed: u32,
    /// 1: packets from unknown sources go to [`Dest::Bridge`], to be learned. 0: the table is full.
    pub learns: u32,
    /// The interface's MAC address, and two zeros.
    pub mac: [u8; 8],
}

/// The destination of messages between machines: a locally administered group, which NICs receive.
pub const PEER_GROUP_MAC: [u8; 6] = [0x03, 0x53, 0x57, 0, 0, 0];

/// The EtherType of these messages: for local experiments (IEEE 802, 88-B5).
pub const PEER_ETHERTYPE: [u8; 2] = 0x88b5u16.to_be_bytes();

#[inline(always)]
fn is_peer_message(packet: &(impl Packet + ?Sized)) -> bool {
    // As long as the shortest frame with an address, which the verifier can follow.
    packet.head::<42>().is_some_and(|head| head[12] == PEER_ETHERTYPE[0] && head[13] == PEER_ETHERTYPE[1])
}

/// In place of a host's number: none.
pub const NO_HOST: u32 = u32::MAX;

/// In place of a host's number: an address of the kernel, on an external interface.
pub const KERNEL: u32 = u32::MAX - 1;

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dest {
    /// To the switches, if it is a packet to a host.
    Fabric,
    /// To the machine's kernel, as without a fabric.
    Kernel,
    /// To the process that delays frames, which bridges it, and learns addresses from it.
    Bridge,
}

impl Attachment {
    /// Returns where a frame goes. ARP and neighbour discovery bypass the switches, as hosts appear
    /// to share a layer-2 segment, and so do first packets of unlearned hosts.
    //= docs/specs/switch.md#SW-26 user-supplied interfaces
    #[inline(always)]
    pub fn dest<T: Tables>(&self, tables: &T, packet: &(impl Packet + ?Sized)) -> Dest {
        if self.external == 0 {
            return Dest::Fabric;
        }
        if self.host_link == NO_PORT {
            return Self::dest_from_cable(packet);
        }
        let Some(neighbour) = neighbour_of(packet) else {
            let is_unknown = self.learns != 0
                && self.dest_of_unknown(packet) == Dest::Bridge
                && source_of(packet).is_some_and(|source| tables.host(&source).is_none());
            return if is_unknown { Dest::Bridge } else { Dest::Fabric };
        };
        if self.is_for_kernel(packet) || tables.host(&neighbour) == Some(KERNEL) { Dest::Kernel } else { Dest::Bridge }
    }

    //= docs/specs/switch.md#SW-27 one switch per machine
    #[inline(always)]
    fn dest_from_cable(packet: &(impl Packet + ?Sized)) -> Dest {
        if is_peer_message(packet) {
            Dest::Bridge
        } else if neighbour_of(packet).is_some() {
            Dest::Kernel
        } else {
            Dest::Fabric
        }
    }

    /// Returns where a frame to an unknown address goes.
    //= docs/specs/switch.md#SW-26 user-supplied interfaces
    #[inline(always)]
    pub fn dest_of_unknown(&self, packet: &(impl Packet + ?Sized)) -> Dest {
        // Both addresses: the verifier does not follow a check of one byte.
        let is_for_all = packet.head::<12>().is_none_or(|head| head[0] & 1 != 0);
        let is_cable = self.host_link == NO_PORT;
        if self.external == 0 || is_cable || is_for_all || self.is_for_kernel(packet) {
            Dest::Kernel
        } else {
            Dest::Bridge
        }
    }

    /// Returns whether the switches route a frame instead of bridging it, and decrement its TTL.
    //= docs/specs/switch.md#SW-26 user-supplied interfaces
    #[inline(always)]
    pub fn routes(&self, packet: &(impl Packet + ?Sized)) -> bool {
        self.external == 0 || self.is_for_kernel(packet)
    }

    /// Whether a frame is for this machine's MAC: to be routed, or to the machine itself.
    #[inline(always)]
    fn is_for_kernel(&self, packet: &(impl Packet + ?Sized)) -> bool {
        let [a, b, c, d, e, f, ..] = self.mac;
        packet.head::<6>().is_some_and(|head| *head == [a, b, c, d, e, f])
    }
}

/// The MAC addresses of routed frames that leave by a port.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MacRewrite {
    /// The destination.
    pub to: [u8; 6],
    /// The source.
    pub from: [u8; 6],
}

impl MacRewrite {
    /// Writes the addresses; `None` where the frame is too short, which forwarded frames never are.
    #[inline(always)]
    pub fn write(&self, packet: &mut (impl Packet + ?Sized)) -> Option<()> {
        let head = packet.head_mut::<12>()?;
        let (to, from) = head.split_at_mut(6);
        to.copy_from_slice(&self.to);
        from.copy_from_slice(&self.from);
        Some(())
    }
}

/// The header before a frame that is delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayHeader {
    /// Arrival at the far end of its last cable, in ps by [`elapsed_ps`].
    pub due_ps: u64,
    /// The egress port; [`NO_PORT`]: the frame is for the [`Dest::Bridge`].
    pub port: u32,
    /// Further flags: [`EXPIRED`], [`CORRUPTED`], [`DUPLICATED`], [`DELAYED`].
    pub flags: u32,
}

/// [`DelayHeader::flags`]: its TTL expired at this port; an ICMP error is due.
pub const EXPIRED: u32 = 1;
/// [`DelayHeader::flags`]: one bit of it is flipped.
pub const CORRUPTED: u32 = 2;
/// [`DelayHeader::flags`]: it is sent twice.
pub const DUPLICATED: u32 = 4;
/// [`DelayHeader::flags`]: it crossed an impaired link, and is never forwarded at once.
pub const DELAYED: u32 = 8;

/// Bytes of a [`DelayHeader`].
pub const DELAY_HEADER_BYTES: usize = 16;

impl DelayHeader {
    /// Writes it before a frame.
    #[inline(always)]
    pub fn write(&self, head: &mut [u8; DELAY_HEADER_BYTES]) {
        head[..8].copy_from_slice(&self.due_ps.to_le_bytes());
        head[8..12].copy_from_slice(&self.port.to_le_bytes());
        head[12..].copy_from_slice(&self.flags.to_le_bytes());
    }

    /// Splits a header from its frame; `None` where the bytes are too short.
    pub fn read(frame: &[u8]) -> Option<(Self, &[u8])> {
        let (due, rest) = frame.split_first_chunk()?;
        let (port, rest) = rest.split_first_chunk()?;
        let (flags, frame) = rest.split_first_chunk()?;
        let [port, flags] = [port, flags].map(|bytes| u32::from_le_bytes(*bytes));
        Some((Self { due_ps: u64::from_le_bytes(*due), port, flags }, frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::Scheme;
    use crate::scheme::tests::chassis::{Chassis, MACHINE};

    /// Regardless of the machine's uptime.
    //= docs/specs/switch.md#SW-31 one clock
    #[test]
    fn time_begins_at_zero_on_every_machine() {
        const DAY_NS: u64 = 86_400_000_000_000;
        for origin_ns in [0, 1, 106 * DAY_NS, 213 * DAY_NS, 214 * DAY_NS, 18_500_000_000_000_000, u64::MAX / 2] {
            for later_ns in [0, 1, DAY_NS, 100 * DAY_NS] {
                assert_eq!(elapsed_ps(origin_ns, origin_ns + later_ns), later_ns * 1000, "{origin_ns}");
            }
        }
    }

    #[test]
    fn a_ticket_is_read_as_it_was_written() {
        let header = DelayHeader { due_ps: 0x0102_0304_0506_0708, port: 0x090a_0b0c, flags: 0x0d0e_0f10 };
        let mut frame = [7; DELAY_HEADER_BYTES + 1];
        header.write(frame.first_chunk_mut().unwrap());
        assert_eq!(DelayHeader::read(&frame), Some((header, &[7][..])));
        assert_eq!(DelayHeader::read(&[0; DELAY_HEADER_BYTES - 1]), None);
    }

    #[test]
    fn a_routed_frame_gets_both_addresses() {
        let mut frame = [7; 14];
        MacRewrite { to: [1; 6], from: [2; 6] }.write(&mut frame[..]).unwrap();
        assert_eq!(frame, [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 7, 7]);
        assert_eq!(MacRewrite::default().write(&mut frame[..11]), None);
    }

    /// On a user-supplied interface a frame is for the fabric, the machine or the bridge; on one
    /// created by the fabric always for the fabric.
    #[test]
    fn frames_are_dispatched_by_destination() {
        let external = Attachment {
            switch: 0,
            host_link: 0,
            socket: 0,
            external: 1,
            undelayed: 0,
            learns: 1,
            mac: [2, 0, 0, 0, 0, 9, 0, 0],
        };
        let host_link = Attachment { external: 0, ..external };
        let to = |mac: [u8; 6]| {
            let mut frame = [0; 60];
            frame[..6].copy_from_slice(&mac);
            frame
        };
        let (machine, host, all) = (to([2, 0, 0, 0, 0, 9]), to([2, 0, 0, 0, 0, 1]), to([0xff; 6]));
        assert_eq!(external.dest_of_unknown(&machine[..]), Dest::Kernel);
        assert_eq!(external.dest_of_unknown(&all[..]), Dest::Kernel);
        assert_eq!(external.dest_of_unknown(&host[..]), Dest::Bridge);
        assert_eq!(host_link.dest_of_unknown(&host[..]), Dest::Kernel);
        assert!(external.routes(&machine[..]) && !external.routes(&host[..]) && host_link.routes(&host[..]));
    }

    /// An ARP request is for another host, known or unknown, or for this machine, by its IP address
    /// or by its Ethernet address.
    //= docs/specs/switch.md#SW-26 user-supplied interfaces
    #[test]
    fn arp_requests_for_the_machine_are_passed_to_its_kernel_and_others_to_hosts() {
        let chassis = Chassis::three_tiers(Scheme::Ecmp);
        let own = [2, 0, 0, 0, 0, 9];
        let external = Attachment {
            switch: 0,
            host_link: 0,
            socket: 0,
            external: 1,
            undelayed: 0,
            learns: 1,
            mac: [2, 0, 0, 0, 0, 9, 0, 0],
        };
        let side = |mac: [u8; 6], last| {
            let mut frame = [0; 60];
            frame[..6].copy_from_slice(&mac);
            frame[12..14].copy_from_slice(&[8, 6]);
            frame[38..42].copy_from_slice(&[10, 0, 0, last]);
            external.dest(&chassis, &frame[..])
        };
        assert_eq!([1, 99, MACHINE].map(|last| side([0xff; 6], last)), [Dest::Bridge, Dest::Bridge, Dest::Kernel]);
        assert_eq!([1, MACHINE].map(|last| side(own, last)), [Dest::Kernel; 2]);
    }

    /// From another box, only control messages go to the bridge; neighbours of hosts are resolved
    /// there.
    #[test]
    fn frames_of_boxes_are_dispatched_by_destination() {
        let cable = Attachment {
            switch: 0,
            host_link: NO_PORT,
            socket: 0,
            external: 1,
            undelayed: 0,
            learns: 0,
            mac: [2, 0, 0, 0, 0, 9, 0, 0],
        };
        let frame = |ethertype: [u8; 2]| {
            let mut frame = [0; 60];
            frame[12..14].copy_from_slice(&ethertype);
            frame
        };
        let side = |ethertype| Attachment::dest_from_cable(&frame(ethertype)[..]);
        assert_eq!(side(PEER_ETHERTYPE), Dest::Bridge);
        assert_eq!(side([8, 6]), Dest::Kernel);
        assert_eq!(side([8, 0]), Dest::Fabric);
        assert_eq!(cable.dest_of_unknown(&frame([8, 0])[..]), Dest::Kernel);
    }
}
