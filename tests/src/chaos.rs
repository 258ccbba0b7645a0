//! Transfers between two hosts while links, processes and the machine fail as a seed says.

mod machine;
mod network;
mod plan;
mod port;
mod run;
mod transfers;

pub use self::plan::{Episode, Event, Kind, episodes};
pub use self::run::{Figures, Run};
