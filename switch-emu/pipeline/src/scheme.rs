//! The choice among equal-cost ports: a file for each rule, a line in `list.rs` for each scheme.
//!
//! A scheme reads the frame, its group, words of memory ([`Forwarding::word`]) and ports' queues
//! ([`Forwarding::queue_state`]). `docs/specs/switching.md` states the rules (`SWC-n`).

mod conga;
#[cfg(not(target_arch = "bpf"))]
pub mod conweave;
#[cfg(not(target_arch = "bpf"))]
mod counter;
mod detour;
mod drill;
mod flowcut;
mod flowlet;
mod forwarding;
mod groups;
mod hashed;
mod layout;
mod least;
mod list;
mod note;
#[cfg(not(target_arch = "bpf"))]
mod notice;
mod ofan;
mod path;
pub mod reunion;
mod rotation;
mod subprograms;

// Files that name all schemes.
mod by_trail;
mod choose;
mod in_memory;
#[cfg(not(target_arch = "bpf"))]
mod scheme_counters;
mod words;

#[cfg(not(target_arch = "bpf"))]
pub use by_trail::poll;
pub use by_trail::{route_by_trail, step};
pub use choose::choose;
#[cfg(not(target_arch = "bpf"))]
pub use conweave::{Expiry, QueueAction, State};
#[cfg(not(target_arch = "bpf"))]
pub use counter::Counter;
pub use flowlet::FLOWLETS;
pub use forwarding::{Arrival, Forwarding, PortWord, QueueState, port_words};
pub use groups::{Groups, MAX_GROUPS};
pub use hashed::hashed;
pub use in_memory::InMemory;
pub use layout::{Layout, Pointers, Size};
pub use least::{MAX_IN_KERNEL, least, score};
pub use list::Scheme;
#[cfg(not(target_arch = "bpf"))]
pub use notice::Notice;
#[cfg(not(target_arch = "bpf"))]
pub use scheme_counters::SchemeCounters;
pub use spray_wire::flowcut::Rule as FlowcutRule;
pub use subprograms::{LoadMeasure, LoadQuery, NO_PORT, OPEN, Step, Subprograms};

#[cfg(test)]
pub(crate) mod tests;
