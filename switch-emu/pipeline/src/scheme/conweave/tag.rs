//! The tag of a frame: the second of a trail's further words. Its path and links are in the
//! [note](crate::scheme::note::ReunionNote).

/// The kind of a frame (Table 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// Not of ConWeave.
    #[default]
    Other,
    Data,
    /// The first packet of an epoch: RTT_REQUEST.
    Request,
    /// The last packet on the old path: TAIL.
    Tail,
    /// RTT_REPLY, a control frame.
    Reply,
    /// CLEAR, a control frame.
    Clear,
    /// NOTIFY, a control frame.
    Notify,
}

const KINDS: [Kind; 8] =
    [Kind::Other, Kind::Data, Kind::Request, Kind::Tail, Kind::Reply, Kind::Clear, Kind::Notify, Kind::Other];
const REROUTED: u64 = 1 << 3;
const EPOCH_SHIFT: u32 = 4;
const TAIL_SHIFT: u32 = 20;
/// Times of TAILs are in units of 2^10 ps.
const TAIL_UNIT: u32 = 10;

//= docs/specs/conweave.md#CWV-1 packet metadata
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) kind: Kind,
    /// Outgoing behind a TAIL on the new path: the paper's REROUTED.
    pub(super) rerouted: bool,
    /// Epoch of its flow, modulo 2^16.
    pub(super) epoch: u16,
    /// When the TAIL of its epoch was sent; 0: none.
    pub(super) tail_ps: u64,
}

impl Tag {
    pub(super) fn of(word: u64) -> Self {
        let kind = KINDS[(word & 7) as usize];
        let tail_ps = word >> TAIL_SHIFT << TAIL_UNIT;
        Self { kind, rerouted: word & REROUTED != 0, epoch: (word >> EPOCH_SHIFT) as u16, tail_ps }
    }

    pub(super) fn word(self) -> u64 {
        let rerouted = if self.rerouted { REROUTED } else { 0 };
        let tail = self.tail_ps >> TAIL_UNIT << TAIL_SHIFT;
        self.kind as u64 | rerouted | u64::from(self.epoch) << EPOCH_SHIFT | tail
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::assert_eq;

    //= docs/specs/conweave.md#CWV-1 packet metadata
    #[test]
    fn a_tag_fits_a_word() {
        for (number, kind) in KINDS.into_iter().enumerate().take(7) {
            assert_eq!(kind as usize, number);
            for rerouted in [false, true] {
                let tag = Tag { kind, rerouted, epoch: 0xfffe, tail_ps: 3_600_000_000_000_000 >> 10 << 10 };
                assert_eq!(Tag::of(tag.word()), tag);
                assert_eq!(Tag::of(Tag { tail_ps: tag.tail_ps + 1_023, ..tag }.word()), tag, "rounded down");
            }
        }
        assert_eq!(Tag::of(0), Tag::default());
    }
}
