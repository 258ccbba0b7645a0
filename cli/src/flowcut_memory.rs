//! `spray flowcut-memory`: the state of flowcuts in switches and NICs, by the paper's model.

use spray_experiments::flowcut_memory::{Claim, Network, State, claims, readable};
use spray_experiments::results::align;

use crate::args;
use crate::failure::{Failure, Outcome};
use crate::say::say;

/// Prints the state of each keeper in the network that `arguments` describe, and what the paper says of its own.
///
/// # Errors
/// None that a user could meet.
pub fn flowcut_memory(arguments: &args::FlowcutMemory) -> Outcome {
    let network = arguments.network();
    let (states, claims) = (network.states(), claims());
    if arguments.json {
        let json = serde_json::json!({ "network": network, "states": states, "paper": claims });
        say!("{}", serde_json::to_string_pretty(&json).map_err(Failure::failed)?);
        return Ok(());
    }
    say!("{}\n", about(&network));
    say!("{}", align(&["state", "active flows", "bytes each", "in all"], 1, &states.map(|state| row(&state))));
    say!("What the paper says of its own networks, with packets of 2 KiB and 64 ports a switch:\n");
    let header = ["figure", "state", "the paper", "hosts", "Gb/s", "RTT us", "formula", ""];
    say!("{}", align(&header, 3, &claims.map(|claim| against(&claim))));
    say!("{NOTE}");
    Ok(())
}

/// On the claims that the formula does not give.
const NOTE: &str = "A NIC has 244 packets in flight at 800 Gb/s and 5 us, with 10 bytes for each: the formula cannot give what the paper
says of ingress and NIC only (docs/specs/flowcut-memory.md).";

fn about(network: &Network) -> String {
    let Network { hosts, gbps, rtt_us, mtu_bytes, flows_per_host, ports_per_switch } = network;
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

fn against(claim: &Claim) -> Vec<String> {
    let Network { hosts, gbps, rtt_us, .. } = claim.network;
    vec![
        claim.figure.into(),
        claim.state.keeper.about().into(),
        claim.says.into(),
        hosts.to_string(),
        gbps.to_string(),
        rtt_us.to_string(),
        readable(claim.state.bytes),
        if claim.holds { "holds" } else { "does not hold" }.into(),
    ]
}
