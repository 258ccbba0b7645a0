//! A frame as the switches of a chassis pass it on: read once at the entry, written once at the exit.

use spray_wire::switch_view::{self, Changes, Headers, Packet};
use spray_wire::{DSCP_PAUSE, DSCP_TRIMMED, DSCP_TRIMMED_LAST};

use crate::flow_hash::Key;
use crate::shim::Shim;

const ECN_CE: u8 = 3;

/// [`Frame::detour`] of a frame against the data of its flow, whose sender must pause (`docs/specs/flowcut-switch.md`, FCS-5).
pub const PAUSE: u8 = 255;

/// What switches decide by, and what they change.
///
/// It has no padding: the kernel refuses to read bytes of its stack that nobody wrote.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Digest of what switches hash, by [`FlowHash`](crate::flow_hash::FlowHash); 0 before a chassis takes the frame.
    pub flow: u64,
    /// Virtual time in ps at which the frame is where it is.
    pub time_ps: u64,
    /// The switch that it is at; [`OUTSIDE`](crate::config::OUTSIDE) or [`HOST`](crate::config::HOST) once it left the chassis.
    pub switch: u32,
    /// The port that it last left by.
    pub port: u32,
    /// The checksum of its header: its share of the random decisions.
    pub checksum: u32,
    /// Bytes of the Ethernet frame.
    pub len: u32,
    /// Bytes that are left of it when a switch trims it; 0 of a frame without a payload that a switch may cut off.
    pub trimmed_len: u16,
    /// TTL or hop limit.
    pub ttl: u8,
    /// ECN bits.
    pub ecn: u8,
    /// It goes in the control class.
    pub control: bool,
    /// How it goes through a dragonfly, see [`Arrival::detour`](crate::scheme::Arrival::detour), or [`PAUSE`].
    pub detour: u8,
    // Both are 0 in real time: together at an even place, where the kernel takes one store for the two.
    /// The DSCP with which a switch of this chassis has trimmed it; 0: none has.
    pub trimmed: u8,
    /// It carries a virtual time.
    pub emulated: bool,
}

const _: () = assert!(size_of::<Frame>() == 2 * 8 + 4 * 4 + 2 + 6);

impl Frame {
    /// The frame with these headers; `now_ps` is asked for the time of one that carries no virtual time.
    //= docs/specs/switch.md#SW-13 virtual time after a port
    #[inline(always)]
    pub fn new(headers: &Headers, shim: Shim, now_ps: impl FnOnce() -> u64) -> Self {
        let emulated = shim.virtual_time_ps != 0;
        Self {
            flow: 0,
            time_ps: if emulated { shim.virtual_time_ps } else { now_ps() },
            switch: 0,
            port: 0,
            checksum: headers.checksum,
            len: headers.bytes,
            trimmed_len: headers.trimmed_len as u16,
            ttl: headers.ttl,
            ecn: headers.ecn,
            //= docs/specs/switch.md#SW-9 control before data
            control: (DSCP_TRIMMED..=DSCP_TRIMMED_LAST).contains(&headers.dscp),
            trimmed: 0,
            emulated,
            detour: if headers.dscp == DSCP_PAUSE { PAUSE } else { shim.detour },
        }
    }

    /// What to write into the frame's headers.
    #[inline(always)]
    pub fn changes(&self) -> Changes {
        Changes { ttl: self.ttl, ecn: self.ecn, pause: self.detour == PAUSE }
    }

    /// Writes the changes into the frame's bytes. Returns the length to cut them to, 0 = keep it; `None` when they are too short.
    #[inline(always)]
    pub(crate) fn write(&self, packet: &mut (impl Packet + ?Sized), v6: bool, foreign: bool) -> Option<u32> {
        if foreign {
            switch_view::write_foreign(packet, v6, &self.changes())?;
            return Some(0);
        }
        switch_view::write(packet, v6, &self.changes())?;
        match self.trimmed {
            0 => Some(0),
            dscp => switch_view::cut(packet, v6, dscp, self.len),
        }
    }

    /// What holds of it where it is.
    #[inline(always)]
    pub fn shim(&self) -> Shim {
        let detour = if self.detour == PAUSE { 0 } else { self.detour };
        Shim { virtual_time_ps: self.time_ps, detour, switch: self.switch, ..Shim::default() }
    }

    /// Whether it is data with a payload that a switch may cut off.
    #[inline(always)]
    pub const fn is_trimmable(&self) -> bool {
        self.trimmed_len != 0
    }

    /// Makes it a trimmed header with this DSCP, which goes in the control class.
    #[inline(always)]
    pub(crate) fn trim(&mut self, dscp: u8) {
        self.len = u32::from(self.trimmed_len);
        self.control = true;
        self.trimmed_len = 0;
        self.trimmed = dscp;
    }
}

/// What a switch may hash of the frame with these headers.
#[inline(always)]
pub(crate) fn key(headers: &Headers) -> Key {
    Key { addresses: headers.addresses, ports: headers.ports, label: headers.label }
}

/// Sets congestion experienced; false when it is set already or the sender does not understand it.
#[inline(always)]
pub(crate) fn mark(ecn: &mut u8) -> bool {
    let marks = *ecn != 0 && *ecn != ECN_CE;
    if marks {
        *ecn = ECN_CE;
    }
    marks
}
