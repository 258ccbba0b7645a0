//! The tables of a chassis.

#[cfg(not(target_arch = "bpf"))]
use core::cell::RefCell;

use spray_wire::switch_view::Address;

use crate::bins::{Bin, Cells, Crossing, Scale};
use crate::config::{Globals, PortConfig};
use crate::counters::{ChassisCounters, PortCounters};
use crate::queue::{PortQueues, QueueWord};
use crate::routes::{Group, SwitchConfig};
use crate::scheme::Calls;
#[cfg(doc)]
use crate::scheme::Forwarding;
#[cfg(not(target_arch = "bpf"))]
use crate::scheme::State;
use crate::trail::Trail;
use crate::word::Word;

/// Where a chassis finds its tables: maps in the kernel, vectors in memory.
pub trait Tables: Calls {
    /// Words shared between CPUs: of queues, pointers and flowlet tables.
    type Word: QueueWord;
    /// Words of counters; may belong to one CPU each.
    type Count: Word;
    /// Words of a frame's trail; belong to one CPU each.
    type TrailWord: Word;
    /// Constants of the chassis.
    fn globals(&self) -> Option<&Globals>;
    /// Number of the host with this address.
    fn host(&self, address: &Address) -> Option<u32>;
    /// A switch's constants.
    fn switch(&self, switch: u32) -> Option<&SwitchConfig>;
    /// A group of equal-cost ports, by [`Globals::group_index`].
    fn group(&self, index: u32) -> Option<&Group>;
    /// A port in the list that groups are runs of.
    fn member(&self, index: u32) -> Option<u32>;
    /// A port.
    fn port(&self, port: u32) -> Option<&PortConfig>;
    /// A word of the switches' memory, see [`Forwarding::word`].
    fn word(&self, index: u32) -> Option<&Self::Word>;
    /// Of the frame at hand; belongs to one CPU.
    fn trail(&self) -> Option<&Trail<Self::TrailWord>>;
    /// What a switch knows in types of its scheme's own, see [`Forwarding::state`].
    #[cfg(not(target_arch = "bpf"))]
    #[inline]
    fn state(&self, _switch: u32) -> Option<&RefCell<State>> {
        None
    }
    /// A port's queues.
    fn queues(&self, port: u32) -> Option<&PortQueues<Self::Word>>;
    /// A port's counters.
    fn counters(&self, port: u32) -> Option<&PortCounters<Self::Count>>;
    /// The chassis's counters.
    fn chassis(&self) -> Option<&ChassisCounters<Self::Count>>;
    /// A cell of the ports' bins; `index` is by port, then by cell.
    fn bin(&self, index: u32) -> Option<&Bin<Self::Word>>;

    /// Stores the trail of the frame at hand, which returns to its host; returns its number, not 0. `None`: there is no room.
    fn store_trail(&self) -> Option<u32>;
    /// Takes the trail of this number back, for the frame at hand. Returns whether there was one.
    fn take_trail(&self, number: u32) -> bool;

    /// Counts what a port did with a frame into its bins, which there are; a function of its own in the kernel, with its own stack.
    #[inline(always)]
    fn note(&self, port: u32, crossing: &Crossing)
    where
        Self: Sized,
    {
        note(self, port, crossing);
    }
}

/// Counts what a port did with a frame into its bins.
#[inline(always)]
pub fn note<T: Tables>(tables: &T, port: u32, crossing: &Crossing) {
    if let Some(Globals { bins, .. }) = tables.globals() {
        PortCells { tables, scale: bins, port }.crossed(crossing);
    }
}

/// The cells of a port among those of all ports.
struct PortCells<'a, T> {
    tables: &'a T,
    scale: &'a Scale,
    port: u32,
}

impl<T: Tables> Cells for PortCells<'_, T> {
    type Word = T::Word;
    #[inline(always)]
    fn scale(&self) -> &Scale {
        self.scale
    }
    #[inline(always)]
    fn bin(&self, cell: u32) -> Option<&Bin<T::Word>> {
        self.tables.bin(self.port.wrapping_mul(self.scale.cells() as u32).wrapping_add(cell))
    }
}
