//! State in bytes: REPS's footprint (REPS §3.2, table 1) and Flowcut's model (Flowcut §III-A2).

use super::parameters::Parameters;
use crate::figures::measures::{Measures, named};
use crate::flowcut_memory::{Dimensions, StateLocation};

/// An element of REPS's buffer: entropy value and validity.
const ELEMENT_BITS: f64 = 16.0 + 1.0;
/// Head, number of valid values, end of freezing, freezing flag, exploration counter.
const GLOBAL_BITS: f64 = 8.0 + 8.0 + 32.0 + 1.0 + 8.0;

/// Returns `bits` and `bytes` of a connection with a buffer of `elements` (REPS table 1).
pub(super) fn reps(parameters: &Parameters<'_>) -> Result<Measures, String> {
    let bits = GLOBAL_BITS + ELEMENT_BITS * parameters.number("elements")?;
    Ok(named([("bits", bits), ("bytes", (bits / 8.0).ceil())]))
}

/// Returns the state of a `keeper` in a network of `hosts` at `gbps` with round trip `rtt_us`.
pub(super) fn flowcut(parameters: &Parameters<'_>) -> Result<Measures, String> {
    let name = parameters.text("keeper")?;
    let keeper = match name {
        "full-switch" => StateLocation::FlowcutFullSwitch,
        "ingress-switch" => StateLocation::FlowcutIngressSwitch,
        "nic" => StateLocation::FlowcutNic,
        "flowlet" => StateLocation::FlowletSwitch,
        "flowcell" => StateLocation::FlowcellSwitch,
        _ => return Err(format!("there is no keeper `{name}`")),
    };
    let network = Dimensions {
        hosts: parameters.count("hosts")? as u32,
        gbps: parameters.number("gbps")?,
        rtt_us: parameters.number("rtt_us")?,
        flows_per_host: parameters.count("flows_per_host")? as u32,
        ..Dimensions::default()
    };
    let (bytes, each) = (network.bytes(keeper), f64::from(keeper.bytes_per_flow()));
    Ok(named([("bytes", bytes), ("kib", bytes / 1024.0), ("mib", bytes / 1_048_576.0), ("bytes_per_flow", each)]))
}
