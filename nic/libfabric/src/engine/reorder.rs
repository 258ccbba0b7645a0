use std::collections::BTreeMap;

use bytes::Bytes;

/// Messages of a connection in order. The endpoint bounds the number of those that wait.
#[derive(Debug, Default)]
pub struct ReorderBuffer {
    next: u32,
    early: BTreeMap<u32, Bytes>,
}

/// The peer violated the protocol; its connection must be aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolViolation;

impl ReorderBuffer {
    /// Adds a message that arrived. Fails if its number was used before.
    pub fn put(&mut self, number: u32, message: Bytes) -> Result<(), ProtocolViolation> {
        let is_late = (number.wrapping_sub(self.next) as i32) < 0;
        if is_late || self.early.contains_key(&number) {
            return Err(ProtocolViolation);
        }
        self.early.insert(number, message);
        Ok(())
    }

    /// Returns the next message in order, if it has arrived.
    pub fn take(&mut self) -> Option<Bytes> {
        let message = self.early.remove(&self.next)?;
        self.next = self.next.wrapping_add(1);
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(number: u32) -> Bytes {
        Bytes::copy_from_slice(&number.to_le_bytes())
    }

    proptest! {
        #[test]
        fn messages_are_delivered_in_order(first: u32, mut arrivals in Just((0..50u32).collect::<Vec<_>>()).prop_shuffle()) {
            let mut order = ReorderBuffer { next: first, early: BTreeMap::new() };
            let mut left = Vec::new();
            arrivals.retain(|arrival| {
                order.put(first.wrapping_add(*arrival), message(*arrival)).unwrap();
                assert_eq!(order.put(first.wrapping_add(*arrival), message(99)), Err(ProtocolViolation));
                left.extend(std::iter::from_fn(|| order.take()));
                false
            });
            prop_assert_eq!(left, (0..50).map(message).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_delivered_number_is_not_delivered_again() {
        let mut order = ReorderBuffer::default();
        order.put(0, message(0)).unwrap();
        assert_eq!(order.put(u32::MAX, message(1)), Err(ProtocolViolation));
        assert_eq!(order.take(), Some(message(0)));
        assert_eq!(order.put(0, message(0)), Err(ProtocolViolation));
        assert_eq!(order.take(), None);
    }
}
