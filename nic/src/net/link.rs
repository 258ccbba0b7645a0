//! Link state from the kernel's notifications.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rtnetlink::packet_core::{NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags};

pub(super) type Notification = NetlinkMessage<RouteNetlinkMessage>;

pub(super) struct LinkStatus {
    index: u32,
    is_up: bool,
    /// Set down by an operator since the link was up.
    was_set_down: bool,
    mtu: Mtu,
    /// Index of the interface that has the Ethernet address: this one or its bridge.
    station: u32,
    pub(super) mac: [u8; 6],
}

/// The MTU of an interface, updated while its host runs.
#[derive(Clone, Debug)]
pub struct Mtu(Arc<AtomicU32>);

/// A change of the link. Drivers do not set an interface down: that was an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Down,
    Up { was_set_down: bool },
}

impl LinkStatus {
    pub(super) fn new(index: u32, mtu: Mtu, station: u32, mac: [u8; 6]) -> Self {
        Self { index, is_up: true, was_set_down: false, mtu, station, mac }
    }

    /// Handles a notification; returns a change of link state.
    pub(super) fn on_notification(&mut self, notification: &Notification) -> Option<Change> {
        let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) = &notification.payload else {
            return None;
        };
        if link.header.index == self.station {
            let mac = link.attributes.iter().find_map(|attribute| match attribute {
                LinkAttribute::Address(bytes) => bytes.as_slice().try_into().ok(),
                _ => None,
            });
            self.mac = mac.unwrap_or(self.mac);
        }
        if link.header.index != self.index {
            return None;
        }
        for attribute in &link.attributes {
            if let LinkAttribute::Mtu(mtu) = attribute {
                self.mtu.0.store(*mtu, Ordering::Relaxed);
            }
        }
        let flags = link.header.flags;
        self.was_set_down |= !flags.contains(LinkFlags::Up);
        let was_up = std::mem::replace(&mut self.is_up, flags.contains(LinkFlags::LowerUp));
        match (was_up, self.is_up) {
            (true, false) => Some(Change::Down),
            (false, true) => Some(Change::Up { was_set_down: std::mem::take(&mut self.was_set_down) }),
            _ => None,
        }
    }
}

impl Mtu {
    pub(super) fn new(bytes: u32) -> Self {
        Self(Arc::new(bytes.into()))
    }

    /// Returns the current value.
    pub fn bytes(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}
