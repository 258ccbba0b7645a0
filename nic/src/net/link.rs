//! What the kernel's news say of an interface's link.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rtnetlink::packet_core::{NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags};

/// A message of the kernel's about links, routes or neighbours.
pub(super) type Told = NetlinkMessage<RouteNetlinkMessage>;

/// What is known of the interface's link.
pub(super) struct Link {
    index: u32,
    is_up: bool,
    /// Somebody has set it down since it was up last.
    was_set_down: bool,
    mtu: Mtu,
}

/// The longest IP packet of an interface, kept up to date from when its host runs.
#[derive(Clone, Debug)]
pub struct Mtu(Arc<AtomicU32>);

impl Link {
    pub(super) fn new(index: u32, mtu: Mtu) -> Self {
        Self { index, is_up: true, was_set_down: false, mtu }
    }

    /// Takes news; whether they say that the link was down, and is up now: then with whether it had been set down.
    pub(super) fn comes_up(&mut self, told: &Told) -> Option<bool> {
        let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) = &told.payload else { return None };
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
        (self.is_up && !was_up).then(|| std::mem::take(&mut self.was_set_down))
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
