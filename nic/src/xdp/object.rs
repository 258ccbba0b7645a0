//! Loads and attaches compiled programs.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Once;

use libbpf_rs::{Object, ObjectBuilder, OpenObject, PrintLevel, ProgramMut, libbpf_sys};

use super::ProgramError;

/// How a program is attached to an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachMode {
    /// In the driver.
    Native,
    /// In the generic path, which is slower.
    Generic,
}

thread_local! {
    /// Messages of libbpf on this thread since the last load began.
    static LOG: RefCell<String> = const { RefCell::new(String::new()) };
}

fn append_log(_: PrintLevel, text: String) {
    LOG.with_borrow_mut(|log| log.push_str(&text));
}

fn capture_log() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        libbpf_rs::set_print(Some((PrintLevel::Warn, append_log)));
    });
    LOG.with_borrow_mut(String::clear);
}

/// Returns the end of the log, which has the verifier's reason.
fn log_tail() -> String {
    const LINES: usize = 40;
    LOG.with_borrow(|log| {
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    })
}

/// Opens an object, calls `prepare` to size its maps, and loads it. `name` is for error messages.
///
/// # Errors
/// [`ProgramError::NotPermitted`], [`ProgramError::Load`], or an error of `prepare`.
pub fn load<E: From<ProgramError>>(
    name: &'static str,
    bytes: &[u8],
    prepare: impl FnOnce(&mut OpenObject) -> Result<(), E>,
) -> Result<Object, E> {
    capture_log();
    // EPERM only: EACCES, of the same kind, means that the verifier refuses the program.
    let failed = |source: libbpf_rs::Error| match source.to_string().contains("(os error 1)") {
        true => E::from(ProgramError::NotPermitted(name)),
        false => E::from(ProgramError::Load { program: name, source, log: log_tail() }),
    };
    let mut open = ObjectBuilder::default().open_memory(bytes).map_err(failed)?;
    prepare(&mut open)?;
    open.load().map_err(failed)
}

/// Returns the entry point of that name in a loaded object.
///
/// # Errors
/// [`ProgramError::Missing`].
pub fn program<'a>(object: &'a Object, name: &'static str) -> Result<ProgramMut<'a>, ProgramError> {
    object.progs_mut().find(|program| program.name() == name).ok_or(ProgramError::Missing(name))
}

/// A program attached to an interface, detached on drop.
#[derive(Debug)]
pub struct Attachment {
    link: OwnedFd,
    /// Attach mode.
    pub mode: AttachMode,
    /// Why the driver refused native mode, in the kernel's words.
    pub native_error: Option<String>,
}

impl Attachment {
    /// Returns whether the program is still attached: others may detach it or remove the interface.
    pub fn is_attached(&self) -> bool {
        // SAFETY: the structure is that of links, requests no text, and has numbers in its XDP
        // part.
        unsafe {
            info::<libbpf_sys::bpf_link_info>(self.link.as_fd())
                .map_or(true, |info| info.__bindgen_anon_1.xdp.ifindex != 0)
        }
    }
}

impl Drop for Attachment {
    /// Detaches at once. Closing the link would not, if another process has it open.
    fn drop(&mut self) {
        // SAFETY: a plain number. On failure the last descriptor detaches the program.
        unsafe { libbpf_sys::bpf_link_detach(self.link.as_raw_fd()) };
    }
}

/// Attaches a program to an interface of this thread's namespace by a BPF link, native mode first.
///
/// # Errors
/// [`ProgramError::Attach`], for instance for another program there or an MTU too large for XDP.
pub fn attach(program: BorrowedFd<'_>, ifindex: u32) -> Result<Attachment, ProgramError> {
    const DRIVER: u32 = 1 << 2;
    const GENERIC: u32 = 1 << 1;
    let native = match link(program, ifindex, DRIVER) {
        Ok(link) => return Ok(Attachment { link, mode: AttachMode::Native, native_error: None }),
        Err(error) => driver_message(program, ifindex).unwrap_or_else(|| error.to_string()),
    };
    link(program, ifindex, GENERIC)
        .map_err(|generic| ProgramError::Attach { ifindex, native: native.clone(), generic })
        .map(|link| Attachment { link, mode: AttachMode::Generic, native_error: Some(native) })
}

/// Returns the driver's reason, which links omit, but netlink reports and libbpf prints.
fn driver_message(program: BorrowedFd<'_>, ifindex: u32) -> Option<String> {
    const FLAGS: u32 = libbpf_sys::XDP_FLAGS_UPDATE_IF_NOEXIST | libbpf_sys::XDP_FLAGS_DRV_MODE;
    const PREFIX: &str = "Kernel error message: ";
    capture_log();
    // SAFETY: plain numbers; options may be null.
    let refused = unsafe { libbpf_sys::bpf_xdp_attach(ifindex as i32, program.as_raw_fd(), FLAGS, std::ptr::null()) };
    if refused == 0 {
        let flags = FLAGS & !libbpf_sys::XDP_FLAGS_UPDATE_IF_NOEXIST;
        // SAFETY: as above. The program was attached by the line above.
        unsafe { libbpf_sys::bpf_xdp_detach(ifindex as i32, flags, std::ptr::null()) };
    }
    LOG.with_borrow(|log| Some(log.rsplit_once(PREFIX)?.1.lines().next()?.trim().to_string()))
}

fn link(program: BorrowedFd<'_>, ifindex: u32, flags: u32) -> io::Result<OwnedFd> {
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as _,
        flags,
        ..Default::default()
    };
    // SAFETY: `options` outlives the call, which reads `sz` bytes of it; a returned descriptor is
    // new.
    unsafe { owned_fd(libbpf_sys::bpf_link_create(program.as_raw_fd(), ifindex as i32, libbpf_sys::BPF_XDP, &options)) }
}

/// Converts the result of libbpf to a descriptor or its error.
///
/// # Safety
/// Nothing else owns the descriptor.
pub(super) unsafe fn owned_fd(fd: i32) -> io::Result<OwnedFd> {
    // SAFETY: by contract.
    if fd < 0 { Err(io::Error::from_raw_os_error(-fd)) } else { Ok(unsafe { OwnedFd::from_raw_fd(fd) }) }
}

/// Queries information about a BPF object.
///
/// # Safety
/// `I` is the kernel's structure for these objects, whose default requests nothing by pointers.
pub(super) unsafe fn info<I: Default>(object: BorrowedFd<'_>) -> io::Result<I> {
    let mut info = I::default();
    let mut length = size_of::<I>() as u32;
    // SAFETY: `info` is live and of that length, and by contract what the kernel writes.
    let code =
        unsafe { libbpf_sys::bpf_obj_get_info_by_fd(object.as_raw_fd(), (&raw mut info).cast(), &raw mut length) };
    if code < 0 { Err(io::Error::from_raw_os_error(-code)) } else { Ok(info) }
}

/// Returns whether an interface of this thread's namespace has an XDP program; `None` if unknown.
pub(crate) fn is_attached(ifindex: u32) -> Option<bool> {
    let mut program = 0;
    // SAFETY: `program` is a live `u32`, which the call writes.
    let code = unsafe { libbpf_sys::bpf_xdp_query_id(ifindex as i32, 0, &raw mut program) };
    (code == 0).then_some(program != 0)
}
