//! Next hops of peers.

use std::net::IpAddr;

use spray_nic::net::{NetError, Resolver};
use tokio::sync::oneshot::Receiver;

pub type Answer = Receiver<Result<[u8; 6], NetError>>;

#[derive(Debug)]
pub enum NextHops {
    Kernel(Resolver),
    /// Test: the Ethernet address ends with the last byte of the IP address.
    #[cfg(test)]
    ByNumber,
}

impl NextHops {
    pub fn request(&self, peer: IpAddr) -> Answer {
        match self {
            Self::Kernel(resolver) => resolver.request(peer),
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
