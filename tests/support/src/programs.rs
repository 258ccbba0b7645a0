//! Manipulation of BPF programs of other processes.
#![expect(unsafe_code, reason = "it makes system calls that no library has")]

use std::fs;
use std::io;

use nix::errno::Errno;
use nix::libc;

/// Detaches every program that `process` attached with a BPF link, as `bpftool link detach` does.
/// Fails when the process cannot be read, or the kernel refuses.
pub fn detach_programs(process: u32) -> io::Result<()> {
    for entry in fs::read_dir(format!("/proc/{process}/fdinfo"))? {
        // A descriptor may have been closed.
        let Ok(text) = fs::read_to_string(entry?.path()) else { continue };
        let link = text.lines().find_map(|line| line.strip_prefix("link_id:")?.trim().parse().ok());
        link.map_or(Ok(()), detach)?;
    }
    Ok(())
}

fn detach(link: u32) -> io::Result<()> {
    const BPF_LINK_GET_FD_BY_ID: libc::c_long = 30;
    const BPF_LINK_DETACH: libc::c_long = 34;
    let descriptor = bpf(BPF_LINK_GET_FD_BY_ID, link)?;
    let detached = bpf(BPF_LINK_DETACH, descriptor);
    // SAFETY: the kernel has just returned the descriptor, which is used only here.
    unsafe { libc::close(descriptor as i32) };
    detached.map(drop)
}

/// Executes a BPF command with attributes that begin with one number.
fn bpf(command: libc::c_long, number: u32) -> io::Result<u32> {
    let attributes = [number, 0, 0, 0];
    // SAFETY: `attributes` outlives the call, which reads no more than its bytes.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), size_of_val(&attributes)) };
    Ok(Errno::result(result)? as u32)
}
