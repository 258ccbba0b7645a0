//! Zeroes keys of libraries that do not do so.
#![expect(unsafe_code, reason = "a value that ends is overwritten, regardless of its type")]

use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::{Deref, DerefMut};

use zeroize::zeroize_flat_type;

/// A value that is zeroed when dropped, except for its heap memory, which is freed.
pub(in crate::endpoint) struct Zeroed<T>(ManuallyDrop<T>);

impl<T> Zeroed<T> {
    pub(in crate::endpoint) fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }
}

impl<T> Deref for Zeroed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Zeroed<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for Zeroed<T> {
    fn drop(&mut self) {
        // SAFETY: the value is not used afterwards; its memory is.
        unsafe { ManuallyDrop::drop(&mut self.0) };
        let place = (&raw mut self.0).cast::<MaybeUninit<T>>();
        // SAFETY: `place` is as large as the value, and all zeros are valid for a `MaybeUninit`. Nothing uses the value any more: its
        // destructor has run, and is not called again.
        unsafe { zeroize_flat_type(place) }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::ManuallyDrop;

    use super::Zeroed;
    use crate::endpoint::seal::noise;
    use crate::endpoint::seal::{Chain, Key, Secret};
    use crate::keys::{Keys, PrivateKey};
    use crate::x25519::X25519;

    /// Returns the bytes of a value before and after it was dropped.
    fn around_drop<T>(value: T) -> [Vec<u8>; 2] {
        let mut value = ManuallyDrop::new(value);
        let bytes = |value: &ManuallyDrop<T>| {
            let (start, length) = (std::ptr::from_ref(value).cast::<u8>(), size_of::<T>());
            // SAFETY: the value's memory stays allocated until this function ends. Padding may have
            // any content.
            (0..length).map(|at| unsafe { start.add(at).read_volatile() }).collect()
        };
        let before = bytes(&value);
        // SAFETY: the value is not used afterwards, only its bytes are read.
        unsafe { ManuallyDrop::drop(&mut value) };
        [before, bytes(&value)]
    }

    #[test]
    fn keys_are_overwritten_when_dropped() {
        let mut chain = Chain(Secret::new([7; 32]));
        let key: Key = chain.next();
        let secret = *chain.0;
        let [before, after] = around_drop(key);
        assert!(before.iter().any(|&byte| byte != 0) && after.iter().all(|&byte| byte == 0));
        let [before, after] = around_drop(chain);
        assert!(before == secret && after == [0; 32]);
    }

    #[test]
    fn an_exchange_is_overwritten_when_dropped() {
        let [own, peer] = [(); 2].map(|()| PrivateKey::generate().unwrap());
        let [before, after] = around_drop(X25519::new(&[7; 32]));
        assert!(before.windows(32).any(|bytes| bytes == [7; 32]) && after.windows(32).any(|bytes| bytes == [0; 32]));
        let keys = Keys::new(own, vec![peer.public()]).with_pre_shared(peer.clone());
        let [before, after] = around_drop(Zeroed::new(noise::initiator(&keys, &peer.public())));
        assert!(before.windows(32).any(|bytes| bytes == peer.bytes()) && after.iter().all(|&byte| byte == 0));
    }
}
