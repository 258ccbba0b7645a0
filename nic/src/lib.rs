//! Messages and byte streams between hosts over all paths of a network at once, in userspace on AF_XDP.
//!
//! A connection sends each packet with a source port of its own choice; switches hash it, so that packets take all paths. What comes back
//! tells which paths are congested or dead, and later packets avoid them. Everything is tested over a network in memory, which the example
//! uses; on a real one, as root, `Endpoint::open("eth0")` and the peer's IP address are all there is to say.
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
//! # Ways to use it
//!
//! - [`aio`]: handles for tokio, with a thread for each queue behind them; `Connection::split` parts the directions, `into_stream` makes a stream;
//! - [`Host`], an endpoint with all that it takes to run, on a thread of the caller's; or several of one address, its shards, each on a thread;
//! - [`driver::run`], which polls many endpoints on one thread by a clock;
//! - [`Endpoint`] itself, polled with whatever time the caller has.
//!
//! | what | where |
//! |---|---|
//! | a real interface | `Host::open`: sockets on all its queues, the XDP program that steers frames into them, the kernel's routes |
//! | a network in memory that loses, delays, doubles, reorders and corrupts | [`device::MemoryNetwork`] |
//! | settings | `HostConfig`, which learns from the interface, and the methods `with_...` of [`EndpointConfig`] |
//! | how paths are chosen | [`BalancerKind`], [`EndpointConfig::with_balancer`] |
//! | how congestion is controlled | [`CcKind`], [`EndpointConfig::with_congestion_control`] |
//! | a balancer or congestion control of one's own | `OwnBalancer` and `OwnCc` of the crate `spray-core` go wherever a kind goes |
//! | who may connect, and sealed frames | [`keys`], [`EndpointConfig::with_keys`] |
//! | waiting for connections to end | [`Host::close`], [`aio::Endpoint::close`] |
//! | payload that stays in the frames | [`Endpoint::with_sink`], [`Endpoint::send_from`] |
//!
//! `nic/examples` has an echo server, a file transfer and a measurement of goodput; `docs/library.md` of the project tells more. Two features are
//! on by default. Without `xdp` the crate needs no libbpf, and the network in memory is left; without `tokio` there is no [`aio`].
//!
//! A point in time is a [`Time`]; how long something takes is a `u64` of picoseconds, whose name ends with `_ps`.

#[cfg(feature = "tokio")]
pub mod aio;
pub mod clock;
mod curve;
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
