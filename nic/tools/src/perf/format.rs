//! Messages between client and server. The first byte is the type.

use bytes::{Buf, Bytes};

use super::MOST_BYTES;
use crate::transfer::gbps;

/// The first message: version and fields of [`Request`].
const REQUEST: u8 = 1;
const DATA: u8 = 2;
const PING: u8 = 3;
/// Fields of [`Omitted`]. The server answers with its figures.
const END: u8 = 4;
/// Fields of [`Figures`].
const FIGURES: u8 = 5;
const VERSION: u8 = 4;
/// Type, version, direction, three numbers of 4 bytes and two of 8.
const REQUEST_BYTES: usize = 31;
/// More than a day and the maximum omitted time.
const MOST_SECONDS: u32 = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Up,
    Down,
    Both,
    Latency,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub what: What,
    pub bytes: u32,
    pub seconds: u32,
    pub omit: u32,
    /// 0 for no limit.
    pub rate_bps: u64,
    /// `u64::MAX` for no limit.
    pub most: u64,
}

const ALL: [What; 4] = [What::Up, What::Down, What::Both, What::Latency];

impl Request {
    pub fn encode(self) -> Bytes {
        let what = ALL.iter().position(|what| *what == self.what).unwrap_or_default() as u8;
        let mut message = vec![REQUEST, VERSION, what];
        [self.bytes, self.seconds, self.omit].iter().for_each(|number| message.extend(number.to_be_bytes()));
        [self.rate_bps, self.most].iter().for_each(|number| message.extend(number.to_be_bytes()));
        message.into()
    }

    fn decode(message: &[u8]) -> Option<Self> {
        let [REQUEST, VERSION, what, numbers @ ..] = <[u8; REQUEST_BYTES]>::try_from(message).ok()? else {
            return None;
        };
        let mut numbers = &numbers[..];
        let request = Self {
            what: *ALL.get(usize::from(what))?,
            bytes: numbers.try_get_u32().ok()?,
            seconds: numbers.try_get_u32().ok()?,
            omit: numbers.try_get_u32().ok()?,
            rate_bps: numbers.try_get_u64().ok()?,
            most: numbers.try_get_u64().ok()?,
        };
        let is_bounded = request.seconds.max(request.omit) <= MOST_SECONDS;
        ((1..=MOST_BYTES).contains(&request.bytes) && is_bounded).then_some(request)
    }
}

/// Payload before the measured time, as the client has counted it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Omitted {
    pub sent: u64,
    pub received: u64,
}

/// Counters of the server since the omitted time, without protocol messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub elapsed_us: u64,
    pub received_bytes: u64,
    pub sent_bytes: u64,
    pub packets_sent: u64,
    pub retransmits: u64,
    pub user_us: u64,
    pub system_us: u64,
}

impl Figures {
    pub fn encode(self) -> Bytes {
        let Self { elapsed_us, received_bytes, sent_bytes, packets_sent, retransmits, user_us, system_us } = self;
        encode(FIGURES, [elapsed_us, received_bytes, sent_bytes, packets_sent, retransmits, user_us, system_us])
    }

    fn decode(message: &[u8]) -> Option<Self> {
        let [elapsed_us, received_bytes, sent_bytes, packets_sent, retransmits, user_us, system_us] = decode(message)?;
        Some(Self { elapsed_us, received_bytes, sent_bytes, packets_sent, retransmits, user_us, system_us })
    }

    pub fn line(self) -> String {
        let Self { elapsed_us, received_bytes, sent_bytes, retransmits, packets_sent, .. } = self;
        let seconds = elapsed_us as f64 / 1e6;
        let [up, down] =
            [received_bytes, sent_bytes].map(|bytes| format!("{bytes} bytes ({:.2} Gb/s", gbps(bytes, seconds)));
        format!("{seconds:.1} s, received {up}), sent {down}; {retransmits} of {packets_sent} packets retransmitted)")
    }

