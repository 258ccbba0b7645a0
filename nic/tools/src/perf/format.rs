//! What the two sides say to each other: the first byte of a message is its kind.

use bytes::Bytes;

use super::MOST_BYTES;

/// Begins every connection: what the client asks for. Then come the version and the fields of [`Request`].
const REQUEST: u8 = 1;
/// Payload, of which only the amount counts.
const DATA: u8 = 2;
/// Comes back as it went.
const PING: u8 = 3;
const VERSION: u8 = 1;
/// Bytes of a request: kind, version, what, message bytes, seconds.
const REQUEST_BYTES: usize = 11;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The client sends.
    Up,
    /// The server sends.
    Down,
    /// Both do.
    Both,
    /// Messages go there and back, one at a time.
    Latency,
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub what: What,
    /// Size of a message that the server sends.
    pub bytes: u32,
    /// How long the server sends at most.
    pub seconds: u32,
}

const ALL: [What; 4] = [What::Up, What::Down, What::Both, What::Latency];

impl Request {
    pub fn encode(self) -> Bytes {
        let what = ALL.iter().position(|what| *what == self.what).unwrap_or_default() as u8;
        let mut message = vec![REQUEST, VERSION, what];
        message.extend(self.bytes.to_be_bytes());
        message.extend(self.seconds.to_be_bytes());
        message.into()
    }

    fn decode(message: &[u8]) -> Option<Self> {
        let message: &[u8; REQUEST_BYTES] = message.try_into().ok()?;
        let [REQUEST, VERSION, what, b0, b1, b2, b3, s0, s1, s2, s3] = *message else { return None };
        let bytes = u32::from_be_bytes([b0, b1, b2, b3]);
        let seconds = u32::from_be_bytes([s0, s1, s2, s3]);
        let what = *ALL.get(usize::from(what))?;
        (1..=MOST_BYTES).contains(&bytes).then_some(Self { what, bytes, seconds })
    }
}

/// A message.
#[derive(Debug, PartialEq, Eq)]
pub enum Message {
    Request(Request),
    Data,
    Ping,
}

impl Message {
    /// `None` for what neither side says.
    pub fn decode(message: &[u8]) -> Option<Self> {
        match *message.first()? {
            REQUEST => Request::decode(message).map(Self::Request),
            DATA => Some(Self::Data),
            PING => Some(Self::Ping),
            _ => None,
        }
    }
}

/// A message of so many bytes that carries nothing.
pub fn data(bytes: u32) -> Bytes {
    filled(DATA, bytes)
}

/// A message of so many bytes that the other side sends back.
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

    #[test]
    fn a_request_is_read_as_it_was_written_and_nothing_else_is_one() {
        for what in ALL {
            let request = Request { what, bytes: 1 << 20, seconds: 10 };
            assert_eq!(Message::decode(&request.encode()), Some(Message::Request(request)));
        }
        let good = Request { what: What::Up, bytes: 64, seconds: 1 }.encode();
        for (at, byte) in [(0, 9), (1, 2), (2, 4), (3, 0xff)] {
            let mut bad = good.to_vec();
            bad[at] = byte;
            assert_eq!(Message::decode(&bad), None, "byte {at}");
        }
        let none = Request { what: What::Up, bytes: 0, seconds: 1 }.encode();
        assert!(
            Message::decode(&good[..10]).is_none()
                && Message::decode(&none).is_none()
                && Message::decode(&[]).is_none()
        );
        assert_eq!((Message::decode(&data(1)), Message::decode(&ping(64))), (Some(Message::Data), Some(Message::Ping)));
    }
}
