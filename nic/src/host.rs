//! A host of the network: an endpoint on a device, the clock that it goes by, and the kernel's routes that its frames follow.

#[cfg(feature = "xdp")]
mod open;
#[cfg(feature = "udp")]
mod udp;

use spray_core::Time;
use std::{io, ops::ControlFlow, os::fd::RawFd, time::Duration};

#[cfg(feature = "xdp")]
pub use open::HostConfig;

use crate::{
    clock::{Clock, MonotonicClock},
    device::Device,
    driver::{self, Idle},
    endpoint::{ConfigError, Endpoint, EndpointConfig},
    real::ps,
};

/// Longest sleep of a host that waits for its connections to end.
const NAP: Duration = Duration::from_millis(10);

/// An endpoint with all that it takes to run. `Host::open` makes it on a real interface, which it gives back when it is dropped;
/// `docs/library.md` of the project has an example.
#[derive(Debug)]
pub struct Host<D> {
    /// The endpoint.
    pub endpoint: Endpoint<D>,
    clock: MonotonicClock,
    #[cfg(feature = "xdp")]
    routes: Option<crate::net::NextHops>,
}

impl<D: Device> Host<D> {
    /// A host on a device of one's own. It follows no routes: frames go to the Ethernet addresses that its peers have.
    ///
    /// # Errors
    /// When the configuration is out of range or its frames do not fit the device.
    pub fn new(device: D, config: EndpointConfig) -> Result<Self, ConfigError> {
        Ok(Self {
            endpoint: Endpoint::new(device, config)?,
            clock: MonotonicClock::new(),
            #[cfg(feature = "xdp")]
            routes: None,
        })
    }

    /// Begins to follow the kernel's routes, by a thread that opens nothing more. So do [`run`](Self::run) and [`poll`](Self::poll), which
    /// returns no error.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(&mut self) -> io::Result<()> {
        #[cfg(feature = "xdp")]
        self.routes.as_mut().map_or(Ok(()), crate::net::NextHops::start)?;
        Ok(())
    }

    /// One round of [`run`](Self::run) without a pause, for a caller with a loop of its own. Returns the time, and how long
    /// until the endpoint wants to be polled again at the latest, in nanoseconds.
    pub fn poll(&mut self) -> (Time, u64) {
        let (now, due_ns) = driver::round(std::slice::from_mut(&mut self.endpoint), &mut self.clock);
        #[cfg(feature = "xdp")]
        let due_ns = self.routes.as_mut().map_or(u64::MAX, |routes| routes.update(&mut self.endpoint, now)).min(due_ns);
        (now, due_ns)
    }

    /// Polls the endpoint until `between`, which is called after every round with the time, breaks off. Where nothing is
    /// due it does as `idle` says, and sleeps no longer than until one of `also` is readable.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn run(
        &mut self,
        idle: Idle,
        also: &[RawFd],
        mut between: impl FnMut(&mut Endpoint<D>, Time) -> ControlFlow<()>,
    ) -> io::Result<()> {
        self.start()?;
        let mut rest = driver::Rest::new(idle, [&self.endpoint], also);
        loop {
            let (now, due_ns) = self.poll();
            if between(&mut self.endpoint, now).is_break() {
                return Ok(());
            }
            rest.pause(self.endpoint.activity(), due_ns);
        }
    }

    /// Closes every connection, once what was sent is delivered, and polls until all have ended, at most for `limit`. What is left then is
    /// aborted. Returns whether all had ended. The endpoint has the events.
    pub fn close(&mut self, limit: Duration) -> bool {
        self.endpoint.close_all();
        self.outlast(limit, |_, _| {})
    }

    /// Ends every connection at once, and tells the peers.
    pub fn abort(&mut self) {
        self.endpoint.abort_all();
        self.poll();
    }

    /// Polls, and calls `step` after every round, until every connection has ended, at most for `limit`. What is left then is aborted.
    /// Returns whether all had ended.
    pub(crate) fn outlast(&mut self, limit: Duration, mut step: impl FnMut(&mut Endpoint<D>, Time)) -> bool {
        let (until, mut is_over) = (self.clock.now().after(ps(limit)), false);
        // Where it cannot be started, nothing is waited for.
        let _ = self.run(Idle::Sleep(NAP), &[], |endpoint, now| {
            step(endpoint, now);
            is_over = !endpoint.has_connections();
            if is_over || now >= until { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.abort();
        is_over
    }
}
