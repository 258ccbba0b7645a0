//! Messages and byte streams between hosts over all paths of a network at once, on AF_XDP.
//!
//! A connection chooses the source port of each packet; switches hash it, so that packets take all
//! paths. Feedback shows which paths are congested or down, and later packets avoid them. The
//! example runs over a network in memory; on a real one, as root, `Endpoint::open("eth0")` and the
//! peer's IP address are enough.
//!
//! ```
//! use spray_nic::{EndpointConfig, aio::Endpoint, device::MemoryNetwork};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! let network = MemoryNetwork::default();
//! let host = |number| -> Result<Endpoint, spray_nic::aio::Error> {
//!     let mac = [2, 0, 0, 0, 0, number];
//!     Endpoint::spawn(network.attach(mac), EndpointConfig::real([10, 0, 0, number].into(), mac, 3498)?)
//! };
//! let (client, server) = (host(1)?, host(2)?);
//!
//! // Messages: whole, once, in any order.
//! let ours = client.connect(server.local()).await?; // on a real interface: client.connect(ip_address)
//! let mut theirs = server.accept().await?;
//! let (sent, received) = tokio::join!(ours.send("hello".into()), theirs.recv());
//! sent?; // delivered
//! assert_eq!(received?.unwrap().data, "hello");
//!
//! // Or bytes in order, for `tokio::io`.
//! let (mut ours, mut theirs) = (ours.into_stream(), theirs.into_stream());
//! ours.write_all(b"any number of bytes").await?;
//! let (shut, mut text) = (ours.shutdown(), String::new());
//! tokio::try_join!(shut, theirs.read_to_string(&mut text))?;
//! assert_eq!(text, "any number of bytes");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Levels of use
//!
//! - [`aio`]: handles for tokio, with one thread per queue; `Connection::split` separates the
//!   directions, and `into_stream` returns a stream;
//! - [`Host`]: an endpoint with clock and routes, on the caller's thread, or several shards of one
//!   address, each on a thread;
//! - [`driver::run`]: polls many endpoints on one thread by a clock;
//! - [`Endpoint`]: polled with any time.
//!
//! | what | where |
//! |---|---|
//! | a real interface | `Host::open`: sockets on all queues, the XDP program, the kernel's routes |
//! | a network in memory with loss, delay, reordering and corruption | [`device::MemoryNetwork`] |
//! | settings | `HostConfig` from the interface, and the methods `with_...` of [`EndpointConfig`] |
//! | path selection | [`BalancerKind`], [`EndpointConfig::with_balancer`] |
//! | congestion control | [`CcKind`], [`EndpointConfig::with_congestion_control`] |
//! | custom balancers and congestion controls | `CustomBalancer`, `CustomCc` of `spray-core` in place of a kind |
//! | access control, and sealed frames | [`keys`], [`EndpointConfig::with_keys`] |
//! | waiting for connections to end | [`Host::close`], [`aio::Endpoint::close`] |
//! | zero-copy payload | [`Endpoint::with_sink`], [`Endpoint::send_from`] |
//!
//! `nic/examples` has an echo server, a file transfer and a measurement of goodput; see also
//! `docs/library.md`. All features but `lab` are on by default: without `xdp` the crate needs no
//! libbpf, and has no AF_XDP devices; without `tokio` there is no [`aio`].
//!
//! Points in time are [`Time`]; durations are `u64` picoseconds in names that end with `_ps`.

#[cfg(feature = "tokio")]
pub mod aio;
pub mod clock;
pub mod device;
pub mod driver;
pub mod endpoint;
mod host;
pub mod keys;
#[cfg(feature = "xdp")]
pub mod net;
mod real;
pub mod sys;
mod waker;
mod x25519;
#[cfg(feature = "xdp")]
pub mod xdp;

pub use bytes::Bytes;
pub use endpoint::{ConnectionId, Endpoint, EndpointConfig, EndpointEvent, MessageId, Peer, Shard};
pub use host::Host;
#[cfg(feature = "xdp")]
pub use host::HostConfig;
pub use spray_core::Time;
pub use spray_core::cc::{CcKind, ControlConfig};
pub use spray_core::event::{Choice, ChoiceTap, Event, FreezeReason};
pub use spray_core::flow::{FlowConfig, Limits, ReceiverStats, SenderStats};
pub use spray_core::loss::RtoConfig;
pub use spray_core::path::{BalancerConfig, BalancerKind, Ev, Path, PathEvs};
pub use spray_wire::{Kind, Ports, header_bytes};
pub use waker::Waker;

/// The example in the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// The examples in `docs/library.md`, as tests.
#[cfg(all(doctest, feature = "xdp"))]
#[doc = include_str!("../../docs/library.md")]
struct Library;
