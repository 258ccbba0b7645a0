//! Configurations and paths that are known in advance: feature `lab`.

use std::net::IpAddr;

use spray_core::flow::FlowConfig;
use spray_core::path::PathEvs;

use super::{ConnectError, ConnectionId, Endpoint, check_flow, within};
use crate::device::Device;

impl<D: Device> Endpoint<D> {
    /// Sets the configuration of this end of the connection `remote` that the endpoint at `peer` is
    /// about to open.
    ///
    /// # Errors
    /// When the parameters are out of range.
    //= docs/specs/endpoint.md#END-38 settings of a connection that is expected
    pub fn expect(&mut self, peer: IpAddr, remote: ConnectionId, flow: FlowConfig) -> Result<(), ConnectError> {
        let flow = within(flow, &self.link.device);
        check_flow(&flow, &self.machine.config, &self.link.device)?;
        self.machine.expected.insert((peer, remote.raw()), flow);
        Ok(())
    }

    /// Sets the entropy values of distinct paths to the peer, in place of earlier ones. See
    /// [`Balancer::on_reachable`](spray_core::path::Balancer::on_reachable).
    pub fn on_reachable(&mut self, connection: ConnectionId, paths: &[PathEvs]) {
        let now = self.machine.clock;
        let Some(index) = self.machine.table.find(connection) else { return };
        let Some(connection) = self.machine.table.slot(index) else { return };
        let Some(flow) = connection.flow.as_mut() else {
            connection.reachable = paths.into();
            return;
        };
        flow.sending.sender.on_reachable(now, paths);
        flow.receiving.on_reachable(paths);
        self.machine.nudge(index);
    }
}
