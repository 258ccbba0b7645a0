//! The NACK of trimming: the receiver says which packet a switch cut to its header, and the packet is lost at once
//! (REPS §4.1, Ultra Ethernet).

use super::Record;

/// Whether a NACK is about the packet's present transmission, by the timestamp of the trimmed frame. It is not if the
/// packet was declared lost or sent again since.
//= docs/specs/transport.md#TRN-36 trimmed packets
#[inline]
pub fn is_current(record: Option<&Record>, timestamp_echo_ps: u64) -> bool {
    record.is_some_and(|record| record.is_outstanding() && record.sent_ps == timestamp_echo_ps)
}
