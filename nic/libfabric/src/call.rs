//! Helpers for calls from C.
#![expect(unsafe_code, reason = "the application hands over addresses")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::{FI_EOTHER, iovec};
use crate::error::Errno;

/// Returns the value or the negated error. A panic becomes `FI_EOTHER`: it must not unwind into C.
pub fn call<T: Into<i64>>(work: impl FnOnce() -> Result<T, Errno>) -> isize {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => value.into() as isize,
        Ok(Err(Errno(errno))) => -(errno as isize),
        Err(_) => -(FI_EOTHER as isize),
    }
}

/// As [`call`], for calls that return an `int`.
pub fn call_int<T: Into<i64>>(work: impl FnOnce() -> Result<T, Errno>) -> c_int {
    call(work) as c_int
}

/// Returns the value at an address, or an error if it is null.
///
/// # Safety
/// Unless null, the address is that of a `T`, which is neither changed nor freed during the
/// application's call.
pub unsafe fn at<'a, T>(address: *const T) -> Result<&'a T, Errno> {
    // SAFETY: as the caller promises.
    unsafe { address.as_ref() }.ok_or(Errno::INVALID)
}

/// Returns the object with the given head.
///
/// # Safety
/// Unless null, the address was returned by `open` for a `T`, and the application has not closed
/// it.
pub unsafe fn object<'a, T>(address: *mut impl Sized) -> Result<&'a T, Errno> {
    // SAFETY: as the caller promises; an opened object is only read.
    unsafe { at(address.cast_const().cast()) }
}

/// Moves an object to the heap and returns the address of its head to the application.
///
/// # Safety
/// `T` begins with a `B`, and `to`, unless null, is valid for writes.
pub unsafe fn open<T, B>(object: T, to: *mut *mut B) -> Result<c_int, Errno> {
    if to.is_null() {
        return Err(Errno::INVALID);
    }
    // SAFETY: `to` may be written to, as the caller promises.
    unsafe { to.write(Box::into_raw(Box::new(object)).cast()) };
    Ok(0)
}

/// Takes an object back, to be dropped.
///
/// # Safety
/// As for [`object`], and the application does not use it again.
pub unsafe fn close<T>(address: *mut impl Sized) -> Result<Box<T>, Errno> {
    if address.is_null() {
        return Err(Errno::INVALID);
    }
    // SAFETY: `open` created the address from a box of a `T`, and it is not used again, as the caller promises.
    Ok(unsafe { Box::from_raw(address.cast()) })
}

/// Returns the elements at an address; empty if `count` is 0.
///
/// # Safety
/// Unless null, there are `count` elements, which do not change during the application's call.
pub unsafe fn slice<'a, T>(address: *const T, count: usize) -> Result<&'a [T], Errno> {
    match (address.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Errno::INVALID),
        // SAFETY: as the caller promises.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(address, count) }),
    }
}

pub fn piece(at: *const c_void, bytes: usize) -> iovec {
    iovec { iov_base: at.cast_mut(), iov_len: bytes }
}

/// Returns the text at an address, or `None` if it is null.
///
/// # Safety
/// Unless null, the address is that of a C string, which does not change during the application's
/// call.
pub unsafe fn text<'a>(address: *const c_char) -> Result<Option<&'a str>, Errno> {
    if address.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(address) }.to_str().map(Some).map_err(|_| Errno::INVALID)
}

/// Copies the part of a text that fits, with a terminating zero.
///
/// # Safety
/// Unless null, `to` is valid for writes of `room` bytes.
pub unsafe fn put_text(text: &CStr, to: *mut c_char, room: usize) {
    let bytes = text.to_bytes();
    let Some(most) = room.checked_sub(1).filter(|_| !to.is_null()) else { return };
    let copied = bytes.len().min(most);
    // SAFETY: `copied + 1` is at most `room`, which may be written, as the caller promises.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), to, copied);
        to.add(copied).write(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_do_not_leave_a_call() {
        assert_eq!(call(|| -> Result<i32, _> { panic!("here") }), -256);
        assert_eq!((call(|| Ok(7)), call_int(|| Err::<i32, _>(Errno::AGAIN))), (7, -libc::EAGAIN));
    }

    #[test]
    fn texts_are_truncated_to_their_buffer() {
        for (room, expected) in [(9, c"text"), (5, c"text"), (3, c"te"), (1, c"")] {
            let mut to = [c_char::MAX; 9];
            // SAFETY: no length exceeds the array's, and the text is terminated by a zero.
            let written = unsafe {
                put_text(c"text", to.as_mut_ptr(), room);
                CStr::from_ptr(to.as_ptr())
            };
            assert_eq!(written, expected);
        }
        // SAFETY: nothing is written to a null pointer or with a length of zero.
        unsafe { (put_text(c"text", std::ptr::null_mut(), 9), put_text(c"text", std::ptr::dangling_mut(), 0)) };
    }
}
