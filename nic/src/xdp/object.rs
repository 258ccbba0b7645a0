//! Loading and attaching a compiled program.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Once;

use libbpf_rs::{Object, ObjectBuilder, OpenObject, PrintLevel, ProgramMut, libbpf_sys};

use super::ProgramError;

/// How a program sits on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachMode {
    /// In the driver.
    Native,
    /// In the generic path, slower: worth a warning.
    Generic,
}

thread_local! {
    /// What libbpf printed on this thread since the last load began.
    static LOG: RefCell<String> = const { RefCell::new(String::new()) };
}

fn keep(_: PrintLevel, text: String) {
    LOG.with_borrow_mut(|log| log.push_str(&text));
}

fn capture_log() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
    });
    LOG.with_borrow_mut(String::clear);
}

/// The end of the log, where the verifier says why it refuses.
fn log_tail() -> String {
    const LINES: usize = 40;
    LOG.with_borrow(|log| {
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    })
}

/// Opens an object, lets `prepare` size its maps, and loads it. `name` is what errors call it.
///
/// # Errors
/// [`ProgramError::NotPermitted`], [`ProgramError::Load`], or what `prepare` says.
pub fn load<E: From<ProgramError>>(
    name: &'static str,
    bytes: &[u8],
    prepare: impl FnOnce(&mut OpenObject) -> Result<(), E>,
) -> Result<Object, E> {
    capture_log();
    // EPERM: a program that the verifier refuses is EACCES, of the same kind.
    let failed = |source: libbpf_rs::Error| match source.to_string().contains("(os error 1)") {
        true => E::from(ProgramError::NotPermitted(name)),
        false => E::from(ProgramError::Load { program: name, source, log: log_tail() }),
    };
    let mut open = ObjectBuilder::default().open_memory(bytes).map_err(failed)?;
    prepare(&mut open)?;
    open.load().map_err(failed)
}

/// The entry point of a loaded object, by its name.
///
/// # Errors
/// [`ProgramError::Missing`].
pub fn program<'a>(object: &'a Object, name: &'static str) -> Result<ProgramMut<'a>, ProgramError> {
    object.progs_mut().find(|program| program.name() == name).ok_or(ProgramError::Missing(name))
}

/// A program on an interface, from which it goes when this is dropped.
#[derive(Debug)]
pub struct Attachment {
    link: OwnedFd,
    /// How it sits there.
    pub mode: AttachMode,
    /// Why the driver did not take it natively, in the kernel's words; `None` where it did.
    pub refusal: Option<String>,
}

impl Attachment {
    /// Whether the program is still there: `bpftool link detach` takes it off, and its interface may be removed.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        // SAFETY: the structure is that of links, and asks for no text; the link is one of XDP, and any number is valid there.
        unsafe {
            info::<libbpf_sys::bpf_link_info>(self.link.as_fd())
                .map_or(true, |info| info.__bindgen_anon_1.xdp.ifindex != 0)
        }
    }
}

impl Drop for Attachment {
    /// Takes the program off at once. Closing the link would not while somebody else has it open, as a program that lists links does.
    fn drop(&mut self) {
        // SAFETY: a plain number. What the kernel does not take off here goes with the last descriptor.
        unsafe { libbpf_sys::bpf_link_detach(self.link.as_raw_fd()) };
    }
}

/// Attaches a program to an interface of this thread's network namespace by a BPF link, native mode first.
///
/// # Errors
/// [`ProgramError::Attach`], for instance when another program sits there or the MTU is too large for XDP.
pub fn attach(program: BorrowedFd<'_>, ifindex: u32) -> Result<Attachment, ProgramError> {
    const DRIVER: u32 = 1 << 2;
    const GENERIC: u32 = 1 << 1;
    let native = match link(program, ifindex, DRIVER) {
        Ok(link) => return Ok(Attachment { link, mode: AttachMode::Native, refusal: None }),
        Err(error) => drivers_words(program, ifindex).unwrap_or_else(|| error.to_string()),
    };
    link(program, ifindex, GENERIC)
        .map_err(|generic| ProgramError::Attach { ifindex, native: native.clone(), generic })
        .map(|link| Attachment { link, mode: AttachMode::Generic, refusal: Some(native) })
}

/// What the driver says when it refuses a program: links lose its words, netlink brings them, and libbpf prints them.
fn drivers_words(program: BorrowedFd<'_>, ifindex: u32) -> Option<String> {
    const FLAGS: u32 = libbpf_sys::XDP_FLAGS_UPDATE_IF_NOEXIST | libbpf_sys::XDP_FLAGS_DRV_MODE;
    const SAID: &str = "Kernel error message: ";
    capture_log();
    // SAFETY: plain numbers; options may be null.
    let refused = unsafe { libbpf_sys::bpf_xdp_attach(ifindex as i32, program.as_raw_fd(), FLAGS, std::ptr::null()) };
    if refused == 0 {
        // SAFETY: as above. It was attached just now, by the line above.
        unsafe {
            libbpf_sys::bpf_xdp_detach(
                ifindex as i32,
                FLAGS & !libbpf_sys::XDP_FLAGS_UPDATE_IF_NOEXIST,
                std::ptr::null(),
            )
        };
    }
    LOG.with_borrow(|log| Some(log.rsplit_once(SAID)?.1.lines().next()?.trim().to_string()))
}

fn link(program: BorrowedFd<'_>, ifindex: u32, flags: u32) -> io::Result<OwnedFd> {
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as _,
        flags,
        ..Default::default()
    };
    // SAFETY: `options` outlives the call, its `sz` is its size, and the call only reads it; descriptors that it returns are new.
    unsafe { made(libbpf_sys::bpf_link_create(program.as_raw_fd(), ifindex as i32, libbpf_sys::BPF_XDP, &options)) }
}

/// The descriptor that libbpf made, or its error.
///
/// # Safety
/// Nobody else owns it.
pub(super) unsafe fn made(fd: i32) -> io::Result<OwnedFd> {
    // SAFETY: by contract.
    if fd < 0 { Err(io::Error::from_raw_os_error(-fd)) } else { Ok(unsafe { OwnedFd::from_raw_fd(fd) }) }
}

/// What the kernel tells of an object of BPF.
///
/// # Safety
/// `I` is the kernel's structure for objects of this kind, whose default asks for nothing by pointers.
pub(super) unsafe fn info<I: Default>(object: BorrowedFd<'_>) -> io::Result<I> {
    let mut info = I::default();
    let mut length = size_of::<I>() as u32;
    // SAFETY: `info` is live and of that length, and by contract what the kernel writes.
    let code =
        unsafe { libbpf_sys::bpf_obj_get_info_by_fd(object.as_raw_fd(), (&raw mut info).cast(), &raw mut length) };
    if code < 0 { Err(io::Error::from_raw_os_error(-code)) } else { Ok(info) }
}

/// Whether any XDP program sits on an interface of this thread's network namespace; `None` when the kernel does not tell.
pub(crate) fn is_attached(ifindex: u32) -> Option<bool> {
    let mut program = 0;
    // SAFETY: `program` is a live `u32`, which the call writes.
    let code = unsafe { libbpf_sys::bpf_xdp_query_id(ifindex as i32, 0, &raw mut program) };
    (code == 0).then_some(program != 0)
}
