//! The kernel's own transports, by sockets on either side of a veth pair.

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use crate::net::measure::{Latency, Throughput, failed, join, threads};
use crate::net::pair::Pair;
use crate::net::{exchange, kernel_tcp, kernel_udp};
use spray_nic::net::ethtool::Ethtool;
use spray_switch::RunError;

/// What the kernel is asked to send by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Datagrams, by `sendmmsg` and `recvmmsg`.
    Udp {
        /// XDP programs sit on both ends as on the hosts' own links, and pass every datagram; without, the kernel has the pair for itself.
        programs: bool,
    },
    /// Datagrams that the kernel cuts from long ones and joins to such (`UDP_SEGMENT`, `UDP_GRO`).
    UdpSegments,
    /// A stream.
    Tcp {
        /// The interface takes long segments (TSO).
        tso: bool,
    },
}

/// One way of the kernel over the pair, for packets of `payload_bytes`.
#[derive(Clone, Copy)]
pub(super) struct OverPair<'a> {
    pub pair: &'a Pair,
    pub way: Kernel,
    pub payload_bytes: u32,
}

/// How long the load is there before and after the round trips that are taken under it.
pub(super) const LOAD_MARGIN: Duration = Duration::from_millis(50);

impl OverPair<'_> {
    pub fn throughput(self, duration: Duration) -> Result<Throughput, RunError> {
        self.prepared(|| self.load(duration))
    }

    pub fn latency(self, loaded: bool, duration: Duration) -> Result<Latency, RunError> {
        self.prepared(|| {
            thread::scope(|scope| {
                let load = || thread::Builder::new().spawn_scoped(scope, || self.load(duration + 2 * LOAD_MARGIN));
                let load = loaded.then(load).transpose().map_err(RunError::thread)?;
                if loaded {
                    thread::sleep(LOAD_MARGIN);
                }
                let took = self.exchange(duration);
                load.map_or(Ok(()), |load| join(load).map(drop)).and(took)
            })
        })
    }

    /// Runs `work` while the pair is as the way wants it.
    fn prepared<T>(self, work: impl FnOnce() -> Result<T, RunError>) -> Result<T, RunError> {
        let steered = self.way == Kernel::Udp { programs: true };
        let _programs = if steered { Some([self.pair.steer(0)?, self.pair.steer(1)?]) } else { None };
        if self.way != (Kernel::Tcp { tso: false }) {
            return work();
        }
        self.set_tso(false)?;
        let result = work();
        self.set_tso(true)?;
        result
    }

    fn set_tso(self, on: bool) -> Result<(), RunError> {
        let set = || Ethtool::open(Pair::INTERFACE)?.set_feature("tx-tcp-segmentation", on);
        self.pair.run_in(0, set)?.map_err(failed("setting TSO"))
    }

    fn load(self, duration: Duration) -> Result<Throughput, RunError> {
        let threads = threads(false);
        let outcome = match self.way {
            Kernel::Udp { .. } => {
                let [sender, receiver] = udp_sockets(self.pair)?;
                kernel_udp::run(&sender, &receiver, duration, self.payload_bytes as usize, threads)
            }
            Kernel::UdpSegments => {
                let [sender, receiver] = udp_sockets(self.pair)?;
                kernel_udp::run_segmented(&sender, &receiver, duration, self.payload_bytes as u16, threads)
            }
            Kernel::Tcp { .. } => {
                let [sender, receiver] = tcp_sockets(self.pair)?;
                kernel_tcp::run(sender, receiver, duration, threads)
            }
        };
        outcome.map_err(failed("sending by the kernel"))
    }

    fn exchange(self, duration: Duration) -> Result<Latency, RunError> {
        let threads = threads(false);
        let outcome = match self.way {
            Kernel::Udp { .. } | Kernel::UdpSegments => exchange::patient_udp(udp_sockets(self.pair)?)
                .and_then(|[asking, answering]| exchange::run(asking, answering, duration, threads)),
            Kernel::Tcp { .. } => exchange::patient_tcp(tcp_sockets(self.pair)?)
                .and_then(|[asking, answering]| exchange::run(asking, answering, duration, threads)),
        };
        outcome.map_err(failed("asking by the kernel"))
    }
}

/// A UDP socket on either side of the pair.
pub(super) fn udp_sockets(pair: &Pair) -> Result<[UdpSocket; 2], RunError> {
    let open = |side: usize| {
        let bound = pair.run_in(side, || UdpSocket::bind((Pair::address(side, false), 0)))?;
        bound.map_err(failed("opening a UDP socket"))
    };
    Ok([open(0)?, open(1)?])
}

/// Both ends of a TCP connection over the pair, which the first side has made.
fn tcp_sockets(pair: &Pair) -> Result<[TcpStream; 2], RunError> {
    const DOING: &str = "opening a TCP connection";
    let listener = pair.run_in(1, || TcpListener::bind((Pair::address(1, false), 0)))?.map_err(failed(DOING))?;
    let to = listener.local_addr().map_err(failed(DOING))?;
    let near = pair.run_in(0, || TcpStream::connect(to))?.map_err(failed(DOING))?;
    let (far, _) = listener.accept().map_err(failed(DOING))?;
    Ok([near, far])
}
