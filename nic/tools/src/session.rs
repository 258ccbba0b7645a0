//! A host on an interface for the length of a command, such as `spray send` or `spray tunnel`.
//!
//! | file | content |
//! |---|---|
//! | `host` | the host and its threads |
//! | `open` | the device that the command line asks for |
//! | `seat` | a shard of the host, and what its thread does |
//! | `path` | what is said of the path, and the settings of connections over it |
//! | `taken` | how packets get from the NIC to the endpoint and back |
//! | `trust` | keys, and the command that makes them |
//! | `tap` | a capture of the frames |

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
