//! A host on an interface for the duration of a command.

mod device_info;
mod freezes;
mod host;
mod mtu;
mod open;
mod path;
mod refused;
mod tap;
mod trust;
mod worker;

pub use self::device_info::DeviceInfo;
pub use self::freezes::Freezes;
#[cfg(test)]
pub(crate) use self::host::Outage;
pub use self::host::{Session, strays_line};
pub use self::path::PathOptions;
pub use self::trust::keygen;
pub use self::worker::{End, Step, Wake};
