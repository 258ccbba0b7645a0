//! Where frames to a peer go.

use std::net::IpAddr;

use spray_nic::net::{NetError, Resolver};
use tokio::sync::oneshot::Receiver;

/// The next hop, once it is known.
pub type Answer = Receiver<Result<[u8; 6], NetError>>;

/// Who knows.
#[derive(Debug)]
pub enum Ways {
    /// The kernel.
    Kernel(Resolver),
    /// A test: the last byte of the IP address is that of the Ethernet address.
    #[cfg(test)]
    ByNumber,
}

impl Ways {
    /// Asks for the next hop.
    pub fn ask(&self, peer: IpAddr) -> Answer {
        match self {
            Self::Kernel(resolver) => resolver.ask(peer),
            #[cfg(test)]
            Self::ByNumber => {
                let (reply, answer) = tokio::sync::oneshot::channel();
                let IpAddr::V4(peer) = peer else { return answer };
                reply.send(Ok([2, 0, 0, 0, 0, peer.octets()[3]])).unwrap();
                answer
            }
        }
    }
}
