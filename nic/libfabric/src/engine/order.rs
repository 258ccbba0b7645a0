//! The order of one peer's messages: they arrive in any, and leave in that in which they were sent.

use std::collections::BTreeMap;

use bytes::Bytes;

/// The messages of a connection, by the numbers that its sender gave them.
///
/// The endpoint bounds how many wait, and their bytes: it takes none of the peer's any more until they are consumed.
#[derive(Debug, Default)]
pub struct Order {
    next: u32,
    early: BTreeMap<u32, Bytes>,
}

/// A number that was used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeated;

impl Order {
    /// Takes a message that arrived.
    ///
    /// # Errors
    /// [`Repeated`]
    pub fn put(&mut self, number: u32, message: Bytes) -> Result<(), Repeated> {
        let is_late = (number.wrapping_sub(self.next) as i32) < 0;
        if is_late || self.early.contains_key(&number) {
            return Err(Repeated);
        }
        self.early.insert(number, message);
        Ok(())
    }

    /// The next message, once it has arrived.
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
        fn messages_leave_in_their_order(first: u32, mut arrivals in Just((0..50u32).collect::<Vec<_>>()).prop_shuffle()) {
            let mut order = Order { next: first, early: BTreeMap::new() };
            let mut left = Vec::new();
            arrivals.retain(|arrival| {
                order.put(first.wrapping_add(*arrival), message(*arrival)).unwrap();
                assert_eq!(order.put(first.wrapping_add(*arrival), message(99)), Err(Repeated));
                left.extend(std::iter::from_fn(|| order.take()));
                false
            });
            prop_assert_eq!(left, (0..50).map(message).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_number_that_left_does_not_come_again() {
        let mut order = Order::default();
        order.put(0, message(0)).unwrap();
        assert_eq!(order.put(u32::MAX, message(1)), Err(Repeated));
        assert_eq!(order.take(), Some(message(0)));
        assert_eq!(order.put(0, message(0)), Err(Repeated));
        assert_eq!(order.take(), None);
    }
}
