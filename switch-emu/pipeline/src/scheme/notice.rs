//! What switches tell each other in frames of their own.

use super::{Forwarding, reunion};

/// A frame from one switch to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    /// The switch that it goes to.
    pub to: u32,
    /// What its trail notes.
    pub note: u64,
    /// The flow that it is about, where its trail says so.
    pub flow: u64,
    /// What else its trail notes.
    pub more: [u64; 2],
    /// Links that it names.
    pub links: u32,
}

/// The next frame that a switch has to send; `None`: there is none now.
pub fn poll<F: Forwarding>(tables: &F, switch: u32) -> Option<Notice> {
    if let Some(reunion::Sent { to, note, links }) = reunion::poll(tables, switch) {
        return Some(Notice { to, note, links, ..Notice::default() });
    }
    tables.state(switch)?.borrow_mut().poll()
}
