//! Calls that come from C.
#![expect(unsafe_code, reason = "the application hands over addresses")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::{FI_EOTHER, iovec};
use crate::error::Errno;

/// Runs what a call asks for. No panic leaves it: who calls knows none.
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

/// The value at an address, which may be null.
///
/// # Safety
/// Unless null, it is that of a `T`, which is not changed and does not end for as long as the application's call takes.
pub unsafe fn at<'a, T>(address: *const T) -> Result<&'a T, Errno> {
    // SAFETY: as the caller promises.
    unsafe { address.as_ref() }.ok_or(Errno::INVALID)
}

/// The object that begins with what the application has the address of.
///
/// # Safety
/// Unless null, `open` has made that address of a `T`, and the application has not closed it.
pub unsafe fn object<'a, T>(address: *mut impl Sized) -> Result<&'a T, Errno> {
    // SAFETY: as the caller promises; an object is only ever read once it is opened.
    unsafe { at(address.cast_const().cast()) }
}

/// Hands an object to the application, which knows its beginning.
///
/// # Safety
/// `T` begins with a `B`, and `to`, unless null, may be written to.
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
/// As for [`object`]; the application does not use it again.
pub unsafe fn close<T>(address: *mut impl Sized) -> Result<Box<T>, Errno> {
    if address.is_null() {
        return Err(Errno::INVALID);
    }
    // SAFETY: `open` made the address out of a box of a `T`, and nobody uses it again, as the caller promises.
    Ok(unsafe { Box::from_raw(address.cast()) })
}

/// The elements at an address; none where there are to be none.
///
/// # Safety
/// Unless null, there are `count` of them, which are not changed for as long as the application's call takes.
pub unsafe fn slice<'a, T>(address: *const T, count: usize) -> Result<&'a [T], Errno> {
    match (address.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Errno::INVALID),
        // SAFETY: as the caller promises.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(address, count) }),
    }
}

/// Memory that is in one piece.
pub fn piece(at: *const c_void, bytes: usize) -> iovec {
    iovec { iov_base: at.cast_mut(), iov_len: bytes }
}

/// The text at an address; `None` at null.
///
/// # Safety
/// Unless null, a string ends there with a zero, and is not changed for as long as the application's call takes.
pub unsafe fn text<'a>(address: *const c_char) -> Result<Option<&'a str>, Errno> {
    if address.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(address) }.to_str().map(Some).map_err(|_| Errno::INVALID)
}

/// Copies as much of a text as there is room for, with its end.
///
/// # Safety
/// Unless null, `room` bytes may be written at `to`.
pub unsafe fn put_text(text: &CStr, to: *mut c_char, room: usize) {
    let bytes = text.to_bytes();
    let Some(most) = room.checked_sub(1).filter(|_| !to.is_null()) else { return };
    let copied = bytes.len().min(most);
    // SAFETY: `copied` and one more are no more than `room`, which may be written, as the caller promises.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), to, copied);
        to.add(copied).write(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_panic_leaves_a_call() {
        assert_eq!(call(|| -> Result<i32, _> { panic!("here") }), -256);
        assert_eq!((call(|| Ok(7)), call_int(|| Err::<i32, _>(Errno::AGAIN))), (7, -libc::EAGAIN));
    }

    #[test]
    fn texts_are_cut_to_their_room() {
        for (room, expected) in [(9, c"text"), (5, c"text"), (3, c"te"), (1, c"")] {
            let mut to = [c_char::MAX; 9];
            // SAFETY: no room is longer than the array, and a zero is written into it.
            let written = unsafe {
                put_text(c"text", to.as_mut_ptr(), room);
                CStr::from_ptr(to.as_ptr())
            };
            assert_eq!(written, expected);
        }
        // SAFETY: nothing is written to null, or without room.
        unsafe { (put_text(c"text", std::ptr::null_mut(), 9), put_text(c"text", std::ptr::dangling_mut(), 0)) };
    }
}
