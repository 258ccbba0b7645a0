//! Domains, as the application knows them.
#![expect(unsafe_code, reason = "objects of C's")]

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::abi::*;
use crate::call::{self, call_int};
use crate::error::Errno;
use crate::shared::Domain;
use crate::{address, av, counter, cq, endpoint, messages, mr, object};

/// A domain, as the application knows it.
#[repr(C)]
struct DomainObject {
    head: fid_domain,
    domain: Arc<Domain>,
}

static FID: fi_ops = object::ops(close, object::no_bind, object::no_control);
static OPS: fi_ops_domain = fi_ops_domain {
    size: size_of::<fi_ops_domain>(),
    av_open,
    cq_open,
    endpoint: ep_open,
    scalable_ep: missing,
    cntr_open,
    poll_open: missing,
    stx_ctx: missing,
    srx_ctx: missing,
    query_atomic: missing,
    query_collective: missing,
    endpoint2: missing,
};

/// `fi_domain`.
pub(crate) unsafe extern "C" fn open(
    _fabric: *mut fid_fabric,
    info: *mut fi_info,
    to: *mut *mut fid_domain,
    context: *mut c_void,
) -> c_int {
    call_int(|| {
        // SAFETY: the application passes a `fi_info` of `getinfo`, and a place for the result; an object begins with its head.
        unsafe {
            let info = call::at(info)?;
            let name = call::text(call::at(info.domain_attr)?.name)?.ok_or(Errno::INVALID)?;
            let address = address::read(info.src_addr)?.ip();
            let domain = Domain::new(name.to_owned(), address);
            let head = fid_domain { fid: object::fid(FI_CLASS_DOMAIN, context, &FID), ops: &OPS, mr: &mr::OPS };
            call::open(DomainObject { head, domain: Arc::new(domain) }, to)
        }
    })
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: the application closes what `open` made.
    call_int(|| unsafe { call::close::<DomainObject>(fid) }.map(|_| 0))
}

/// The domain that the application means.
///
/// # Safety
/// `open` has made it, and the application has not closed it.
unsafe fn domain<'a>(domain: *mut fid_domain) -> Result<&'a Arc<Domain>, Errno> {
    // SAFETY: as the caller promises.
    unsafe { call::object::<DomainObject>(domain) }.map(|object| &object.domain)
}

unsafe extern "C" fn av_open(
    _domain: *mut fid_domain,
    attr: *mut fi_av_attr,
    to: *mut *mut fid_av,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the application passes attributes, or null, and a place for the result.
    call_int(|| unsafe { av::open(attr.as_ref(), to, context) })
}

unsafe extern "C" fn cq_open(
    at: *mut fid_domain,
    attr: *mut fi_cq_attr,
    to: *mut *mut fid_cq,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the application passes its domain, attributes, or null, and a place for the result.
    call_int(|| unsafe { cq::open(domain(at)?, attr.as_ref(), to, context) })
}

unsafe extern "C" fn cntr_open(
    at: *mut fid_domain,
    attr: *mut fi_cntr_attr,
    to: *mut *mut fid_cntr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the application passes its domain, attributes, or null, and a place for the result.
    call_int(|| unsafe { counter::open(domain(at)?, attr.as_ref(), to, context) })
}

unsafe extern "C" fn ep_open(
    at: *mut fid_domain,
    info: *mut fi_info,
    to: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the application passes its domain, a `fi_info` of `getinfo`, and a place for the result.
    call_int(|| unsafe {
        endpoint::open(domain(at)?, call::at(info)?, (&messages::MSG, &messages::TAGGED), to, context)
    })
}
