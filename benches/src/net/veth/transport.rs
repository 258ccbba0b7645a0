//! What the hosts' threads do with their endpoints.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use spray_nic::clock::MonotonicClock;
use spray_nic::device::XskDevice;
use spray_nic::driver::{Idle, run};
use spray_nic::{ConnectionId, EndpointEvent, Peer, Time};

use crate::net::exchange::MESSAGE_BYTES as SMALL_BYTES;
use crate::net::measure::{Arrivals, Latency, latency, now, record, threads};
use spray_testbed::{HostEndpoint, RTO_PS};

/// The messages that make load, and how many of them wait.
pub(super) const MESSAGE_BYTES: usize = 1 << 20;
const QUEUED_MESSAGES: usize = 8;

/// Sends messages, a few waiting at any time, for `duration`; then waits for what is under way.
pub(super) fn send(mut endpoint: HostEndpoint, peer: Peer, duration: Duration) -> (XskDevice, u64) {
    let _ = threads(true)[0].apply();
    let until = Time::from_ns(duration.as_nanos() as u64);
    let Ok(connection) = endpoint.connect(Time::ZERO, peer, None) else {
        return (endpoint.into_device().into_inner(), 0);
    };
    let mut load = Load::new(connection);
    spin(&mut endpoint, |endpoint, time| {
        while let Some(event) = endpoint.poll_event() {
            match event {
                EndpointEvent::Delivered { .. } => load.delivered += 1,
                EndpointEvent::Failed { .. } | EndpointEvent::Closed { .. } => return ControlFlow::Break(()),
                _ => {}
            }
        }
        if time < until {
            load.top_up(endpoint);
        } else if load.delivered == load.queued || time >= until.after(RTO_PS) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    (endpoint.into_device().into_inner(), load.queued as u64)
}

/// Receives messages until told to stop.
pub(super) fn receive(mut endpoint: HostEndpoint, stop: &AtomicBool) -> (XskDevice, Arrivals) {
    let _ = threads(true)[1].apply();
    let mut arrivals = Arrivals::default();
    spin(&mut endpoint, |endpoint, _| {
        while let Some(event) = endpoint.poll_event() {
            if let EndpointEvent::Received { .. } = event {
                arrivals.add(1);
            }
        }
        if stop.load(Ordering::Acquire) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    (endpoint.into_device().into_inner(), arrivals)
}

/// Sends small messages to the peer for `duration`, each after the answer to the one before, and tells how long the answers took. `loaded`
/// also keeps large messages waiting.
pub(super) fn ask(mut endpoint: HostEndpoint, peer: Peer, loaded: bool, duration: Duration) -> (XskDevice, Latency) {
    let _ = threads(true)[0].apply();
    let mut took = latency();
    let until = Time::from_ns(duration.as_nanos() as u64);
    let Ok(requests) = endpoint.connect(Time::ZERO, peer, None) else {
        return (endpoint.into_device().into_inner(), took);
    };
    let mut load = loaded.then(|| endpoint.connect(Time::ZERO, peer, None).ok().map(Load::new)).flatten();
    let request = Bytes::from_static(&[0x5a; SMALL_BYTES]);
    let mut asked: Option<Instant> = None;
    spin(&mut endpoint, |endpoint, time| {
        while let Some(event) = endpoint.poll_event() {
            match event {
                EndpointEvent::Delivered { connection, .. } if connection != requests => {
                    load.iter_mut().for_each(|load| load.delivered += 1);
                }
                EndpointEvent::Received { .. } => asked.take().iter().for_each(|at| record(&mut took, at.elapsed())),
                EndpointEvent::Failed { .. } | EndpointEvent::Closed { .. } => return ControlFlow::Break(()),
                _ => {}
            }
        }
        if asked.is_none() && endpoint.send(requests, request.clone()).is_ok() {
            asked = Some(now());
        }
        load.iter_mut().for_each(|load| load.top_up(endpoint));
        if time < until { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    (endpoint.into_device().into_inner(), took)
}

/// Sends every small message back, over a connection of its own, until told to stop.
pub(super) fn answer(mut endpoint: HostEndpoint, peer: Peer, stop: &AtomicBool) -> XskDevice {
    let _ = threads(true)[1].apply();
    let Ok(answers) = endpoint.connect(Time::ZERO, peer, None) else { return endpoint.into_device().into_inner() };
    spin(&mut endpoint, |endpoint, _| {
        while let Some(event) = endpoint.poll_event() {
            match event {
                EndpointEvent::Received { data, .. } if data.len() == SMALL_BYTES => {
                    // A connection that has failed says so to the asking side by silence.
                    let _ = endpoint.send(answers, data);
                }
                _ => {}
            }
        }
        if stop.load(Ordering::Acquire) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    endpoint.into_device().into_inner()
}

/// A connection that always has messages to send.
struct Load {
    connection: ConnectionId,
    payload: Bytes,
    queued: usize,
    delivered: usize,
}

impl Load {
    fn new(connection: ConnectionId) -> Self {
        Self { connection, payload: Bytes::from(vec![0x5a; MESSAGE_BYTES]), queued: 0, delivered: 0 }
    }

    fn top_up(&mut self, endpoint: &mut HostEndpoint) {
        let is_room = |load: &Self| load.queued < load.delivered + QUEUED_MESSAGES;
        while is_room(self) && endpoint.send(self.connection, self.payload.clone()).is_ok() {
            self.queued += 1;
        }
    }
}

/// Polls one endpoint until `between` breaks off.
fn spin(endpoint: &mut HostEndpoint, mut between: impl FnMut(&mut HostEndpoint, Time) -> ControlFlow<()>) {
    run(std::slice::from_mut(endpoint), &mut MonotonicClock::new(), Idle::Spin, |endpoints, now| {
        between(&mut endpoints[0], now)
    });
}
