//! What control frames say, as it is kept while they are under way.

use spray_wire::{Ack, Body, Echoes, EvPort, Time};

/// What a control frame says. Most are acknowledgements without echoes: they are many, and take 72 bytes for a [`Body`]'s 120.
#[derive(Debug)]
pub(super) enum Said {
    Ack(Short),
    Other(Box<Body>),
}

const _: () = assert!(size_of::<Said>() == 72);

/// An [`Ack`] without echoes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Short {
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
    astray: bool,
}

impl Said {
    #[inline]
    pub(super) fn new(body: &Body) -> Self {
        let Body::Ack(ack) = body else { return Self::Other(Box::new(*body)) };
        if !ack.echoes.is_empty() {
            return Self::Other(Box::new(*body));
        }
        let Ack { cumulative, timestamp_echo, sack_base, bitmap, max_data, port, hops, packets, .. } = *ack;
        let Ack { marked_packets, marked, trimmed, astray, .. } = *ack;
        Self::Ack(Short {
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
            astray,
        })
    }

    #[inline]
    pub(super) fn body(&self) -> Body {
        let short = match self {
            Self::Ack(short) => *short,
            Self::Other(body) => return **body,
        };
        let Short { cumulative, timestamp_echo, sack_base, bitmap, max_data, port, hops, packets, .. } = short;
        let Short { marked_packets, marked, trimmed, astray, .. } = short;
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
            astray,
            echoes: Echoes::default(),
        })
    }

    /// Up to where it acknowledges, and something else of it, for the cache to fetch it.
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

impl Default for Said {
    /// Nothing: what is left in the place of what was taken.
    #[inline]
    fn default() -> Self {
        Self::Ack(Short::default())
    }
}
