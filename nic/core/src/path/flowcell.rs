//! Flowcells (He et al., *Presto*, SIGCOMM 2015, §3.1) of 64 KiB: `docs/specs/flowcell.md`.

#[cfg(test)]
mod tests;

use super::{
    Balancer, Ev, LossCause, LossInfo, Now, Path, Publisher, Rng, Scheme, SendInfo, ahead, draw, draw_lasting, settings,
};
use crate::units::ByteSize;

settings! {
    /// The settings of [`Flowcell`].
    pub struct FlowcellConfig {
        /// Maximum wire bytes of a flowcell. A larger packet forms one alone.
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

/// Keeps an entropy value for a number of bytes or until a timeout, then takes another.
#[derive(Clone, Debug)]
pub struct Flowcell {
    state: Cell,
    cell_bytes: u32,
    in_turn: bool,
}

impl Scheme for Flowcell {
    type Config = FlowcellConfig;

    const STATE_BYTES: usize = size_of::<Cell>();

    //= docs/specs/flowcell.md#FLOWCELL-1 the first EV
    fn make(own: &FlowcellConfig, path: &Path, rng: &mut Rng) -> Self {
        Self {
            state: Cell { sent_bytes: 0, ev: draw_lasting(path, 0, rng) },
            cell_bytes: own.cell_bytes.bytes().min(1 << 31) as u32,
            in_turn: own.order == FlowcellOrder::InTurn,
        }
    }
}

impl Balancer for Flowcell {
    //= docs/specs/flowcell.md#FLOWCELL-2 A full flowcell
    fn next_ev(&mut self, now: Now<'_>, packet: &SendInfo, rng: &mut Rng) -> Ev {
        let evs = now.path.evs;
        let after = self.state.sent_bytes.saturating_add(packet.bytes);
        let is_full = self.state.sent_bytes > 0 && after > self.cell_bytes;
        if is_full {
            //= docs/specs/flowcell.md#FLOWCELL-3 the next EV
            self.state.ev = if self.in_turn { ahead(self.state.ev, 1, evs) } else { draw(evs, rng) };
        }
        self.state.sent_bytes = if is_full { packet.bytes } else { after };
        self.state.ev
    }

    //= docs/specs/flowcell.md#FLOWCELL-4 timeouts
    fn on_loss(&mut self, _now: Now<'_>, loss: &LossInfo, _publisher: &mut dyn Publisher) {
        if loss.cause == LossCause::Timeout {
            self.state.sent_bytes = u32::MAX;
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Bytes sent in this flowcell; `u32::MAX` ends it.
    sent_bytes: u32,
    ev: Ev,
}
