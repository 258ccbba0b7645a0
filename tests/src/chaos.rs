//! Transfers between two hosts while links, processes and the machine fail at random, determined by
//! a seed.

mod machine;
mod network;
mod plan;
mod port;
mod run;
mod transfers;

pub use self::plan::{Episode, Event, Kind, episodes};
pub use self::run::{Figures, Run};
