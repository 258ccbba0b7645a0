//! `spray up`, `down`, `shell` and `link`: a deployed fabric for any program. docs/deployment.md says what users see of it.
//!
//! | file | content |
//! |---|---|
//! | `up` | the command that begins it, and what is up |
//! | `keeper` | the process that keeps it |
//! | `ask` | what the commands ask it, and what it answers |
//! | `link` | links: their state, and changes of it |
//! | `lent` | containers and namespaces of others as hosts |
//! | `enter` | a shell or a command in a host |
//! | `user` | who works at this machine, and which programs are in hosts |

mod ask;
mod enter;
mod keeper;
mod lent;
mod link;
mod up;
mod user;

pub use self::enter::shell;
pub use self::lent::Guest;
pub use self::link::{Change, link};
pub use self::up::{Name, down, up};
