//! Flowcells (He et al., *Presto*, SIGCOMM 2015, §3.1): a new path every 64 KiB. Clauses (FLOWCELL-n) are in
//! `docs/specs/flowcell.md`.

#[cfg(test)]
mod tests;

use rand_core::RngCore;

use super::{Balancer, Ev, LossCause, LossInfo, Offers, PathConfigOf, Scheme, SendInfo, ahead, draw, draw_lasting};
use crate::event::Publisher;
use crate::settings::settings;
use crate::units::ByteSize;

settings! {
    /// The settings of [`Flowcell`].
    pub struct FlowcellConfig {
        /// Most wire bytes of a flowcell. A larger packet makes a flowcell of its own.
        #[schemars(range(min = 1, max = 2_147_483_648_u64))]
        pub cell_bytes: ByteSize = ByteSize::kib(64),
        /// How the path of the next flowcell is chosen.
        pub order: FlowcellOrder = FlowcellOrder::InTurn,
    }

    /// How the path of the next flowcell is chosen.
    #[derive(Default)]
    pub enum FlowcellOrder {
        /// Entropy values in turn, as in Presto.
        #[default]
        InTurn,
        /// Each is drawn at random.
        Random,
    }
}

/// Keeps an entropy value for so many bytes, then takes another. Of all feedback only a timeout counts.
#[derive(Clone, Debug)]
pub struct Flowcell {
    state: Cell,
    cell_bytes: u32,
    evs: u16,
    in_turn: bool,
}

impl Scheme for Flowcell {
    type Config = FlowcellConfig;

    const STATE_BYTES: usize = size_of::<Cell>();
    const OFFERS: Offers = Offers::NOTHING;

    //= docs/specs/flowcell.md#FLOWCELL-1 the first EV
    fn make(own: &FlowcellConfig, path: &PathConfigOf<impl Copy>, rng: &mut impl RngCore) -> Self {
        Self {
            state: Cell { sent_bytes: 0, ev: draw_lasting(path, 0, rng) },
            cell_bytes: own.cell_bytes.bytes().min(1 << 31) as u32,
            evs: path.ev_count(),
            in_turn: own.order == FlowcellOrder::InTurn,
        }
    }
}

impl Balancer for Flowcell {
    //= docs/specs/flowcell.md#FLOWCELL-2 A full flowcell
    #[inline]
    fn next_ev(&mut self, _now_ps: u64, packet: &SendInfo, rng: &mut impl RngCore) -> Ev {
        let after = self.state.sent_bytes.saturating_add(packet.bytes);
        let is_full = self.state.sent_bytes > 0 && after > self.cell_bytes;
        if is_full {
            self.state.ev = self.ev_after(rng);
        }
        self.state.sent_bytes = if is_full { packet.bytes } else { after };
        self.state.ev
    }

    //= docs/specs/flowcell.md#FLOWCELL-4 timeouts
    fn on_loss(&mut self, _now_ps: u64, loss: &LossInfo, _publisher: &mut impl Publisher) {
        if loss.cause == LossCause::Timeout {
            self.state.sent_bytes = u32::MAX;
        }
    }
}

impl Flowcell {
    //= docs/specs/flowcell.md#FLOWCELL-3 the next EV
    #[inline]
    fn ev_after(&self, rng: &mut impl RngCore) -> Ev {
        if self.in_turn { ahead(self.state.ev, 1, self.evs) } else { draw(self.evs, rng) }
    }
}

/// What a NIC keeps of a connection.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Bytes sent in this flowcell; `u32::MAX` ends it.
    sent_bytes: u32,
    ev: Ev,
}
