//! Domains (`fid_domain`).
#![expect(unsafe_code, reason = "objects of C's")]

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::abi::*;
use crate::call::{self, call_int};
use crate::error::Errno;
use crate::messages::Messages;
use crate::shared::{Domain, DomainObject};
use crate::{address, av, counter, cq, endpoint, mr, object};

static FID: fi_ops = object::plain_ops::<DomainObject>();
static OPS: fi_ops_domain = fi_ops_domain {
    size: size_of::<fi_ops_domain>(),
    av_open: av::open,
    cq_open: cq::open,
    endpoint: endpoint::open::<Messages>,
    scalable_ep: missing,
    cntr_open: counter::open,
    rest: [missing; 6],
};

pub(crate) unsafe extern "C" fn open(
    _fabric: *mut fid_fabric,
    info: *mut fi_info,
    to: *mut *mut fid_domain,
    context: *mut c_void,
) -> c_int {
    call_int(|| {
        // SAFETY: the application passes a `fi_info` from `getinfo`, and a place for the result; an object begins with its head.
        unsafe {
            let info = call::at(info)?;
            let attr = call::at(info.domain_attr)?;
            let name = call::text(attr.name)?.ok_or(Errno::INVALID)?;
            let address = address::read(info.src_addr)?.ip();
            let domain = Domain::new(name.to_owned(), address, attr.mr_mode);
            let head = fid_domain { fid: object::fid(FI_CLASS_DOMAIN, context, &FID), ops: &OPS, mr: &mr::OPS };
            call::open(DomainObject { head, domain: Arc::new(domain) }, to)
        }
    })
}
