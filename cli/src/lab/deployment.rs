//! `spray up`, `down`, `shell` and `link`: a deployed fabric; see docs/deployment.md.
//!
//! | file | content |
//! |---|---|
//! | `up` | `spray up` and `spray down` |
//! | `daemon` | the process that keeps the fabric |
//! | `protocol` | requests to that process, and its responses |
//! | `link` | link state and counters |
//! | `change` | syntax of link changes |
//! | `name` | names of fabrics |
//! | `external_hosts` | existing containers and namespaces as hosts |
//! | `enter` | a shell or a command in a host |
//! | `user` | the user of this machine |
//! | `programs` | the programs in hosts |

mod change;
mod daemon;
mod enter;
mod external_hosts;
mod link;
mod name;
mod programs;
mod protocol;
mod up;
mod user;

pub use self::change::Change;
pub use self::enter::shell;
pub use self::external_hosts::ExternalHost;
pub use self::link::link;
pub use self::name::Name;
pub use self::up::{down, up};
