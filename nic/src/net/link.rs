//! What the kernel's news say of an interface's link.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rtnetlink::packet_core::{NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags};

/// A message of the kernel's about links, routes or neighbours.
pub(super) type Told = NetlinkMessage<RouteNetlinkMessage>;

/// What is known of the interface's link.
pub(super) struct LinkStatus {
    index: u32,
    is_up: bool,
    /// Somebody has set it down since it was up last.
    was_set_down: bool,
    mtu: Mtu,
    /// The number of the interface that frames come from by their Ethernet address: the same, or the bridge that it is a part of.
    station: u32,
    /// Its Ethernet address.
    pub(super) mac: [u8; 6],
}

/// The longest IP packet of an interface, kept up to date from when its host runs.
#[derive(Clone, Debug)]
pub struct Mtu(Arc<AtomicU32>);

/// How a link has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Down,
    /// After somebody had set it down, which no driver does by itself, or not.
    Up {
        was_set_down: bool,
    },
}

impl LinkStatus {
    pub(super) fn new(index: u32, mtu: Mtu, station: u32, mac: [u8; 6]) -> Self {
        Self { index, is_up: true, was_set_down: false, mtu, station, mac }
    }

    /// Takes news; how they say that the link has changed.
    pub(super) fn hear(&mut self, told: &Told) -> Option<Change> {
        let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) = &told.payload else { return None };
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

    /// What it is now.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}
