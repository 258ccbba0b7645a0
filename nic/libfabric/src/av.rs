//! Address vectors (`fid_av`). Maps and tables work alike: addresses are indices from 0 on.
#![expect(unsafe_code, reason = "objects of C's")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::Arc;

use crate::abi::*;
use crate::call::{self, call_int};
use crate::error::Errno;
use crate::peers::Peers;
use crate::{address, object};

#[repr(C)]
pub(crate) struct Av {
    head: fid_av,
    pub(crate) peers: Arc<Peers>,
}

static FID: fi_ops = object::plain_ops::<Av>();
static OPS: fi_ops_av = fi_ops_av {
    size: size_of::<fi_ops_av>(),
    insert,
    insertsvc,
    insertsym: missing,
    remove,
    lookup,
    straddr,
    av_set: missing,
};

pub(crate) unsafe extern "C" fn open(
    _domain: *mut fid_domain,
    attr: *mut fi_av_attr,
    to: *mut *mut fid_av,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the application passes attributes or null, and a place for the result; an `Av` begins with its head.
    call_int(|| unsafe {
        // Shared vectors, events and several receive contexts are not supported.
        if attr.as_ref().is_some_and(|attr| !attr.name.is_null() || attr.flags != 0 || attr.rx_ctx_bits != 0) {
            return Err(Errno::MISSING);
        }
        let head = fid_av { fid: object::fid(FI_CLASS_AV, context, &FID), ops: &OPS };
        call::open(Av { head, peers: Arc::default() }, to)
    })
}

unsafe extern "C" fn insert(
    av: *mut fid_av,
    addresses: *const c_void,
    count: usize,
    numbers: *mut fi_addr_t,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    call_int(|| {
        if flags & !(FI_MORE | FI_SYNC_ERR) != 0 {
            return Err(Errno::BAD_FLAGS);
        }
        let (mut at, mut inserted) = (addresses.cast::<u8>(), 0);
        for number in 0..count {
            // SAFETY: the application passes its vector, `count` consecutive addresses of the domain's IP version, and null or
            // space for `count` numbers; with `FI_SYNC_ERR`, also for `count` errors.
            unsafe {
                let read = address::read(at.cast());
                at = at.wrapping_add(address::bytes(read.is_ok_and(|address| address.is_ipv6())));
                inserted += i32::from(read.is_ok());
                if flags & FI_SYNC_ERR != 0 && !context.is_null() {
                    context.cast::<c_int>().add(number).write(if read.is_ok() { 0 } else { libc::EINVAL });
                }
                let peers = &call::object::<Av>(av)?.peers;
                let entry = read.map_or(FI_ADDR_NOTAVAIL, |address| peers.insert(address));
                if !numbers.is_null() {
                    numbers.add(number).write(entry);
                }
            }
        }
        Ok(inserted)
    })
}

unsafe extern "C" fn insertsvc(
    av: *mut fid_av,
    node: *const c_char,
    service: *const c_char,
    number: *mut fi_addr_t,
    flags: u64,
    _context: *mut c_void,
) -> c_int {
    call_int(|| {
        if flags & !FI_MORE != 0 {
            return Err(Errno::BAD_FLAGS);
        }
        // SAFETY: the application passes its vector, strings, and null or space for a number.
        unsafe {
            let node = call::text(node)?.ok_or(Errno::INVALID)?;
            let found = address::look_up(Some(node), call::text(service)?)?;
            let entry = call::object::<Av>(av)?.peers.insert(found);
            if !number.is_null() {
                number.write(entry);
            }
        }
        Ok(1)
    })
}

unsafe extern "C" fn remove(av: *mut fid_av, numbers: *mut fi_addr_t, count: usize, flags: u64) -> c_int {
    call_int(|| {
        if flags != 0 {
            return Err(Errno::BAD_FLAGS);
        }
        // SAFETY: the application passes its vector and `count` numbers.
        let (peers, numbers) = unsafe { (&call::object::<Av>(av)?.peers, call::slice(numbers.cast_const(), count)?) };
        let mut all = true;
        for &number in numbers {
            all &= peers.remove(number);
        }
        if all { Ok(0) } else { Err(Errno::INVALID) }
    })
}

unsafe extern "C" fn lookup(av: *mut fid_av, number: fi_addr_t, to: *mut c_void, room: *mut usize) -> c_int {
    // SAFETY: the application passes its vector, and space for `*room` bytes.
    call_int(|| unsafe {
        let peer = call::object::<Av>(av)?.peers.get(number).ok_or(Errno::INVALID)?;
        match address::write(peer, to, room) {
            // For this call a truncated address is not an error.
            Ok(()) | Err(Errno(FI_ETOOSMALL)) => Ok(0),
            Err(error) => Err(error),
        }
    })
}

unsafe extern "C" fn straddr(
    _av: *mut fid_av,
    from: *const c_void,
    to: *mut c_char,
    room: *mut usize,
) -> *const c_char {
    // SAFETY: the application passes an address, and space for `*room` bytes.
    unsafe {
        if let (Ok(address), false) = (address::read(from), room.is_null()) {
            let text = CString::new(address.to_string()).unwrap_or_default();
            let needed = text.as_bytes_with_nul().len();
            call::put_text(&text, to, room.replace(needed));
        }
    }
    to
}
