//! Topologies: hosts, switches and the links between them, from counts, from a graph or from a `.topo` file.
//!
//! A [`Network`] is what every engine starts from. [`compile`] turns it, with queues and timed link events, into the
//! [`Fabric`](crate::fabric::Fabric) that the switch program and the simulator run.

mod ancestors;
mod compile;
mod dragonfly;
mod event;
mod failures;
mod fat_tree;
mod leaf_spine;
mod network;
mod routes;
mod topo_file;

pub use ancestors::{Ancestors, addresses};
pub use compile::{CompileError, Compiled, compile, epoch_starts, preload};
pub(crate) use compile::{mix, salt, v4};
pub use dragonfly::Dragonfly;
pub use event::{LinkAction, LinkEvent, changes, known_down};
pub use failures::{FailureContext, FailureError, FailureFile};
pub use fat_tree::FatTree;
pub use leaf_spine::LeafSpine;
pub use network::{Link, Network, NetworkError, NetworkSwitch};
pub use routes::{Routes, groups, hops};
pub use topo_file::{TopoError, TopoFile, TopoTier};

#[cfg(test)]
mod tests;
