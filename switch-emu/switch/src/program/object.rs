//! Finding and loading a compiled program.

use super::ProgramError;
use libbpf_rs::{Object, OpenObject, ProgramMut, libbpf_sys};
use spray_nic::xdp::{self, SteerProgram};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

#[derive(Clone, Copy)]
pub(super) struct Compiled<'a> {
    /// The name in errors.
    pub(super) name: &'static str,
    pub(super) bytes: &'a [u8],
}

/// The committed objects, built by `cargo xtask build-ebpf`.
pub(super) const SWITCH: Compiled<'_> =
    Compiled { name: "switch", bytes: include_bytes!("../../../../ebpf/objects/switch.o") };
pub(super) const STEER: Compiled<'_> = Compiled { name: "steer", bytes: SteerProgram::OBJECT };
pub(super) const CLOCK: Compiled<'_> =
    Compiled { name: "clock", bytes: include_bytes!("../../../../ebpf/objects/clock.o") };
pub(super) const HOST: Compiled<'_> =
    Compiled { name: "host", bytes: include_bytes!("../../../../ebpf/objects/host.o") };

pub(super) fn load(
    compiled: Compiled<'_>,
    prepare: impl FnOnce(&mut OpenObject) -> Result<(), ProgramError>,
) -> Result<Object, ProgramError> {
    xdp::load(compiled.name, compiled.bytes, prepare)
}

/// Disables all programs but those named.
pub(super) fn only(open: &mut OpenObject, programs: &[&str]) {
    for mut program in open.progs_mut() {
        let wanted = programs.iter().any(|name| program.name() == *name);
        program.set_autoload(wanted);
    }
}

/// Instructions that the verifier processed; 0 before Linux 5.16, which does not report it.
pub(super) fn verified_instructions(program: &ProgramMut<'_>) -> io::Result<u32> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut size = size_of_val(&info) as u32;
    // SAFETY: `info` is plain and outlives the call; its pointers are null with zero lengths.
    let code =
        unsafe { libbpf_sys::bpf_obj_get_info_by_fd(program.as_fd().as_raw_fd(), (&raw mut info).cast(), &mut size) };
    if code < 0 { Err(io::Error::from_raw_os_error(-code)) } else { Ok(info.verified_insns) }
}

/// Plain data, stored in maps as its bytes.
///
/// # Safety
/// The type must consist of integers, without padding.
pub(super) unsafe trait Pod: Copy {}

pub(super) fn pod_bytes<T: Pod>(value: &T) -> &[u8] {
    // SAFETY: `Pod` has no padding, so all its bytes are initialised; the lifetime is the value's.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// Returns the value of these bytes; `None` when the length differs.
pub(super) fn pod_from<T: Pod>(bytes: &[u8]) -> Option<T> {
    // SAFETY: any bytes are a value of a `Pod` type; the read needs no alignment.
    (bytes.len() == size_of::<T>()).then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}
