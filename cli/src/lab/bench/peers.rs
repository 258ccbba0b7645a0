//! What `spray bench veth` measures beside each other.

#[cfg(feature = "quic")]
use spray_benches::net::Quic;
use spray_benches::net::{Kernel, Transport};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Transport(Transport),
    Bare,
    Kernel(Kernel),
    #[cfg(feature = "quic")]
    Quic(Quic),
}

/// Name in options and JSON, what it is, and how it is measured; in the order of each round.
pub const PEERS: &[(&str, &str, Way)] = &[
    ("spray_4to1", "REPS connection, an ACK per 4 packets", ours(4, true)),
    ("spray_1to1", "REPS connection, an ACK per packet", ours(1, true)),
    (BARE, "bare AF_XDP frames, same path", Way::Bare),
    ("spray_prompt", "REPS connection, an ACK per 4 packets, frames wait for no others", ours(4, false)),
    ("udp_xdp", "kernel UDP on such a veth, sendmmsg/recvmmsg", Way::Kernel(Kernel::Udp { programs: true })),
    ("udp", "the same on a veth without XDP programs", Way::Kernel(Kernel::Udp { programs: false })),
    ("udp_gso", "kernel UDP with GSO and GRO", Way::Kernel(Kernel::UdpSegments)),
    ("tcp", "kernel TCP without TSO", Way::Kernel(Kernel::Tcp { tso: false })),
    ("tcp_tso", "kernel TCP with TSO", Way::Kernel(Kernel::Tcp { tso: true })),
    #[cfg(feature = "quic")]
    ("quinn", "QUIC, quinn", Way::Quic(Quic::Quinn)),
    #[cfg(feature = "quic")]
    ("s2n_quic", "QUIC, s2n-quic", Way::Quic(Quic::S2n)),
];
pub const BARE: &str = "bare";

const fn ours(ack_every: u32, coalesces: bool) -> Way {
    Way::Transport(Transport { ack_every, coalesces })
}

/// All peers: names and words.
pub fn peers() -> impl Iterator<Item = (&'static str, &'static str)> {
    PEERS.iter().map(|(name, words, _)| (*name, *words))
}
