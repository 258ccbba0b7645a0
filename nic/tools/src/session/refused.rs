//! ICMP errors for frames of a command that connects.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use spray_nic::Endpoint;
use spray_nic::device::AnyDevice;
use spray_nic::net::{IcmpErrors, Unreachable};

use crate::failure::Failure;
use crate::note;
use crate::paths::probe::{IcmpError, icmp_error};

const LOOK: Duration = Duration::from_millis(20);

/// Prints the first ICMP error from the path, until a connection opens.
pub(super) struct Watch {
    peer: Option<IpAddr>,
    /// For XDP, whose sockets have no error queue; `None` without the privilege.
    socket: Option<IcmpErrors>,
    looked_at: Option<Instant>,
    first: Option<Unreachable>,
}

impl Watch {
    /// `peer` is `None` for a command that waits for peers.
    pub(super) fn new(peer: Option<IpAddr>, endpoint: &Endpoint<AnyDevice>) -> Self {
        let own = endpoint.config();
        let mut peer = peer.filter(|peer| *peer != own.address);
        let socket = match endpoint.device() {
            AnyDevice::Xdp(_) => peer.and_then(|_| IcmpErrors::open(own.address, own.ports).ok()),
            AnyDevice::Udp(device) => {
                peer = peer.filter(|_| device.queue_errors(true).is_ok());
                None
            }
        };
        Self { peer, socket, looked_at: None, first: None }
    }

    pub(super) fn check(&mut self, endpoint: &Endpoint<AnyDevice>, now: Instant) {
        let Some(peer) = self.peer else { return };
        if endpoint.peers().next().is_some() {
            (self.peer, self.socket, self.first) = (None, None, None);
            if let AnyDevice::Udp(device) = endpoint.device() {
                // Otherwise later errors cost some frames.
                let _ = device.queue_errors(false);
            }
            return;
        }
        if self.looked_at.is_some_and(|at| now < at + LOOK) {
            return;
        }
        self.looked_at = Some(now);
        while let Some(refusal) = self.next(endpoint) {
            if self.first.is_none() && peer == refusal.to {
                note!("spray: warning: {}", what(&refusal));
                self.first = Some(refusal);
            }
        }
    }

    fn next(&self, endpoint: &Endpoint<AnyDevice>) -> Option<Unreachable> {
        match endpoint.device() {
            AnyDevice::Xdp(_) => self.socket.as_ref()?.poll(),
            AnyDevice::Udp(device) => device.sending_sockets().find_map(|socket| {
                let IcmpError { kind: (kind, code, _), by, to, .. } = icmp_error(socket)?;
                Unreachable::new(by, to?, kind, code)
            }),
        }
    }

    pub(super) fn explain(&self, failure: Failure) -> Failure {
        match &self.first {
            Some(refusal) if failure.is_failed() => failure.and(what(refusal)),
            _ => failure,
        }
    }
}

fn what(Unreachable { by, to, why }: &Unreachable) -> String {
    format!("{by} answers by ICMP that frames to {to} do not arrive: {why}")
}
