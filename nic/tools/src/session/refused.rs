//! What is answered by ICMP to a command that connects.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use spray_nic::EndpointConfig;
use spray_nic::net::{Refusal, Refusals};

use crate::failure::Failure;
use crate::note;

/// How often the socket is read.
const LOOK: Duration = Duration::from_millis(20);

/// Prints the first refusal of frames to the peer, until a connection has opened.
pub(super) struct Watch {
    peer: Option<IpAddr>,
    socket: Option<Refusals>,
    looked_at: Option<Instant>,
    first: Option<Refusal>,
}

impl Watch {
    /// `None` for a command that waits for peers. Without the right to a raw socket nothing is watched.
    pub(super) fn new(peer: Option<IpAddr>, own: &EndpointConfig) -> Self {
        let peer = peer.filter(|peer| *peer != own.address);
        let socket = peer.and_then(|_| Refusals::open(own.address, own.ports).ok());
        Self { peer, socket, looked_at: None, first: None }
    }

    pub(super) fn check(&mut self, is_connected: bool, now: Instant) {
        let Some(socket) = &self.socket else { return };
        if is_connected {
            (self.socket, self.first) = (None, None);
            return;
        }
        if self.looked_at.is_some_and(|at| now < at + LOOK) {
            return;
        }
        self.looked_at = Some(now);
        while let Some(refusal) = socket.poll() {
            if self.first.is_none() && self.peer == Some(refusal.to) {
                self.first = Some(refusal);
                note!("spray: warning: {}", what(&refusal));
            }
        }
    }

    /// Adds to a failure what was answered.
    pub(super) fn explain(&self, failure: Failure) -> Failure {
        match &self.first {
            Some(refusal) if failure.is_failed() => failure.and(what(refusal)),
            _ => failure,
        }
    }
}

fn what(Refusal { by, to, why }: &Refusal) -> String {
    format!("{by} answers by ICMP that frames to {to} do not arrive: {why}")
}
