//! Information about loaded programs.

use std::ffi::c_char;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use libbpf_rs::libbpf_sys;

use super::{SteerProgram, object};

/// A program loaded by any process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramInfo {
    /// Program ID.
    pub id: u32,
    /// Program name; may be empty.
    pub name: String,
    /// Whether it is JIT-compiled, rather than interpreted.
    pub is_jited: bool,
}

impl ProgramInfo {
    /// Queries the program with this ID.
    ///
    /// # Errors
    /// `ENOENT` if there is none, `EPERM` without permission.
    pub fn from_id(id: u32) -> io::Result<Self> {
        // SAFETY: a plain number, and a returned descriptor is new.
        Self::by(unsafe { object::owned_fd(libbpf_sys::bpf_prog_get_fd_by_id(id)) }?.as_fd())
    }

    fn by(program: BorrowedFd<'_>) -> io::Result<Self> {
        // SAFETY: the structure is that of programs, and requests no instructions.
        let info: libbpf_sys::bpf_prog_info = unsafe { object::info(program) }?;
        Ok(Self { id: info.id, name: text(&info.name), is_jited: info.jited_prog_len > 0 })
    }
}

fn text(name: &[c_char]) -> String {
    name.iter().take_while(|&&byte| byte != 0).map(|&byte| char::from(byte as u8)).collect()
}

/// Returns whether the kernel JIT-compiles programs, by loading one; `None` if that fails.
pub fn jit_enabled() -> Option<bool> {
    let object = object::load::<super::ProgramError>("steer", SteerProgram::OBJECT, |_| Ok(())).ok()?;
    let program = object::program(&object, "steer").ok()?;
    ProgramInfo::by(program.as_fd()).ok().map(|info| info.is_jited)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loaded_program_is_identified_by_its_id() {
        if !spray_test_support::has_root() {
            return;
        }
        let object = object::load::<crate::xdp::ProgramError>("steer", SteerProgram::OBJECT, |_| Ok(())).unwrap();
        let own = ProgramInfo::by(object::program(&object, "steer").unwrap().as_fd()).unwrap();
        assert_eq!((ProgramInfo::from_id(own.id).unwrap(), own.name.as_str()), (own.clone(), "steer"));
        assert_eq!(jit_enabled(), Some(own.is_jited));
        assert!(ProgramInfo::from_id(u32::MAX).is_err());
    }
}
