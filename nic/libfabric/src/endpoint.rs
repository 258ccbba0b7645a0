//! Endpoints (`fid_ep`).
#![expect(unsafe_code, reason = "objects of C's")]

use std::ffi::{c_int, c_void};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::abi::*;
use crate::av::Av;
use crate::call::{self, call, call_int};
use crate::counter::Counter;
use crate::cq::Cq;
use crate::direction::Direction;
use crate::engine::{Bindings, Engine};
use crate::error::Errno;
use crate::peers::Peers;
use crate::progress::Progress;
use crate::queue::Count;
use crate::settings::Settings;
use crate::shared::Domain;
use crate::{address, log, object, open as interface, shared};

#[repr(C)]
pub(crate) struct Ep {
    head: fid_ep,
    pub(crate) domain: Arc<Domain>,
    caps: u64,
    state: Mutex<State>,
    /// Minimum free space of a multi-receive buffer in bytes; below it the buffer is released.
    least_room: AtomicUsize,
}

#[derive(Debug)]
struct State {
    port: u16,
    peers: Option<Arc<Peers>>,
    sends: Direction,
    receives: Direction,
    remotes: Direction,
    /// Set while the endpoint is enabled.
    progress: Option<Progress>,
}

static FID: fi_ops = object::ops(close, bind, control);
static OPS: fi_ops_ep = fi_ops_ep { size: size_of::<fi_ops_ep>(), cancel, getopt, setopt, rest: [missing; 4] };
static CM: fi_ops_cm = fi_ops_cm { size: size_of::<fi_ops_cm>(), setname, getname, rest: [missing; 7] };
static NOTHING: fi_ops_missing = fi_ops_missing { size: size_of::<fi_ops_missing>(), all: [missing; 16] };

/// Default of [`Ep::least_room`].
const LEAST_ROOM: usize = 64;

/// The calls that send and receive. A trait, because `messages` depends on this module.
pub(crate) trait Calls {
    const MSG: &'static fi_ops_msg;
    const TAGGED: &'static fi_ops_tagged;
    const RMA: &'static fi_ops_rma;
}

pub(crate) unsafe extern "C" fn open<C: Calls>(
    domain: *mut fid_domain,
    info: *mut fi_info,
    to: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the application passes its domain, a `fi_info` from `getinfo`, and a place for the result; an `Ep` begins with its head.
    call_int(|| unsafe {
        let info = call::at(info)?;
        let side = |flags| Direction { flags, ..Direction::default() };
        let sends = side(info.tx_attr.as_ref().map_or(0, |tx| tx.op_flags));
        let receives = side(info.rx_attr.as_ref().map_or(0, |rx| rx.op_flags));
        let port = address::read(info.src_addr)?.port();
        let remotes = sends.clone();
        let state = Mutex::new(State { port, peers: None, sends, receives, remotes, progress: None });
        let head = fid_ep {
            fid: object::fid(FI_CLASS_EP, context, &FID),
            ops: &OPS,
            cm: &CM,
            msg: C::MSG,
            rma: C::RMA,
            tagged: C::TAGGED,
            atomic: &NOTHING,
            collective: &NOTHING,
        };
        call::open(
            Ep { head, domain: shared::domain_of(domain)?, caps: info.caps, state, least_room: LEAST_ROOM.into() },
            to,
        )
    })
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    call_int(|| {
        // SAFETY: the application closes what `open` returned.
        let ep = unsafe { call::close::<Ep>(fid)? };
        if let Some(progress) = ep.state()?.progress.take() {
            drop(progress);
            // Frees the place of the engine before it lingers.
            let engine = ep.domain.engine()?.take();
            engine.into_iter().for_each(Engine::close);
        }
        Ok(0)
    })
}

unsafe extern "C" fn bind(fid: *mut fid, bound: *mut fid, flags: u64) -> c_int {
    // SAFETY: the application passes its endpoint, and another of its objects, with its kind in `fclass`.
    call_int(|| unsafe {
        let ep = call::object::<Ep>(fid)?;
        let mut state = ep.state()?;
        if state.progress.is_some() {
            return Err(Errno::BAD_STATE);
        }
        match call::at(bound.cast_const())?.fclass {
            FI_CLASS_AV => state.peers = Some(Arc::clone(&call::object::<Av>(bound)?.peers)),
            FI_CLASS_CQ => {
                let cq = call::object::<Cq>(bound)?;
                ep.check_domain(&cq.domain)?;
                state.each(flags, |side| {
                    side.queue = Some(Arc::clone(&cq.queue));
                    side.is_selective = flags & FI_SELECTIVE_COMPLETION != 0;
                })?;
            }
            FI_CLASS_CNTR => {
                let counter = call::object::<Counter>(bound)?;
                ep.check_domain(&counter.domain)?;
                state.count(flags, &counter.count)?;
            }
            FI_CLASS_EQ => {}
            _ => return Err(Errno::INVALID),
        }
        Ok(0)
    })
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, _argument: *mut c_void) -> c_int {
    // SAFETY: the application passes its endpoint.
    call_int(|| match (command, unsafe { call::object::<Ep>(fid)? }) {
        (FI_ENABLE, ep) => ep.enable().map(|()| 0),
        _ => Err(Errno::MISSING),
    })
}

