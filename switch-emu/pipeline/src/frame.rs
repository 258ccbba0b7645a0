//! A frame inside a chassis: parsed once at the entry, written once at the exit.

use spray_wire::switch_view::{self, Changes, Headers, Packet};
use spray_wire::{DSCP_PAUSE, DSCP_TRIMMED, DSCP_TRIMMED_LAST};

use crate::flow_hash::Key;
use crate::shim::Shim;

const ECN_CE: u8 = 3;

/// [`Frame::detour`] of a reply that pauses its flow (`docs/specs/flowcut-switch.md`, FCS-5).
pub const PAUSE: u8 = 255;

/// The fields that switches read and change.
///
/// Without padding: the kernel's verifier rejects reads of uninitialised stack.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Digest by [`FlowHash`](crate::flow_hash::FlowHash); 0 before the frame enters a chassis.
    pub flow: u64,
    /// Virtual time in ps, at its present place.
    pub time_ps: u64,
    /// The present switch; outside the chassis [`OUTSIDE`](crate::config::OUTSIDE) or `HOST`.
    pub switch: u32,
    /// The last egress port.
    pub port: u32,
    /// The checksum of its header, which seeds random decisions.
    pub checksum: u32,
    /// Length of the Ethernet frame in bytes.
    pub len: u32,
    /// Length after trimming in bytes; 0 for a frame without a payload to trim.
    pub trimmed_len: u16,
    /// TTL or hop limit.
    pub ttl: u8,
    /// ECN bits.
    pub ecn: u8,
    /// In the control class.
    pub control: bool,
    /// See [`Arrival::detour`](crate::scheme::Arrival::detour), or [`PAUSE`].
    pub detour: u8,
    // Both are 0 in real time: adjacent and aligned, so that one store writes both.
    /// The DSCP with which a switch of this chassis trimmed it; 0: not trimmed.
    pub trimmed: u8,
    /// With a virtual time.
    pub emulated: bool,
}

const _: () = assert!(size_of::<Frame>() == 2 * 8 + 4 * 4 + 2 + 6);

impl Frame {
    /// Creates the frame of these headers; `now_ps` returns the time without a virtual time.
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

    /// Returns the changes of the headers.
    #[inline(always)]
    pub fn changes(&self) -> Changes {
        Changes { ttl: self.ttl, ecn: self.ecn, pause: self.detour == PAUSE }
    }

    /// Returns the length to trim to, 0 = untrimmed; `None` when the frame is too short.
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

    /// Returns the shim for its present place.
    #[inline(always)]
    pub fn shim(&self) -> Shim {
        let detour = if self.detour == PAUSE { 0 } else { self.detour };
        Shim { virtual_time_ps: self.time_ps, detour, switch: self.switch, ..Shim::default() }
    }

    /// Returns whether it has a payload to trim.
    #[inline(always)]
    pub const fn is_trimmable(&self) -> bool {
        self.trimmed_len != 0
    }

    #[inline(always)]
    pub(crate) fn trim(&mut self, dscp: u8) {
        self.len = u32::from(self.trimmed_len);
        self.control = true;
        self.trimmed_len = 0;
        self.trimmed = dscp;
    }
}

#[inline(always)]
pub(crate) fn key(headers: &Headers) -> Key {
    Key { addresses: headers.addresses, ports: headers.ports, label: headers.label }
}

/// Sets congestion experienced; returns false if it is set already or the frame is not ECN-capable.
#[inline(always)]
pub(crate) fn mark(ecn: &mut u8) -> bool {
    let marks = *ecn != 0 && *ecn != ECN_CE;
    if marks {
        *ecn = ECN_CE;
    }
    marks
}
