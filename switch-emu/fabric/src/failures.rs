//! Failure files: which cables, switches and NICs fail how, as the REPS artifact's simulator reads them.
//!
//! Lines of `Key: value`, keys and values in any case, `#` starts a comment, times in ps. `docs/sim.md` lists every key.
//! [`FailureFile::events`] draws the victims from the seed and turns all of it into [`LinkEvent`](super::LinkEvent)s.
//! [`RandomFailure`]s, which scenarios have, are drawn along with them.

mod draw;
mod file;
mod outages;
mod random;
mod read;
mod ways;

pub use file::{DrawError, FailureFile};
pub use outages::FailureContext;
pub use random::{HowMany, Level, RandomFailure, Which};

#[cfg(test)]
mod tests;
