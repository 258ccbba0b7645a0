//! `spray up`, `down`, `shell` and `link`: a deployed fabric for any program. docs/deployment.md says what users see of it.
//!
//! | file | content |
//! |---|---|
//! | `up` | the command that begins it, and what is up |
//! | `keeper` | the process that keeps it |
//! | `ask` | what the commands ask it, and what it answers |
//! | `link` | links: their state, and what they have carried |
//! | `change` | changes of links, as they are written |
//! | `name` | names of fabrics |
//! | `lent` | containers and namespaces of others as hosts |
//! | `enter` | a shell or a command in a host |
//! | `user` | the user who works at this machine |
//! | `programs` | the programs in hosts |

mod ask;
mod change;
mod enter;
mod keeper;
mod lent;
mod link;
mod name;
mod programs;
mod up;
mod user;

pub use self::change::Change;
pub use self::enter::shell;
pub use self::lent::Guest;
pub use self::link::link;
pub use self::name::Name;
pub use self::up::{down, up};
