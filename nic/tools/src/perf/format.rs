//! Messages between client and server. The first byte is the type; control messages are JSON.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::MOST_BYTES;
use crate::transfer::gbps;

const DATA: u8 = 2;
const PING: u8 = 3;
/// Includes the version.
const CONTROL: u8 = b'6';
/// More than any control message has.
const MOST_CONTROL_BYTES: usize = 1024;
/// More than a day.
const MOST_SECONDS: u32 = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    Up,
    Down,
    Both,
    Latency,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    pub what: What,
    pub bytes: u32,
    pub seconds: u32,
    /// 0 for no limit.
    pub rate_bps: u64,
}

impl Request {
    fn is_valid(&self) -> bool {
        (1..=MOST_BYTES).contains(&self.bytes) && self.seconds <= MOST_SECONDS
    }
}

/// Counters of the server, without protocol messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    Request(Request),
    /// The server answers with its figures.
    End,
    Figures(Figures),
    #[serde(skip)]
    Data,
    #[serde(skip)]
    Ping,
}

impl Message {
    /// Encodes a control message.
    pub fn encode(&self) -> Bytes {
        let mut message = vec![CONTROL];
        serde_json::to_writer(&mut message, self).expect("it has numbers only");
        message.into()
    }

    pub fn decode(message: &[u8]) -> Option<Self> {
        match *message.first()? {
            DATA => Some(Self::Data),
            PING => Some(Self::Ping),
            CONTROL if message.len() <= MOST_CONTROL_BYTES => match serde_json::from_slice(&message[1..]).ok()? {
                Self::Request(request) if !request.is_valid() => None,
                control => Some(control),
            },
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

fn filled(kind: u8, bytes: u32) -> Bytes {
    let mut message = vec![0xa5; bytes as usize];
    message[0] = kind;
    message.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(what: What) -> Request {
        Request { what, bytes: 1 << 20, seconds: 10, rate_bps: 7 }
    }

    #[test]
    fn control_messages_are_read_as_they_were_written() {
        let figures = Figures { elapsed_us: u64::MAX, received_bytes: 2, user_us: 6, ..Figures::default() };
        let requests = [What::Up, What::Down, What::Both, What::Latency].map(|what| Message::Request(request(what)));
        for message in requests.into_iter().chain([Message::Figures(figures), Message::End]) {
            assert_eq!(Message::decode(&message.encode()), Some(message));
        }
        assert_eq!((Message::decode(&data(1)), Message::decode(&ping(64))), (Some(Message::Data), Some(Message::Ping)));
        let most = u64::MAX;
        let (sent_bytes, packets_sent, retransmits, system_us) = (most, most, most, most);
        let longest = Figures {
            received_bytes: most,
            sent_bytes,
            packets_sent,
            retransmits,
            user_us: most,
            system_us,
            ..figures
        };
        assert!(Message::Figures(longest).encode().len() < MOST_CONTROL_BYTES);
    }

    #[test]
    fn anything_else_is_no_message() {
        let good = request(What::Up);
        for bad in [
            Request { bytes: 0, ..good },
            Request { bytes: MOST_BYTES + 1, ..good },
            Request { seconds: MOST_SECONDS + 1, ..good },
        ] {
            assert_eq!(Message::decode(&Message::Request(bad).encode()), None, "{bad:?}");
        }
        let good = Message::Request(good).encode();
        let long = [&good[..], &[b' '; MOST_CONTROL_BYTES]].concat();
        let fewer = [b"6", &br#"{"Request":{"what":"Up"}}"#[..]].concat();
        for bad in [&[][..], &[CONTROL], &[9], b"4{}", b"6\"Data\"", &good[..good.len() - 1], &long, &fewer] {
            assert_eq!(Message::decode(bad), None, "{}", String::from_utf8_lossy(bad));
        }
    }

    #[test]
    fn figures_add_up() {
        let figures = Figures {
            elapsed_us: 1,
            received_bytes: 2,
            sent_bytes: 3,
            packets_sent: 4,
            retransmits: 5,
            user_us: 6,
            system_us: 7,
        };
        assert_eq!(
            figures.plus(figures),
            Figures { received_bytes: 4, sent_bytes: 6, packets_sent: 8, retransmits: 10, ..figures }
        );
    }
}