    /// CPU times are of the whole process.
    pub fn plus(self, other: Self) -> Self {
        Self {
            elapsed_us: self.elapsed_us.max(other.elapsed_us),
            received_bytes: self.received_bytes.saturating_add(other.received_bytes),
            sent_bytes: self.sent_bytes.saturating_add(other.sent_bytes),
            packets_sent: self.packets_sent.saturating_add(other.packets_sent),
            retransmits: self.retransmits.saturating_add(other.retransmits),
            user_us: self.user_us.max(other.user_us),
            system_us: self.system_us.max(other.system_us),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum Message {
    Request(Request),
    Data,
    Ping,
    End(Omitted),
    Figures(Figures),
}

impl Message {
    pub fn decode(message: &[u8]) -> Option<Self> {
        match *message.first()? {
            REQUEST => Request::decode(message).map(Self::Request),
            DATA => Some(Self::Data),
            PING => Some(Self::Ping),
            END => decode(message).map(|[sent, received]| Self::End(Omitted { sent, received })),
            FIGURES => Figures::decode(message).map(Self::Figures),
            _ => None,
        }
    }
}

pub fn data(bytes: u32) -> Bytes {
    filled(DATA, bytes)
}

pub fn ping(bytes: u32) -> Bytes {
    filled(PING, bytes)
}

pub fn end(omitted: Omitted) -> Bytes {
    encode(END, [omitted.sent, omitted.received])
}

fn encode<const N: usize>(kind: u8, numbers: [u64; N]) -> Bytes {
    [kind].into_iter().chain(numbers.into_iter().flat_map(u64::to_be_bytes)).collect()
}

fn decode<const N: usize>(message: &[u8]) -> Option<[u64; N]> {
    let numbers = message.get(1..)?.as_chunks();
    <[[u8; 8]; N]>::try_from(numbers.0).ok().filter(|_| numbers.1.is_empty()).map(|all| all.map(u64::from_be_bytes))
}

fn filled(kind: u8, bytes: u32) -> Bytes {
    let mut message = vec![0xa5; bytes as usize];
    message[0] = kind;
    message.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_round_trip_and_other_bytes_are_rejected() {
        let request = |what| Request { what, bytes: 1 << 20, seconds: 10, omit: 2, rate_bps: 7, most: u64::MAX };
        for what in ALL {
            assert_eq!(Message::decode(&request(what).encode()), Some(Message::Request(request(what))));
        }
        let good = request(What::Up).encode();
        for (at, byte) in [(0, 9), (1, 2), (2, 4), (3, 0xff), (7, 1), (11, 1)] {
            let mut bad = good.to_vec();
            bad[at] = byte;
            assert_eq!(Message::decode(&bad), None, "byte {at}");
        }
        let none = Request { bytes: 0, ..request(What::Up) }.encode();
        assert!(
            Message::decode(&good[..30]).is_none()
                && Message::decode(&none).is_none()
                && Message::decode(&[]).is_none()
        );
        assert_eq!((Message::decode(&data(1)), Message::decode(&ping(64))), (Some(Message::Data), Some(Message::Ping)));
    }
    #[test]
    fn figures_round_trip_and_other_lengths_are_rejected() {
        let figures = Figures {
            elapsed_us: 1,
            received_bytes: 2,
            sent_bytes: 3,
            packets_sent: 4,
            retransmits: 5,
            user_us: 6,
            system_us: 7,
        };
        let written = figures.encode();
        assert_eq!(Message::decode(&written), Some(Message::Figures(figures)));
        assert_eq!(
            [&written[..56], &[&written[..], &[0]].concat(), &[END, 0]].map(Message::decode),
            [None, None, None]
        );
        let omitted = Omitted { sent: 7, received: 8 };
        assert_eq!(Message::decode(&end(omitted)), Some(Message::End(omitted)));
        assert_eq!(
            figures.plus(figures),
            Figures { received_bytes: 4, sent_bytes: 6, packets_sent: 8, retransmits: 10, ..figures }
        );
    }
}
