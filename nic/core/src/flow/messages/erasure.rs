//! Messages in an ideal erasure code: every arrival counts until there are enough.

use spray_wire::Data;

use super::{Placed, Reassembly};
use crate::loss::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::flow) enum Coded {
    /// Its message is complete, or the arrival cannot be judged yet.
    Duplicate,
    Rejected,
    Part,
    Complete(Span),
}

impl Reassembly {
    /// Takes an arrival, with a number that may be `filled`, given the receiver's numbers.
    //= docs/specs/erasure.md#ERA-2 packets counted for a message
    pub(in crate::flow) fn place_coded(&mut self, data: &Data, filled: bool, cumulative: u64, highest: u64) -> Coded {
        let end = data.offset.saturating_add(u64::from(data.payload_bytes));
        let Some((_, incoming)) = self.table.find(data.message) else {
            return match filled {
                true => Coded::Duplicate,
                false => self.place(data).into_coded(data),
            };
        };
        let sound = data.payload_bytes > 0 && end <= data.message_bytes && incoming.bytes == data.message_bytes;
        let is_judged = sound && !(filled && incoming.layout.unit == 0);
        let Some(layout) = incoming.layout_with(data, end).filter(|_| is_judged) else {
            return if filled { Coded::Duplicate } else { Coded::Rejected };
        };
        incoming.layout = layout;
        incoming.received = incoming.received.saturating_add(u64::from(data.payload_bytes));
        let span = Span::of(data, layout.unit);
        if incoming.received < incoming.bytes || !span.can_settle(cumulative, highest.max(data.psn + 1)) {
            return Coded::Part;
        }
        self.complete(data);
        Coded::Complete(span)
    }
}

impl Placed {
    /// Converts the first arrival of a message, which completes it only if it is all of it.
    fn into_coded(self, data: &Data) -> Coded {
        match self {
            Self::Rejected | Self::NoRoom => Coded::Rejected,
            Self::Part(_) => Coded::Part,
            Self::Complete(_) => Coded::Complete(Span::of(data, data.payload_bytes)),
        }
    }
}
