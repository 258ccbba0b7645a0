//! Keys of libraries that do not overwrite them.
#![expect(unsafe_code, reason = "a value that ends is overwritten, regardless of its type")]

use std::mem::{ManuallyDrop, MaybeUninit, needs_drop};
use std::ops::Deref;

use zeroize::zeroize_flat_type;

/// A value without anything on the heap, which is overwritten with zeros when it is dropped.
pub(super) struct Wiped<T>(ManuallyDrop<T>);

impl<T> Wiped<T> {
    pub(super) fn new(value: T) -> Self {
        const { assert!(!needs_drop::<T>(), "what owns nothing else has nothing to drop") };
        Self(ManuallyDrop::new(value))
    }
}

impl<T> Deref for Wiped<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Drop for Wiped<T> {
    fn drop(&mut self) {
        let place = (&raw mut self.0).cast::<MaybeUninit<T>>();
        // SAFETY: `place` is as large as the value, and all zeros are valid for a `MaybeUninit`. Nothing uses the value any more, not even
        // a destructor: it has none, and would not be called.
        unsafe { zeroize_flat_type(place) }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::ManuallyDrop;

    use crate::endpoint::seal::{Chain, Key, Secret};

    /// The bytes of a value before and after it was dropped.
    fn around_drop<T>(value: T) -> [Vec<u8>; 2] {
        let mut value = ManuallyDrop::new(value);
        let bytes = |value: &ManuallyDrop<T>| {
            let (start, length) = (std::ptr::from_ref(value).cast::<u8>(), size_of::<T>());
            // SAFETY: the value's memory is there until this function ends. Padding is read as whatever it is.
            (0..length).map(|at| unsafe { start.add(at).read_volatile() }).collect()
        };
        let before = bytes(&value);
        // SAFETY: it is not used afterwards; its bytes are.
        unsafe { ManuallyDrop::drop(&mut value) };
        [before, bytes(&value)]
    }

    #[test]
    fn keys_are_overwritten_when_they_end() {
        let mut chain = Chain(Secret::new([7; 32]));
        let key: Key = chain.next();
        let secret = *chain.0;
        let [before, after] = around_drop(key);
        assert!(before.iter().any(|&byte| byte != 0) && after.iter().all(|&byte| byte == 0));
        let [before, after] = around_drop(chain);
        assert!(before == secret && after == [0; 32]);
    }
}
