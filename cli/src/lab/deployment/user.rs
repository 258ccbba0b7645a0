use std::fs;

use nix::unistd::{Uid, User};

/// Returns the name of the user who logged in, also after `sudo`.
pub fn login_name() -> String {
    let number = |text: String| text.trim().parse::<u32>().ok();
    // `u32::MAX` means unset, as in a container or a service.
    let login = fs::read_to_string("/proc/self/loginuid").ok().and_then(number).filter(|uid| *uid != u32::MAX);
    let uid = login.or_else(|| std::env::var("SUDO_UID").ok().and_then(number));
    let uid = uid.map_or_else(Uid::current, Uid::from_raw);
    User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name)
}
