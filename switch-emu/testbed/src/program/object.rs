//! Finding, opening, loading and attaching a compiled program.

use super::ProgramError;
use libbpf_rs::{Object, ObjectBuilder, OpenObject, PrintLevel, ProgramMut, libbpf_sys};
use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Once;

mod embedded {
    include!(concat!(env!("OUT_DIR"), "/ebpf.rs"));
}

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

/// Opens, lets `prepare` size the maps, and loads.
pub(super) fn load(
    name: &'static str,
    prepare: impl FnOnce(&mut OpenObject) -> Result<(), ProgramError>,
) -> Result<Object, ProgramError> {
    load_bytes(name, bytes(name)?, prepare)
}

/// The object with this name, as it was built.
pub(super) fn bytes(name: &'static str) -> Result<&'static [u8], ProgramError> {
    let bytes = match name {
        "switch" => embedded::SWITCH,
        "steer" => embedded::STEER,
        "router" => embedded::ROUTER,
        _ => None,
    };
    bytes.ok_or(ProgramError::Missing(name))
}

/// As [`load`], of these bytes.
pub(super) fn load_bytes(
    name: &'static str,
    bytes: &[u8],
    prepare: impl FnOnce(&mut OpenObject) -> Result<(), ProgramError>,
) -> Result<Object, ProgramError> {
    capture_log();
    let failed = |source| ProgramError::Load { program: name, source, log: log_tail() };
    let mut open = ObjectBuilder::default().open_memory(bytes).map_err(failed)?;
    prepare(&mut open)?;
    open.load().map_err(failed)
}

/// Leaves out all programs but those named.
pub(super) fn only(open: &mut OpenObject, programs: &[&str]) {
    for mut program in open.progs_mut() {
        let wanted = programs.iter().any(|name| program.name() == *name);
        program.set_autoload(wanted);
    }
}

/// Instructions of a loaded program that the verifier followed; 0 before Linux 5.16, which does not tell.
pub(super) fn verified_instructions(program: &ProgramMut<'_>) -> io::Result<u32> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut size = size_of_val(&info) as u32;
    // SAFETY: `info` is a plain struct of `size` bytes that outlives the call; its pointers are null with zero lengths.
    let code =
        unsafe { libbpf_sys::bpf_obj_get_info_by_fd(program.as_fd().as_raw_fd(), (&raw mut info).cast(), &mut size) };
    if code < 0 { Err(io::Error::from_raw_os_error(-code)) } else { Ok(info.verified_insns) }
}

/// Attaches by a BPF link, native mode first. The link lasts as long as the returned descriptor.
pub(super) fn attach(program: BorrowedFd<'_>, ifindex: u32) -> Result<(OwnedFd, AttachMode), ProgramError> {
    const DRIVER: u32 = 1 << 2;
    const GENERIC: u32 = 1 << 1;
    match link(program, ifindex, DRIVER) {
        Ok(fd) => Ok((fd, AttachMode::Native)),
        Err(native) => link(program, ifindex, GENERIC)
            .map(|fd| (fd, AttachMode::Generic))
            .map_err(|generic| ProgramError::Attach { ifindex, native, generic }),
    }
}

fn link(program: BorrowedFd<'_>, ifindex: u32, flags: u32) -> io::Result<OwnedFd> {
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as _,
        flags,
        ..Default::default()
    };
    // SAFETY: `options` outlives the call, its `sz` is its size, and the call only reads it.
    let fd = unsafe { libbpf_sys::bpf_link_create(program.as_raw_fd(), ifindex as i32, libbpf_sys::BPF_XDP, &options) };
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the kernel has just handed out this descriptor and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Plain data, which a map holds as its bytes.
///
/// # Safety
/// The type must consist of integers, without padding.
pub(super) unsafe trait Pod: Copy {}

/// The bytes of a plain value.
pub(super) fn pod_bytes<T: Pod>(value: &T) -> &[u8] {
    // SAFETY: `Pod` has no padding, so all its bytes are initialised; the lifetime is the value's.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// The plain value that these bytes are; `None` when they are too few or too many.
pub(super) fn pod_from<T: Pod>(bytes: &[u8]) -> Option<T> {
    // SAFETY: `Pod` types are integers, so that any bytes are a value; the length is checked, and the read needs no
    // alignment.
    (bytes.len() == size_of::<T>()).then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}
