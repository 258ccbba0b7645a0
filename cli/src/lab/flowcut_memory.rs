//! `spray flowcut-memory`: the state of flowcuts in switches and NICs, by the paper's model.

use spray_experiments::flowcut_memory::{Dimensions, State, readable};
use spray_experiments::results::align;
use spray_tools::failure::Outcome;
use spray_tools::say;

use crate::lab::args;

/// Prints the state of each keeper in the network that `arguments` describe.
///
/// # Errors
/// None that a user could meet.
pub fn flowcut_memory(arguments: &args::FlowcutMemory) -> Outcome {
    let network = arguments.network();
    let states = network.states();
    say::object(&serde_json::json!({ "network": network, "states": states }))?;
    say!("{}\n", about(&network));
    say!("{}", align(&["state", "active flows", "bytes each", "in all"], 1, &states.map(|state| row(&state))));
    say!("`spray figures --figure flowcut/4` holds what the paper says of its own networks against the same formula.");
    Ok(())
}

fn about(network: &Dimensions) -> String {
    let Dimensions { hosts, gbps, rtt_us, mtu_bytes, flows_per_host, ports_per_switch } = network;
    let in_flight = network.packets_in_flight();
    format!(
        "{hosts} hosts at {gbps} Gb/s, packets of {mtu_bytes} bytes, acknowledged after {rtt_us} us: {in_flight:.1} in flight from each host\n\
         {flows_per_host} flows a host, {ports_per_switch} ports a switch; the most state of one switch or NIC:"
    )
}

fn row(state: &State) -> Vec<String> {
    let State { keeper, flows, bytes_per_flow, bytes } = state;
    vec![keeper.about().into(), format!("{flows:.0}"), bytes_per_flow.to_string(), readable(*bytes)]
}
