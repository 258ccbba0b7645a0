//! The ports that lead to hosts: each host plays its own, others look at it meanwhile.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use spray_fabric::{ChassisSpec, Fabric, Node, PortCounters};
use spray_nic::endpoint;
use spray_pipeline::last_port::{Delivery, LastPort};

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct HostPort(Arc<LastPort<AtomicU64>>);

impl HostPort {
    /// That of every port of `fabric` by its number; `None` for those that lead to switches.
    pub fn all(fabric: &Fabric, frame_bytes: u32) -> Vec<Option<Self>> {
        let spec = ChassisSpec { frame_bytes, ..ChassisSpec::whole(fabric) };
        let port = |(number, port): (usize, &spray_fabric::Port)| {
            matches!(port.to, Node::Host(_))
                .then(|| Self(Arc::new(LastPort::new(number as u32, fabric.seed, spec.port(port)))))
        };
        fabric.ports.iter().enumerate().map(port).collect()
    }

    pub fn counters(&self) -> PortCounters {
        self.0.counters()
    }

    /// As [`LastPort::counters_until`].
    pub fn counters_until(&self, end_ps: u64) -> PortCounters {
        self.0.counters_until(end_ps)
    }

    /// As [`LastPort::queue_bytes`].
    pub fn queue_bytes(&self, now_ps: u64) -> [u64; 2] {
        self.0.queue_bytes(now_ps)
    }
}

impl endpoint::LastPort for HostPort {
    fn latency_ps(&self) -> u64 {
        self.0.latency_ps()
    }

    fn play(&mut self, frame: &mut [u8]) -> Option<(u64, u32)> {
        self.0.play(frame).ok().map(|Delivery { due_ps, len }| (due_ps, len))
    }
}
