//! The choice among equal-cost ports: a file for each rule, a line in `list.rs` for each scheme.
//!
//! A scheme reads the frame, its group, words of memory ([`Forwarding::word`]) and ports' queues
//! ([`Forwarding::waiting`]). `docs/specs/switching.md` states the rules (`SWC-n`).

mod calls;
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

// Files that name all schemes.
mod choose;
#[cfg(not(target_arch = "bpf"))]
mod counted;
mod in_memory;
mod recall;
mod words;

pub use calls::{Calls, Look, Measure, NO_PORT, OPEN, Step};
pub use choose::choose;
#[cfg(not(target_arch = "bpf"))]
pub use conweave::{Expiry, Order, State};
#[cfg(not(target_arch = "bpf"))]
pub use counted::Counted;
#[cfg(not(target_arch = "bpf"))]
pub use counter::Counter;
pub use flowlet::FLOWLETS;
pub use forwarding::{Arrival, Forwarding, PortWord, Waiting, port_words};
pub use groups::{Groups, MOST_GROUPS};
pub use hashed::hashed;
pub use in_memory::InMemory;
pub use layout::{Layout, Pointers, Size};
pub use least::{MOST_IN_KERNEL, least, score};
pub use list::Scheme;
#[cfg(not(target_arch = "bpf"))]
pub use notice::Notice;
#[cfg(not(target_arch = "bpf"))]
pub use recall::poll;
pub use recall::{part, recall};
pub use spray_wire::flowcut::Rule as FlowcutRule;

#[cfg(test)]
pub(crate) mod tests;
