//! XDP programs: loading them, attaching them, and the one that steers frames of the transport into AF_XDP sockets.
//!
//! [`Host::open`](crate::Host::open) does all of it for an interface. Programs of other objects are loaded by the same functions.

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
