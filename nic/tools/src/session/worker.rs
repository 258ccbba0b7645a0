//! A shard of a session's host and the work of its thread.

use std::io;
use std::ops::ControlFlow;
use std::os::fd::RawFd;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use spray_nic::device::{AnyDevice, XskInterface};
use spray_nic::driver::Idle;
use spray_nic::{Endpoint, Host, Time, Waker};

use super::freezes::Freezes;
use super::tap::Tap;
use crate::failure::{Failure, Outcome};
use crate::metrics::{self, Metrics};
use crate::progress::now;

pub type Step = Result<(), End>;

pub struct End(pub Outcome);

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self(Err(failure))
    }
}

/// Longest sleep, and so the latency of Ctrl-C.
const NAP: Duration = Duration::from_millis(10);

pub(super) struct Worker {
    pub(super) host: Host<AnyDevice>,
    pub(super) freezes: Freezes,
    metrics: metrics::session::Session,
    pub(super) wakers: Vec<RawFd>,
    pub(super) wake: Wake,
}

impl Worker {
    pub(super) fn new(mut host: Host<AnyDevice>, metrics: &Metrics, tap: Option<Tap>) -> io::Result<Self> {
        let metrics = metrics::session::Session::new(metrics.part());
        if let Some(tap) = tap {
            host.endpoint = host.endpoint.with_tap(Box::new(tap));
        }
        let waker = Arc::new(Waker::new()?);
        let (wakers, wake) = (vec![waker.fd()], Wake(Some(waker)));
        Ok(Self { host, freezes: Freezes::default(), metrics, wakers, wake })
    }

    /// Polls until `act` or another shard ends the command; `end` is the first outcome.
    pub(super) fn run(&mut self, end: &OnceLock<Outcome>, mut act: impl FnMut(&mut Endpoint<AnyDevice>, Time) -> Step) {
        let Self { host, freezes, metrics, wakers, wake } = self;
        let ran = host.run(Idle::Sleep(NAP), wakers, |endpoint, at| {
            wake.rearm();
            endpoint.drain_log().for_each(|entry| freezes.take(&entry.event));
            metrics.update(endpoint, freezes, strays, now());
            if end.get().is_none()
                && let Err(End(outcome)) = act(endpoint, at)
            {
                let _ = end.set(outcome);
            }
            if end.get().is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if let Err(error) = ran {
            let _ = end.set(Err(Failure::failed(format!("cannot follow the kernel's routes: {error}"))));
        }
    }
}

/// The default wakes no thread.
#[derive(Clone, Debug, Default)]
pub struct Wake(Option<Arc<Waker>>);

impl Wake {
    pub fn wake(&self) {
        self.0.iter().for_each(|waker| waker.wake());
    }

    fn rearm(&self) {
        self.0.iter().for_each(|waker| waker.rearm());
    }
}

pub(super) fn strays(endpoint: &Endpoint<AnyDevice>) -> u64 {
    endpoint.device().xdp().map_or(0, XskInterface::frames_without_socket)
}
