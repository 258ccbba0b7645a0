//! Checks of a run's size against [`spray_fabric::limits`].

use spray_core::link::PS_PER_S;
use spray_core::path::MAX_RTT_PS;
use spray_fabric::limits::{MAX_FLOWS, MAX_PACKETS, MAX_TIME_PS};
use spray_settings::{Document, Error};

use super::mistake::allow;
use super::{Paths, Scenario};

pub(super) fn check_rtt(document: &Document, scenario: &Scenario, paths: &Paths) -> Result<(), Error> {
    let rtt_ps = scenario.base_rtt_ps(paths);
    allow(document, rtt_ps <= MAX_RTT_PS, "topology", || {
        let [rtt, most] = [rtt_ps, MAX_RTT_PS].map(|ps| ps / 1_000_000);
        format!("the longest base RTT is {rtt} us; allowed: at most {most}: shorter or faster cables")
    })
}

pub(super) fn check_run(document: &Document, scenario: &Scenario, paths: &Paths) -> Result<(), Error> {
    let flows = scenario.flows(scenario.seed);
    allow(document, flows.len() <= MAX_FLOWS, "workload", || {
        format!("{} flows of all workloads; allowed: at most {MAX_FLOWS}", flows.len())
    })?;
    let least_ps = scenario.ideal_ps(paths, &flows);
    allow(document, least_ps <= MAX_TIME_PS, "workload", || {
        let [least, most] = [least_ps, MAX_TIME_PS].map(|ps| ps / PS_PER_S);
        let rule = format!("at most {most}: smaller, fewer or earlier flows");
        format!("the flows take {least} s or more at the rates of the hosts' cables; allowed: {rule}")
    })?;
    let payload = u64::from(scenario.transport.payload_bytes);
    let packets = flows.iter().fold(0u64, |sum, flow| sum.saturating_add(flow.bytes.div_ceil(payload)));
    allow(document, packets <= MAX_PACKETS, "workload", || {
        let rule = "smaller or fewer flows, or a larger `payload_bytes` in [transport]";
        format!("{packets} packets; allowed: at most {MAX_PACKETS}: {rule}")
    })
}
