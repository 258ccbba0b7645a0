//! Shared by the examples: reads the command line and sets up the endpoints.
#![allow(dead_code, reason = "each example uses its part")]

use std::net::IpAddr;

use spray_nic::aio::{Destination, Endpoint};
use spray_nic::device::MemoryNetwork;
use spray_nic::{EndpointConfig, Peer};

pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The role that the command line selects.
pub enum Role {
    /// `server INTERFACE`
    Server(Endpoint),
    /// `client INTERFACE ADDRESS`
    Client(Endpoint, IpAddr),
    /// `--memory`: both sides in this process.
    Memory { server: Endpoint, client: Endpoint },
}

/// Reads the command line; returns the role and the arguments after it.
pub fn role() -> Outcome<(Role, Vec<String>)> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Ok(match words[..] {
        ["server", interface, ref rest @ ..] => (Role::Server(Endpoint::open(interface)?), owned(rest)),
        ["client", interface, address, ref rest @ ..] => {
            (Role::Client(Endpoint::open(interface)?, address.parse()?), owned(rest))
        }
        ["--memory", ref rest @ ..] => {
            let network = MemoryNetwork::default();
            let host = |number| -> Outcome<Endpoint> {
                let mac = [2, 0, 0, 0, 0, number];
                let config = EndpointConfig::real([10, 0, 0, number].into(), mac, 3498)?;
                Ok(Endpoint::spawn(network.attach(mac), config)?)
            };
            (Role::Memory { server: host(1)?, client: host(2)? }, owned(rest))
        }
        _ => return Err("arguments: server INTERFACE ..., client INTERFACE ADDRESS ..., or --memory ...".into()),
    })
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

/// Runs the selected role, or both in one process.
pub async fn run_role(
    role: Role,
    run_server: impl AsyncFn(Endpoint) -> Outcome,
    run_client: impl AsyncFn(Endpoint, Destination) -> Outcome,
) -> Outcome {
    match role {
        Role::Server(endpoint) => {
            let Peer { address, .. } = endpoint.local();
            println!("listening on {address}");
            run_server(endpoint).await
        }
        Role::Client(endpoint, address) => run_client(endpoint, address.into()).await,
        Role::Memory { server, client } => {
            let to = server.local().into();
            tokio::select! {
                served = run_server(server) => served,
                asked = run_client(client, to) => asked,
            }
        }
    }
}
