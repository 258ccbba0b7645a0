//! XDP programs: loading, attaching, and the program that redirects spray frames to AF_XDP sockets.
//!
//! [`Host::open`](crate::Host::open) uses them for an interface; programs of other objects load
//! with the same functions.

mod error;
mod info;
mod object;
mod owner;
mod steer;

pub use error::ProgramError;
pub use info::{ProgramInfo, compiles};
pub use object::{AttachMode, Attachment, attach, load, program};
pub use owner::{Holder, Occupant, processes};
pub use steer::{SteerProgram, mapped};

pub(crate) use object::is_attached;
