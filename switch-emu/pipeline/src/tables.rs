//! The tables of a chassis.

#[cfg(not(target_arch = "bpf"))]
use core::cell::RefCell;

use spray_wire::switch_view::Address;

use crate::bins::{Bin, BinScale, Cells, Transit};
use crate::config::{Globals, PortConfig};
use crate::counters::{ChassisCounters, PortCounters};
use crate::queue::{PortQueues, QueueWord};
use crate::routes::{Group, SwitchConfig};
#[cfg(doc)]
use crate::scheme::Forwarding;
#[cfg(not(target_arch = "bpf"))]
use crate::scheme::State;
use crate::scheme::Subprograms;
use crate::trail::Trail;
use crate::word::Word;

/// The tables of a chassis: maps in the kernel, vectors in memory.
pub trait Tables: Subprograms + Sized {
    /// Words shared between CPUs: of queues, pointers and flowlet tables.
    type Word: QueueWord;
    /// Words of counters; may be per CPU.
    type Count: Word;
    /// Words of a frame's trail; per CPU.
    type TrailWord: Word;
    /// Returns the constants of the chassis.
    fn globals(&self) -> Option<&Globals>;
    /// Returns the number of the host with this address.
    fn host(&self, address: &Address) -> Option<u32>;
    /// Returns a switch's constants.
    fn switch(&self, switch: u32) -> Option<&SwitchConfig>;
    /// Returns a group of equal-cost ports, by [`Globals::group_index`].
    fn group(&self, index: u32) -> Option<&Group>;
    /// Returns an entry of the list that groups are runs of.
    fn member(&self, index: u32) -> Option<u32>;
    /// Returns a port.
    fn port(&self, port: u32) -> Option<&PortConfig>;
    /// Returns a word of the switches' memory, see [`Forwarding::word`].
    fn word(&self, index: u32) -> Option<&Self::Word>;
    /// Returns the trail of the present frame, of this CPU.
    fn trail(&self) -> Option<&Trail<Self::TrailWord>>;
    /// Returns a switch's state in its scheme's types, see [`Forwarding::state`].
    #[cfg(not(target_arch = "bpf"))]
    #[inline]
    fn state(&self, _switch: u32) -> Option<&RefCell<State>> {
        None
    }
    /// Returns a port's queues.
    fn queues(&self, port: u32) -> Option<&PortQueues<Self::Word>>;
    /// Returns a port's counters.
    fn counters(&self, port: u32) -> Option<&PortCounters<Self::Count>>;
    /// Returns the chassis's counters.
    fn chassis(&self) -> Option<&ChassisCounters<Self::Count>>;
    /// Returns a cell of the ports' bins; `index` is by port, then by cell.
    fn bin(&self, index: u32) -> Option<&Bin<Self::Word>>;

    /// Stores the trail of the present frame. Returns its number, not 0; `None`: no room.
    fn store_trail(&self) -> Option<u32>;
    /// Restores the trail of this number for the present frame. Returns whether it exists.
    fn take_trail(&self, number: u32) -> bool;

    /// Runs [`note`]; a separate function in the kernel, with its own stack.
    #[inline(always)]
    fn note(&self, port: u32, transit: &Transit) {
        note(self, port, transit);
    }
}

/// Counts a frame in a port's bins.
#[inline(always)]
pub fn note<T: Tables>(tables: &T, port: u32, transit: &Transit) {
    if let Some(Globals { bins, .. }) = tables.globals() {
        PortCells { tables, scale: bins, port }.record(transit);
    }
}

struct PortCells<'a, T> {
    tables: &'a T,
    scale: &'a BinScale,
    port: u32,
}

impl<T: Tables> Cells for PortCells<'_, T> {
    type Word = T::Word;
    #[inline(always)]
    fn scale(&self) -> &BinScale {
        self.scale
    }
    #[inline(always)]
    fn bin(&self, cell: u32) -> Option<&Bin<T::Word>> {
        self.tables.bin(self.port.wrapping_mul(self.scale.cells() as u32).wrapping_add(cell))
    }
}
