use spray_nic::xdp::{AttachMode, AttachedProgram};

use super::check::Check;
use super::subject::Subject;

pub(super) fn check(subject: &Subject) -> Check {
    let Some(id) = subject.interface.xdp_program else {
        return Check::ok("XDP program", "none: the interface is free");
    };
    let mode = match subject.interface.xdp_mode {
        Some(AttachMode::Native) => "native",
        Some(AttachMode::Generic) => "generic",
        _ => "attached",
    };
    let occupant = AttachedProgram::from_id(id);
    Check::fail("XDP program", format!("{mode}: {occupant}"), occupant.remedy(subject.name()))
}
