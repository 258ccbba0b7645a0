//! XDP programs: loading, attaching, and the program that redirects spray frames to AF_XDP sockets.
//!
//! [`Host::open`](crate::Host::open) uses them for an interface; programs of other objects load
//! with the same functions.

mod attached;
mod error;
mod info;
mod object;
mod steer;

pub use attached::{AttachedProgram, Holder, processes};
pub use error::ProgramError;
pub use info::{ProgramInfo, jit_enabled};
pub use object::{AttachMode, Attachment, attach, load, program};
pub use steer::{SteerProgram, v6_mapped};

pub(crate) use object::is_attached;
