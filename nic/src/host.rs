//! A host: an endpoint on a device, with its clock and the kernel's routes.

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

/// An endpoint with all that it takes to run. `Host::open` creates one on a real interface, which
/// is released on drop; `docs/library.md` has an example.
#[derive(Debug)]
pub struct Host<D> {
    /// The endpoint.
    pub endpoint: Endpoint<D>,
    clock: MonotonicClock,
    #[cfg(feature = "xdp")]
    routes: Option<crate::net::NextHops>,
}

impl<D: Device> Host<D> {
    /// Creates a host on a custom device, without routes: peers have Ethernet addresses.
    ///
    /// # Errors
    /// The configuration is out of range, or its frames do not fit the device.
    pub fn new(device: D, config: EndpointConfig) -> Result<Self, ConfigError> {
        Ok(Self {
            endpoint: Endpoint::new(device, config)?,
            clock: MonotonicClock::new(),
            #[cfg(feature = "xdp")]
            routes: None,
        })
    }

    /// Starts the thread that follows the kernel's routes. [`run`](Self::run) and
    /// [`poll`](Self::poll), which ignores errors, start it too.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(&mut self) -> io::Result<()> {
        #[cfg(feature = "xdp")]
        self.routes.as_mut().map_or(Ok(()), crate::net::NextHops::start)?;
        Ok(())
    }

    /// Performs one round of [`run`](Self::run) without sleeping, for callers with their own loop.
    /// Returns the time, and nanoseconds until the next poll is due.
    pub fn poll(&mut self) -> (Time, u64) {
        let (now, due_ns) = driver::round(std::slice::from_mut(&mut self.endpoint), &mut self.clock);
        #[cfg(feature = "xdp")]
        let due_ns = self.routes.as_mut().map_or(u64::MAX, |routes| routes.update(&mut self.endpoint, now)).min(due_ns);
        (now, due_ns)
    }

    /// Polls the endpoint until `between` breaks, which is called after each round with the time.
    /// While nothing is due it sleeps according to `idle`, or until one of `also` is readable.
    pub fn run(
        &mut self,
        idle: Idle,
        also: &[RawFd],
        mut between: impl FnMut(&mut Endpoint<D>, Time) -> ControlFlow<()>,
    ) -> io::Result<()> {
        self.start()?;
        let mut idler = driver::Idler::new(idle, [&self.endpoint], also);
        loop {
            let (now, due_ns) = self.poll();
            if between(&mut self.endpoint, now).is_break() {
                return Ok(());
            }
            idler.pause(self.endpoint.activity(), due_ns);
        }
    }

    /// Closes every connection after delivery and polls until all have ended, at most for `limit`,
    /// then aborts the rest. Returns whether all had ended. Events remain in the endpoint.
    pub fn close(&mut self, limit: Duration) -> bool {
        self.endpoint.close_all();
        self.run_until_closed(limit, |_, _| {})
    }

    /// Aborts every connection, and notifies the peers.
    pub fn abort(&mut self) {
        self.endpoint.abort_all();
        self.poll();
    }

    /// Polls, with `step` after each round, until every connection has ended, at most for `limit`,
    /// then aborts the rest. Returns whether all had ended.
    pub(crate) fn run_until_closed(&mut self, limit: Duration, mut step: impl FnMut(&mut Endpoint<D>, Time)) -> bool {
        let (until, mut is_over) = (self.clock.now().after(ps(limit)), false);
        // If the thread cannot be started, connections are aborted immediately.
        let _ = self.run(Idle::Sleep(NAP), &[], |endpoint, now| {
            step(endpoint, now);
            is_over = !endpoint.has_connections();
            if is_over || now >= until { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.abort();
        is_over
    }
}
