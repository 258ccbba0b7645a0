//! Message header, little-endian: `F`, version 1, flags, five zeros; tag; completion data.

pub const BYTES: usize = 24;

const VERSION: [u8; 2] = [b'F', 1];
const TAGGED: u8 = 1;
const WITH_DATA: u8 = 2;
const REMOTE: u8 = 4;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    pub tag: Option<u64>,
    /// Data for the receiver's completion.
    pub data: Option<u64>,
    /// Whether an [`RmaHeader`](super::rma::RmaHeader) follows: an RMA message, which matches no receive.
    pub remote: bool,
}

impl Header {
    pub fn write(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..2].copy_from_slice(&VERSION);
        bytes[2] =
            self.tag.map_or(0, |_| TAGGED) | self.data.map_or(0, |_| WITH_DATA) | if self.remote { REMOTE } else { 0 };
        bytes[8..16].copy_from_slice(&self.tag.unwrap_or(0).to_le_bytes());
        bytes[16..].copy_from_slice(&self.data.unwrap_or(0).to_le_bytes());
        bytes
    }

    /// Returns `None` if the header is malformed or of another version.
    pub fn read(message: &[u8]) -> Option<Self> {
        let (bytes, _) = message.split_first_chunk::<BYTES>()?;
        let [first, version, kinds, rest @ ..] = bytes;
        if [*first, *version] != VERSION || kinds & !(TAGGED | WITH_DATA | REMOTE) != 0 || rest[..5] != [0; 5] {
            return None;
        }
        let number = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        let field = |bit: u8, at: usize| match (kinds & bit != 0, number(at)?) {
            (true, value) => Some(Some(value)),
            (false, 0) => Some(None),
            (false, _) => None,
        };
        Some(Self { tag: field(TAGGED, 8)?, data: field(WITH_DATA, 16)?, remote: kinds & REMOTE != 0 })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn headers_round_trip(tag: Option<u64>, data: Option<u64>, remote: bool, rest in prop::collection::vec(any::<u8>(), 0..40)) {
            let header = Header { tag, data, remote };
            let message = [&header.write()[..], &rest].concat();
            prop_assert_eq!(Header::read(&message), Some(header));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), begins: bool) {
            let mut bytes = bytes;
            if begins && bytes.len() > 8 {
                let kinds = bytes[2] % 8;
                bytes[..8].copy_from_slice(&[b'F', 1, kinds, 0, 0, 0, 0, 0]);
            }
            if let Some(header) = Header::read(&bytes) {
                prop_assert_eq!(&header.write()[..], &bytes[..BYTES]);
            }
        }
    }

    #[test]
    fn headers_of_other_versions_are_rejected() {
        let good = Header { tag: Some(1), ..Header::default() }.write();
        for (at, value) in [(0, b'G'), (1, 2), (2, 8), (2, 0), (3, 1), (7, 1), (16, 1)] {
            let mut bad = good;
            bad[at] = value;
            assert_eq!(Header::read(&bad), None, "{at}");
        }
        assert_eq!(Header::read(&good[..BYTES - 1]), None);
    }
}
