//! The endpoints on the threads of a measurement.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use spray_nic::clock::MonotonicClock;
use spray_nic::device::XskDevice;
use spray_nic::driver::{Idle, run};
use spray_nic::{EndpointEvent, Peer, Time};

use super::measure::{Arrivals, Latency, REQUEST_BYTES, latency, now, record};
use spray_testbed::{HostEndpoint, RTO_PS};

pub(super) const MESSAGE_BYTES: usize = 1 << 20;
const QUEUED_MESSAGES: usize = 8;

/// Sends messages for `duration`; then waits for their delivery.
pub(super) fn send(mut endpoint: HostEndpoint, peer: Peer, duration: Duration) -> (XskDevice, u64) {
    let until = Time::from_ns(duration.as_nanos() as u64);
    let Ok(connection) = endpoint.connect(Time::ZERO, peer, None) else {
        return (endpoint.into_device().into_inner(), 0);
    };
    let payload = Bytes::from(vec![0x5a; MESSAGE_BYTES]);
    let (mut queued, mut delivered) = (0, 0);
    spin(&mut endpoint, |endpoint, time| {
        while let Some(event) = endpoint.poll_event() {
            match event {
                EndpointEvent::Delivered { .. } => delivered += 1,
                EndpointEvent::Failed { .. } | EndpointEvent::Closed { .. } => return ControlFlow::Break(()),
                _ => {}
            }
        }
        if time < until {
            while queued < delivered + QUEUED_MESSAGES && endpoint.send(connection, payload.clone()).is_ok() {
                queued += 1;
            }
        } else if delivered == queued || time >= until.after(RTO_PS) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    (endpoint.into_device().into_inner(), queued as u64)
}

/// Receives messages until `stop`.
pub(super) fn receive(mut endpoint: HostEndpoint, stop: &AtomicBool) -> (XskDevice, Arrivals) {
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

/// Sends small messages, each after the previous answer, and returns the round-trip times.
pub(super) fn ask(mut endpoint: HostEndpoint, peer: Peer, duration: Duration) -> (XskDevice, Latency) {
    let mut took = latency();
    let until = Time::from_ns(duration.as_nanos() as u64);
    let Ok(requests) = endpoint.connect(Time::ZERO, peer, None) else {
        return (endpoint.into_device().into_inner(), took);
    };
    let request = Bytes::from_static(&[0x5a; REQUEST_BYTES]);
    let mut sent_at: Option<Instant> = None;
    spin(&mut endpoint, |endpoint, time| {
        while let Some(event) = endpoint.poll_event() {
            match event {
                EndpointEvent::Received { .. } => sent_at.take().iter().for_each(|at| record(&mut took, at.elapsed())),
                EndpointEvent::Failed { .. } | EndpointEvent::Closed { .. } => return ControlFlow::Break(()),
                _ => {}
            }
        }
        if sent_at.is_none() && endpoint.send(requests, request.clone()).is_ok() {
            sent_at = Some(now());
        }
        if time < until { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    (endpoint.into_device().into_inner(), took)
}

/// Returns every small message, over a second connection, until `stop`.
pub(super) fn answer(mut endpoint: HostEndpoint, peer: Peer, stop: &AtomicBool) -> XskDevice {
    let Ok(answers) = endpoint.connect(Time::ZERO, peer, None) else { return endpoint.into_device().into_inner() };
    spin(&mut endpoint, |endpoint, _| {
        while let Some(event) = endpoint.poll_event() {
            match event {
                EndpointEvent::Received { data, .. } if data.len() == REQUEST_BYTES => {
                    // If the connection has failed, the missing answer shows it to the other side.
                    let _ = endpoint.send(answers, data);
                }
                _ => {}
            }
        }
        if stop.load(Ordering::Acquire) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    endpoint.into_device().into_inner()
}

fn spin(endpoint: &mut HostEndpoint, mut between: impl FnMut(&mut HostEndpoint, Time) -> ControlFlow<()>) {
    run(std::slice::from_mut(endpoint), &mut MonotonicClock::new(), Idle::Spin, |endpoints, now| {
        between(&mut endpoints[0], now)
    });
}
