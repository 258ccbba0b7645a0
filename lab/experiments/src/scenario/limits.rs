//! What a scenario may ask for of this machine and of its user's patience. The numbers are those of [`spray_fabric::limits`].

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use spray_core::link::PS_PER_S;
use spray_core::path::MAX_RTT_PS;
use spray_fabric::limits::{MAX_FLOWS, MAX_PACKETS, MAX_TIME_PS, Size};
use spray_settings::{Document, Mistake};

use super::{Paths, Scenario};

/// Less is not worth asking the machine.
const LITTLE_BYTES: u64 = 1 << 30;

/// Refuses a fabric that is too large for its tables or for this machine's memory. `path` is the setting to name.
pub(super) fn check_size(document: &Document, path: &str, size: &Size) -> Result<(), Mistake> {
    size.check().map_err(|message| document.mistake(path, message))?;
    let rule = "fewer hosts, switches or cables";
    fits_memory("the fabric and its routes", size.memory_bytes(), rule)
        .map_err(|message| document.mistake(path, message))
}

/// Refuses what is larger than the memory that is available here. It takes `bytes`; a `remedy` ends the message.
pub(crate) fn fits_memory(what: &str, bytes: u64, remedy: &str) -> Result<(), String> {
    let available = if bytes > LITTLE_BYTES { available_bytes() } else { None };
    match available.filter(|available| bytes > *available) {
        Some(available) => {
            let [needs, has] = [bytes, available].map(|bytes| bytes as f64 / f64::from(1 << 30));
            Err(format!(
                "{what} would take {needs:.1} GiB of memory, of which {has:.1} GiB are free; allowed: {remedy}"
            ))
        }
        None => Ok(()),
    }
}

/// Memory that can be had without swapping, if the system tells.
fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1 << 10)
}

/// The bytes of a file that fits into memory, twice.
pub(crate) fn read_payload(file: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(file)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
    }
    let length = file.metadata()?.len();
    fits_memory("the payload", length.saturating_mul(2), "a smaller file").map_err(io::Error::other)?;
    let mut bytes = Vec::with_capacity(length as usize);
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Refuses paths that are longer than connections count with.
pub(super) fn check_rtt(document: &Document, scenario: &Scenario, paths: &Paths) -> Result<(), Mistake> {
    let rtt_ps = scenario.base_rtt_ps(paths);
    if rtt_ps > MAX_RTT_PS {
        let [rtt, most] = [rtt_ps, MAX_RTT_PS].map(|ps| ps / 1_000_000);
        let message = format!("the longest base RTT is {rtt} us; allowed: at most {most}: shorter or faster cables");
        return Err(document.mistake("topology", message));
    }
    Ok(())
}

/// Refuses more time, packets or samples than a run may come to.
pub(super) fn check_run(document: &Document, scenario: &Scenario, paths: &Paths) -> Result<(), Mistake> {
    let flows = scenario.flows(scenario.seed);
    if flows.len() > MAX_FLOWS {
        let message = format!("{} flows of all workloads; allowed: at most {MAX_FLOWS}", flows.len());
        return Err(document.mistake("workload", message));
    }
    let least_ps = scenario.ideal_ps(paths, &flows);
    if least_ps > MAX_TIME_PS {
        let [least, most] = [least_ps, MAX_TIME_PS].map(|ps| ps / PS_PER_S);
        let message = format!(
            "the flows take {least} s or more at the rates of the hosts' cables; allowed: at most {most}: smaller, fewer or earlier flows"
        );
        return Err(document.mistake("workload", message));
    }
    let payload = u64::from(scenario.transport.payload_bytes);
    let packets = flows.iter().fold(0u64, |sum, flow| sum.saturating_add(flow.bytes.div_ceil(payload)));
    if packets > MAX_PACKETS {
        let rule = "smaller or fewer flows, or a larger `payload_bytes` in [transport]";
        return Err(document.mistake("workload", format!("{packets} packets; allowed: at most {MAX_PACKETS}: {rule}")));
    }
    Ok(())
}
