//! A fabric to set up.

use spray_fabric::{Fabric, LinkEvent, Network, Thresholds, compile};

use crate::error::RunError;

/// Hosts, links and switches of a run.
#[derive(Clone, Copy)]
pub struct FabricSpec<'a> {
    /// Hosts, switches and links; checked by [`Network::check`].
    pub network: &'a Network,
    /// Changes of links that begin at a switch.
    pub events: &'a [LinkEvent],
    /// The queue thresholds of a port by its rate in bits per second.
    pub queue: &'a dyn Fn(u64) -> Thresholds,
    /// Bytes of a full data frame.
    pub packet_bytes: u32,
    /// A program and a namespace per switch, instead of one for all.
    pub per_switch: bool,
    /// The seed of all random choices.
    pub seed: u64,
}

impl FabricSpec<'_> {
    /// Compiles the fabric, with all events `lead_in_ps` later.
    ///
    /// # Errors
    /// [`RunError::Unsupported`] when the network or the events are invalid.
    pub fn compile(&self, lead_in_ps: u64) -> Result<Fabric, RunError> {
        let mut events = self.events.to_vec();
        for event in &mut events {
            event.at_ps = event.at_ps.saturating_add(lead_in_ps);
            event.until_ps = event.until_ps.map(|until| until.saturating_add(lead_in_ps));
        }
        let compiled = compile(self.network, self.seed, self.queue, &events);
        compiled.map_err(|error| RunError::Unsupported(error.to_string()))
    }
}
