//! Attaches the observers of a run to its hosts, and forwards the hosts' reports to them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spray_capture::Observer;
use spray_fabric::DeliverySeries;
use spray_nic::Time;
use spray_nic::endpoint::Tap;

use super::hosts::{HostRun, Setup};
use super::tap::{HostTap, ObservedPort, scenario};

/// Attaches `arrivals` and the run's observer to the hosts.
pub(super) fn attach_observers(
    hosts: Vec<HostRun>,
    setup: &Setup<'_>,
    arrivals: Option<&Arc<DeliverySeries<AtomicU64>>>,
) -> Vec<HostRun> {
    let watch = setup.spec.watch.map(|watch| (watch, watch.lock().tracer().is_some()));
    let (network, lead_in_ps) = (setup.spec.fabric.network, setup.plan.lead_in_ps);
    let see = |HostRun { host, mut endpoint, mut book }: HostRun| {
        let link = network.uplink(host) as u32;
        let tap = watch
            .map(|(watch, parses)| move |interface| HostTap { watch: watch.clone(), parses, interface, lead_in_ps });
        book.complete = tap.is_some();
        if let (Some(tap), Some(port)) = (&tap, setup.port_to(host)) {
            // The other direction of the host's cable.
            endpoint.device_mut().set_port(Box::new(ObservedPort { port, tap: tap(link ^ 1) }));
        }
        if let Some(tap) = tap {
            endpoint.device_mut().tap = Some(tap(link));
        }
        if let Some(arrivals) = arrivals {
            let due_ps = Arc::clone(&endpoint.device().due_ps);
            endpoint = endpoint.with_tap(Box::new(Counter { arrivals: Arc::clone(arrivals), due_ps }));
        }
        HostRun { host, endpoint, book }
    };
    hosts.into_iter().map(see).collect()
}

pub(super) fn report(watch: &Observer, hosts: &[HostRun], lead_in_ps: u64) {
    let mut watch = watch.lock();
    watch.flush(i64::MAX);
    for book in hosts.iter().map(|running| &running.book) {
        for entry in &book.log {
            if let Some(first) = book.first.get(&entry.connection) {
                watch.report(scenario(entry.at.ps(), lead_in_ps), *first, &entry.event);
            }
        }
    }
}

/// Counts what a host receives.
#[derive(Debug)]
struct Counter {
    arrivals: Arc<DeliverySeries<AtomicU64>>,
    /// Due time of the last received frame: one that the machine delayed counts at this time.
    due_ps: Arc<AtomicU64>,
}

impl Tap for Counter {
    fn on_stored(&mut self, _now: Time, _frame: &[u8], bytes: u64) {
        self.arrivals.add(self.due_ps.load(Ordering::Relaxed), bytes);
    }
}
