//! A host on an interface for the duration of a command.

mod freezes;
mod host;
mod mtu;
mod open;
mod path;
mod refused;
mod seat;
mod taken;
mod tap;
mod trust;

pub use self::freezes::Freezes;
#[cfg(test)]
pub(crate) use self::host::Outage;
pub use self::host::{Session, strays_line};
pub use self::path::PathOptions;
pub use self::seat::{End, Step, Wake};
pub use self::taken::Taken;
pub use self::trust::keygen;
