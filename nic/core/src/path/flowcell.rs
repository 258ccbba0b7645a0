//! Flowcells (He et al., *Presto*, SIGCOMM 2015, §3.1): a new path every 64 KiB. Clauses (FLOWCELL-n) are in
//! `docs/specs/flowcell.md`.

#[cfg(test)]
mod tests;

use rand_core::RngCore;

use super::{AckInfo, Balancer, Ev, LossCause, LossInfo, PathConfig, Scheme, SendInfo, draw, draw_lasting};
use crate::event::Publisher;
use crate::params::parameters;

parameters! {
    /// The settings of [`Flowcell`].
    pub struct FlowcellConfig {
        /// Wire bytes of a flowcell at most, though a packet always fits one.
        cell_bytes: Bytes, 1, 1 << 31, 65_536;
        /// The path of the next flowcell: drawn, or the one after (Presto: entropy values in turn).
        order: Choice(&["in-turn", "random"]), 0, 1, 0;
    }
}

/// One entropy value for so many bytes, then another, whatever comes back short of a timeout.
#[derive(Clone, Debug)]
pub struct Flowcell {
    state: State,
    cell_bytes: u32,
    evs: u16,
    in_turn: bool,
}

impl Scheme for Flowcell {
    const STATE_BYTES: usize = size_of::<State>();

    //= docs/specs/flowcell.md#FLOWCELL-1
    fn make(config: &PathConfig, rng: &mut impl RngCore) -> Self {
        let flowcell = &config.schemes.flowcell;
        Self {
            state: State { sent_bytes: 0, ev: draw_lasting(config, 0, rng) },
            cell_bytes: flowcell.cell_bytes.min(1 << 31) as u32,
            evs: config.ev_count(),
            in_turn: flowcell.order == 0,
        }
    }
}

impl Balancer for Flowcell {
    //= docs/specs/flowcell.md#FLOWCELL-2
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

    #[inline]
    fn on_ack(&mut self, _now_ps: u64, _ack: &AckInfo, _publisher: &mut impl Publisher) {}

    //= docs/specs/flowcell.md#FLOWCELL-4
    fn on_loss(&mut self, _now_ps: u64, loss: &LossInfo, _publisher: &mut impl Publisher) {
        if loss.cause == LossCause::Timeout {
            self.state.sent_bytes = u32::MAX;
        }
    }
}

impl Flowcell {
    //= docs/specs/flowcell.md#FLOWCELL-3
    #[inline]
    fn ev_after(&self, rng: &mut impl RngCore) -> Ev {
        match self.state.ev.wrapping_add(1) {
            _ if !self.in_turn => draw(self.evs, rng),
            next if next < self.evs => next,
            _ => 0,
        }
    }
}

/// What a NIC keeps of a connection.
#[derive(Clone, Copy, Debug)]
struct State {
    /// Bytes sent in this flowcell; `u32::MAX` ends it.
    sent_bytes: u32,
    ev: Ev,
}
