//! Bodies of control frames in flight.

use spray_wire::{Ack, Body, Echoes, EvPort, Time};

/// Most are ACKs without echoes, which take 72 bytes instead of the 120 of a [`Body`].
#[derive(Debug)]
pub(super) enum ControlBody {
    Ack(PlainAck),
    Other(Box<Body>),
}

const _: () = assert!(size_of::<ControlBody>() == 72);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PlainAck {
    cumulative: u64,
    timestamp_echo: Time,
    sack_base: u64,
    bitmap: [u64; 4],
    max_data: u64,
    port: EvPort,
    hops: u8,
    packets: u8,
    marked_packets: u8,
    marked: bool,
    trimmed: bool,
    misrouted: bool,
}

impl ControlBody {
    #[inline]
    pub(super) fn new(body: &Body) -> Self {
        let Body::Ack(ack) = body else { return Self::Other(Box::new(*body)) };
        if !ack.echoes.is_empty() {
            return Self::Other(Box::new(*body));
        }
        let Ack { cumulative, timestamp_echo, sack_base, bitmap, max_data, port, hops, packets, .. } = *ack;
        let Ack { marked_packets, marked, trimmed, misrouted, .. } = *ack;
        Self::Ack(PlainAck {
            cumulative,
            timestamp_echo,
            sack_base,
            bitmap,
            max_data,
            port,
            hops,
            packets,
            marked_packets,
            marked,
            trimmed,
            misrouted,
        })
    }

    #[inline]
    pub(super) fn body(&self) -> Body {
        let ack = match self {
            Self::Ack(ack) => *ack,
            Self::Other(body) => return **body,
        };
        let PlainAck { cumulative, timestamp_echo, sack_base, bitmap, max_data, port, hops, packets, .. } = ack;
        let PlainAck { marked_packets, marked, trimmed, misrouted, .. } = ack;
        Body::Ack(Ack {
            port,
            hops,
            packets,
            cumulative,
            timestamp_echo,
            sack_base,
            bitmap,
            max_data,
            marked_packets,
            marked,
            trimmed,
            misrouted,
            echoes: Echoes::default(),
        })
    }

    /// Reads fields of an ACK, so that they are in the cache.
    #[inline]
    pub(super) fn touch(&self) -> (u64, u64) {
        match self {
            Self::Ack(ack) => (ack.cumulative, ack.max_data),
            Self::Other(body) => match &**body {
                Body::Ack(ack) => (ack.cumulative, ack.max_data),
                _ => (0, 0),
            },
        }
    }
}

impl Default for ControlBody {
    #[inline]
    fn default() -> Self {
        Self::Ack(PlainAck::default())
    }
}
