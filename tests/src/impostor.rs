//! A host on the segment that connects with the address of another.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use spray_benches::net::Pair;
use spray_nic::Peer;
use spray_wire::{
    Accept, Body, Common, Connect, DSCP_CONTROL, Ecn, Envelope, EvPort, INITIAL_TTL, Ports, Probe, Retry, Time, emit,
    parse,
};

use crate::flood::{attach, link_address, send_frame};

const MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x66];
const FRAME_BYTES: usize = 4_096;

/// Sends from side 0 of a pair with a different Ethernet address, and receives the frames sent to
/// that address.
pub struct Impostor {
    link: OwnedFd,
    server: Peer,
    client: IpAddr,
    /// The number of frames received at its Ethernet address.
    pub answers: u64,
}

impl Impostor {
    /// Creates an impostor that sends as `client` to side 1.
    pub fn new(pair: &Pair, client: Ipv4Addr) -> Self {
        let link = pair.run_in(0, || attach(&link_address(Pair::INTERFACE))).unwrap().unwrap();
        let mac = pair.run_in(1, || link_address(Pair::INTERFACE)).unwrap().addr().unwrap();
        let server = Peer { address: Pair::address(1, false), mac };
        Self { link, server, client: client.into(), answers: 0 }
    }

    /// Sends a Connect for a connection of this number.
    pub fn connect(&self, number: u32) {
        self.send_connect(number, [0; 16]);
    }

    /// Continues the handshake as far as the answers allow.
    pub fn answer(&mut self) {
        let mut space = [0; FRAME_BYTES];
        loop {
            let bytes = match recv(self.link.as_raw_fd(), &mut space, MsgFlags::MSG_DONTWAIT) {
                Ok(bytes) => bytes,
                Err(Errno::EAGAIN) => return,
                Err(error) => panic!("the link: {error}"),
            };
            if space[..6] != MAC {
                continue;
            }
            let Ok(Some(frame)) = parse(&space[..bytes], Ports::DEFAULT) else { continue };
            self.answers += 1;
            match frame.body {
                Body::Retry(Retry { token }) => self.send_connect(frame.common.connection, token),
                Body::Accept(Accept { connection, cookie, .. }) => {
                    let probe = Body::Probe(Probe { token: 1, timestamp: Time::ZERO });
                    self.send(Common { connection, cookie, shard: 0 }, &probe);
                }
                _ => {}
            }
        }
    }

    fn send_connect(&self, connection: u32, token: [u8; 16]) {
        let connect = Connect {
            connection,
            cookie: 1,
            window_packets: 256,
            max_payload: 1_024,
            max_data: 1 << 20,
            ack_every: 1,
            exchange_bytes: 0,
            token,
        };
        self.send(Common::default(), &Body::Connect(connect));
    }

    fn send(&self, common: Common, body: &Body) {
        let envelope = Envelope {
            src_mac: MAC,
            dst_mac: self.server.mac,
            src: self.client,
            dst: self.server.address,
            src_port: EvPort::new(50_000),
            dst_port: Ports::DEFAULT.first(),
            dscp: DSCP_CONTROL,
            ecn: Ecn::NotEct,
            ttl: INITIAL_TTL,
        };
        let mut space = [0; FRAME_BYTES];
        let bytes = emit(&mut space, &envelope, &common, body, &[]).unwrap();
        send_frame(&self.link, &space[..bytes]);
    }
}