impl State {
    fn count(&mut self, flags: u64, count: &Arc<Count>) -> Result<(), Errno> {
        // Accesses by peers are not counted.
        if flags & (FI_REMOTE_READ | FI_REMOTE_WRITE) != 0 {
            return Err(Errno::MISSING);
        }
        if flags & (FI_READ | FI_WRITE) != 0 {
            self.remotes.count = Some(Arc::clone(count));
        }
        match flags & !(FI_READ | FI_WRITE) {
            0 if flags != 0 => Ok(()),
            others => self.each(others, |side| side.count = Some(Arc::clone(count))),
        }
    }

    fn each(&mut self, flags: u64, work: impl Fn(&mut Direction)) -> Result<(), Errno> {
        if flags & !(FI_SEND | FI_RECV | FI_SELECTIVE_COMPLETION) != 0 || flags & (FI_SEND | FI_RECV) == 0 {
            return Err(Errno::BAD_FLAGS);
        }
        [(FI_SEND, &mut self.sends), (FI_RECV, &mut self.receives)]
            .into_iter()
            .filter(|(bit, _)| flags & bit != 0)
            .for_each(|(_, side)| work(side));
        Ok(())
    }
}

impl Ep {
    pub(crate) fn least_room(&self) -> usize {
        self.least_room.load(Ordering::Relaxed)
    }

    fn state(&self) -> Result<MutexGuard<'_, State>, Errno> {
        self.state.lock().map_err(|_| Errno(FI_EOTHER))
    }

    fn check_domain(&self, other: &Arc<Domain>) -> Result<(), Errno> {
        if Arc::ptr_eq(&self.domain, other) { Ok(()) } else { Err(Errno::INVALID) }
    }

    fn enable(&self) -> Result<(), Errno> {
        let mut state = self.state()?;
        if state.progress.is_some() {
            return Err(Errno::BAD_STATE);
        }
        let is_bound = |side: &Direction| side.queue.is_some() || side.count.is_some();
        if !is_bound(&state.sends) || !is_bound(&state.receives) {
            return Err(Errno(FI_ENOCQ));
        }
        let bindings = Bindings {
            peers: Arc::clone(state.peers.as_ref().ok_or(Errno::BAD_STATE)?),
            sends: state.sends.clone(),
            receives: state.receives.clone(),
            // Uses the completion queue of sends.
            remotes: Direction { count: state.remotes.count.clone(), ..state.sends.clone() },
            regions: Arc::clone(&self.domain.regions),
            reports_source: self.caps & FI_SOURCE != 0,
            is_directed: self.caps & FI_DIRECTED_RECV != 0,
            context: self.head.fid.context.addr(),
        };
        let mut engine = self.domain.engine()?;
        if engine.is_some() {
            log::warn(format!("{} has an endpoint already; it takes one", self.domain.interface));
            return Err(Errno(libc::EBUSY));
        }
        let opened = interface::open(&self.domain.interface, self.domain.address, &Settings::read()?, bindings)?;
        let progress = Progress::start(&self.domain).map_err(|_| Errno(libc::EAGAIN))?;
        *engine = Some(opened);
        state.progress = Some(progress);
        Ok(())
    }
}

unsafe extern "C" fn getname(fid: *mut fid, to: *mut c_void, room: *mut usize) -> c_int {
    // SAFETY: the application passes its endpoint, and space for `*room` bytes.
    call_int(|| unsafe {
        let ep = call::object::<Ep>(fid)?;
        let own = SocketAddr::new(ep.domain.address, ep.state()?.port);
        address::write(own, to, room).map(|()| 0)
    })
}

/// Only the port may differ.
unsafe extern "C" fn setname(fid: *mut fid, from: *mut c_void, _len: usize) -> c_int {
    // SAFETY: the application passes its endpoint and an address.
    call_int(|| unsafe {
        let (ep, name) = (call::object::<Ep>(fid)?, address::read(from)?);
        let mut state = ep.state()?;
        if name.ip() != ep.domain.address || state.progress.is_some() {
            return Err(Errno(libc::EADDRNOTAVAIL));
        }
        state.port = name.port();
        Ok(0)
    })
}

unsafe extern "C" fn cancel(fid: *mut fid, context: *mut c_void) -> isize {
    // SAFETY: the application passes its endpoint.
    call(|| unsafe {
        let found = call::object::<Ep>(fid)?.domain.with(|engine| Ok(engine.cancel(context.addr())))?;
        if found { Ok(0) } else { Err(Errno(libc::ENOENT)) }
    })
}

/// Accepts only the option for [`Ep::least_room`].
fn check_option(level: c_int, name: c_int, len: usize) -> Result<(), Errno> {
    match (level, name) {
        (FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV) if len >= size_of::<usize>() => Ok(()),
        (FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV) => Err(Errno(FI_ETOOSMALL)),
        _ => Err(Errno(libc::ENOPROTOOPT)),
    }
}

unsafe extern "C" fn getopt(fid: *mut fid, level: c_int, name: c_int, to: *mut c_void, room: *mut usize) -> c_int {
    // SAFETY: the application passes its endpoint, and space for `*room` bytes.
    call_int(|| unsafe {
        let ep = call::object::<Ep>(fid)?;
        check_option(level, name, *call::at(room)?)?;
        to.cast::<usize>().write_unaligned(ep.least_room());
        room.write(size_of::<usize>());
        Ok(0)
    })
}

unsafe extern "C" fn setopt(fid: *mut fid, level: c_int, name: c_int, from: *const c_void, len: usize) -> c_int {
    // SAFETY: the application passes its endpoint, and `len` bytes.
    call_int(|| unsafe {
        let ep = call::object::<Ep>(fid)?;
        check_option(level, name, len)?;
        ep.least_room.store(from.cast::<usize>().read_unaligned(), Ordering::Relaxed);
        Ok(0)
    })
}
