//! Trimming's NACK: the receiver says which packet a switch cut to its header (REPS §4.1, Ultra Ethernet), and the packet is
//! lost at once.

use super::Record;

/// Whether news of a trim is of the packet's present transmission, by the timestamp that the trimmed frame carried: a packet
/// sent again since, or declared lost, is another matter.
//= docs/specs/transport.md#TRN-36 trimmed packets
#[inline]
pub fn is_current(record: Option<&Record>, timestamp_echo_ps: u64) -> bool {
    record.is_some_and(|record| record.is_outstanding() && record.sent_ps == timestamp_echo_ps)
}
