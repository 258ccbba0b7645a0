//! Userspace NIC dataplane on AF_XDP: devices, poll loop, endpoints and connections.
//!
//! An [`Endpoint`] turns a [`Device`](device::Device) into connections that carry messages, whole, once, and in any
//! order, over many paths at a time. `spray-core` holds its rules, `spray-wire` its frame format. There are three
//! ways to use it:
//!
//! - [`Endpoint`] itself, polled with whatever time the caller has: the project's README has an example;
//! - [`driver::run`], which polls many endpoints on one thread by a clock;
//! - [`aio`], handles for tokio with such a thread behind them.
//!
//! In [`Mode::Emulated`] an endpoint is a host of an emulated fabric, exact to the picosecond as long as the machine
//! keeps up.

pub mod aio;
pub mod bench;
pub mod clock;
pub mod device;
pub mod driver;
pub mod endpoint;
mod held;
pub mod keys;
pub mod sys;
pub mod turns;

pub use endpoint::{ConnectionId, Endpoint, EndpointConfig, EndpointEvent, MessageId, Mode, Peer};

/// The example in the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
