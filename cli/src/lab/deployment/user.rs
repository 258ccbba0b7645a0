//! The user who works at this machine.

use std::fs;

use nix::unistd::{Uid, User};

/// The name of the user who has logged in, also where `sudo` has made them root since.
pub fn own() -> String {
    let number = |text: String| text.trim().parse::<u32>().ok();
    // The kernel's word for nobody, as in a container or a service.
    let login = fs::read_to_string("/proc/self/loginuid").ok().and_then(number).filter(|uid| *uid != u32::MAX);
    let uid = login.or_else(|| std::env::var("SUDO_UID").ok().and_then(number));
    let uid = uid.map_or_else(Uid::current, Uid::from_raw);
    User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name)
}
