//! Watches the MTU of the interface: packets keep the length they had at the start.

use spray_nic::net::Mtu;

use crate::failure::Failure;
use crate::note;

pub(super) struct Watch {
    interface: String,
    mtu: Option<Mtu>,
    at_start: u32,
    last: u32,
}

impl Watch {
    pub(super) fn new(interface: &str, mtu: Option<Mtu>) -> Self {
        let at_start = mtu.as_ref().map_or(0, Mtu::bytes);
        Self { interface: interface.into(), mtu, at_start, last: at_start }
    }

    pub(super) fn check(&mut self) {
        let Some(now) = self.mtu.as_ref().map(Mtu::bytes).filter(|now| *now != self.last) else { return };
        self.last = now;
        if now < self.at_start {
            note!("spray: warning: {}", self.what());
        }
    }

    pub(super) fn explain(&self, failure: Failure) -> Failure {
        if self.last < self.at_start && failure.is_failed() { failure.and(self.what()) } else { failure }
    }

    fn what(&self) -> String {
        let Self { interface, at_start, last, .. } = self;
        let change = format!("the MTU of {interface} has decreased from {at_start} to {last}");
        format!("{change}: longer packets may be lost; `ip link set {interface} mtu {at_start}`, or start again")
    }
}
