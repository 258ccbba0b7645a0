//! Where frames to a peer go.

use std::net::IpAddr;

use spray_nic::Endpoint;
use spray_nic::device::Device;
use spray_nic::net::{NetError, NextHops, Resolver};
use tokio::sync::oneshot::Receiver;

/// The next hop, once it is known.
pub type Answer = Receiver<Result<[u8; 6], NetError>>;

/// Who knows.
#[derive(Debug)]
pub enum Ways {
    /// The kernel.
    Kernel(NextHops, Resolver),
    /// A test: the last byte of the IP address is that of the Ethernet address.
    #[cfg(test)]
    ByNumber,
}

impl Ways {
    /// As the kernel's routes say, by a thread that follows them.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn follow(mut next_hops: NextHops) -> Result<Self, NetError> {
        next_hops.start()?;
        let resolver = next_hops.resolver();
        Ok(Self::Kernel(next_hops, resolver))
    }

    /// Asks for the next hop.
    pub fn ask(&self, peer: IpAddr) -> Answer {
        match self {
            Self::Kernel(_, resolver) => resolver.ask(peer),
            #[cfg(test)]
            Self::ByNumber => {
                let (reply, answer) = tokio::sync::oneshot::channel();
                let IpAddr::V4(peer) = peer else { return answer };
                reply.send(Ok([2, 0, 0, 0, 0, peer.octets()[3]])).unwrap();
                answer
            }
        }
    }

    /// Passes changes on to the endpoint.
    pub fn update<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now_ps: u64) {
        match self {
            Self::Kernel(next_hops, _) => next_hops.update(endpoint, now_ps),
            #[cfg(test)]
            Self::ByNumber => {}
        }
    }
}
