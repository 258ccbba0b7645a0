//! The Ethernet, IP and UDP headers of a frame.

use core::net::IpAddr;

use crate::{EvPort, INITIAL_TTL};

/// The ECN field of an IP header (RFC 3168 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: control frames.
    NotEct = 0,
    /// ECN-capable, codepoint ECT(1).
    Ect1 = 1,
    /// ECN-capable, codepoint ECT(0): data frames.
    Ect0 = 2,
    /// Congestion experienced: a queue marked the frame.
    Ce = 3,
}

impl Ecn {
    /// Returns the codepoint in the two low bits of an IPv4 TOS or IPv6 traffic class byte.
    #[inline]
    pub const fn from_tos(tos: u8) -> Self {
        match tos & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}

/// Addresses, ports and IP fields of a frame.
//= docs/specs/wire.md#WIRE-5 dscp, ecn and ttl
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Ethernet source.
    pub src_mac: [u8; 6],
    /// Ethernet destination.
    pub dst_mac: [u8; 6],
    /// IP source.
    pub src: IpAddr,
    /// IP destination, of the same version as the source.
    pub dst: IpAddr,
    /// UDP source port, which encodes the EV.
    pub src_port: EvPort,
    /// UDP destination port, one of the receiver's [`Ports`](crate::Ports).
    pub dst_port: u16,
    /// Differentiated services codepoint, 0..=63.
    pub dscp: u8,
    /// ECN codepoint.
    pub ecn: Ecn,
    /// TTL or hop limit.
    pub ttl: u8,
}

impl Envelope {
    /// Returns whether the frame is IPv6.
    #[inline]
    pub const fn is_v6(&self) -> bool {
        self.dst.is_ipv6()
    }

    /// Returns the number of hops; 0 if the sender started above [`INITIAL_TTL`].
    #[inline]
    pub const fn hops(&self) -> u8 {
        INITIAL_TTL.saturating_sub(self.ttl)
    }

    /// Returns whether the frame is ECN-marked.
    #[inline]
    pub const fn marked(&self) -> bool {
        matches!(self.ecn, Ecn::Ce)
    }

    pub(crate) const fn tos(&self) -> u8 {
        self.dscp << 2 | self.ecn as u8
    }
}
