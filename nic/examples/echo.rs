//! A server that sends every message back, and clients that check: the async API, over a network in memory.
//!
//! `cargo run --release -p spray-nic --example echo`

use std::{net::IpAddr, time::Duration};

use spray_core::{
    cc::CcConfig,
    flow::FlowConfig,
    loss::RtoConfig,
    path::{BalancerKind, PathConfig},
};
use spray_nic::{
    EndpointConfig, Mode, Peer,
    aio::{Connection, Endpoint, Error},
    device::{MemoryConfig, MemoryNetwork},
};
use spray_wire::{Kind, header_bytes};

const RTT_PS: u64 = 100_000_000;
const LINK_BPS: u64 = 10_000_000_000;
const PAYLOAD: u32 = 3000;
const CLIENTS: u8 = 4;
const MESSAGES: usize = 100;

fn host(number: u8) -> Peer {
    Peer { address: IpAddr::from([10, 0, 0, number]), mac: [2, 0, 0, 0, 0, number] }
}

fn spawn(network: &MemoryNetwork, number: u8) -> Result<Endpoint, Error> {
    let header = header_bytes(false, Kind::Data) as u32;
    let path = PathConfig::new(BalancerKind::Reps, RTT_PS, 40);
    // The threads of this example share the machine's cores: a round trip may take milliseconds.
    let rto = RtoConfig { initial_ps: 20_000_000_000, min_ps: 20_000_000_000, max_ps: 200_000_000_000 };
    let cc = CcConfig::for_path(RTT_PS, LINK_BPS, PAYLOAD + header);
    let flow = FlowConfig { rto, give_up_ps: 2_000_000_000_000, ..FlowConfig::for_path(PAYLOAD, header, path, cc) };
    let Peer { address, mac } = host(number);
    Endpoint::spawn(network.attach(mac), EndpointConfig::new(address, mac, Mode::Real, flow))
}

async fn echo(mut connection: Connection) -> Result<(), Error> {
    while let Some(message) = connection.recv().await? {
        connection.send(message.data).await?;
    }
    Ok(())
}

async fn client(endpoint: Endpoint, number: u8) -> Result<Duration, Error> {
    let start = tokio::time::Instant::now();
    let mut connection = endpoint.connect(host(1)).await?;
    for size in 0..MESSAGES {
        let data = bytes::Bytes::from(vec![number; 1000 * size]);
        connection.send(data.clone()).await?;
        let answer = connection.recv().await?;
        assert!(answer.is_some_and(|answer| answer.data == data), "the same bytes come back");
    }
    connection.close().await?;
    Ok(start.elapsed())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let network = MemoryNetwork::new(MemoryConfig::default());
    let server = spawn(&network, 1)?;
    tokio::spawn(async move {
        while let Ok(connection) = server.accept().await {
            tokio::spawn(echo(connection));
        }
    });
    let mut clients = tokio::task::JoinSet::new();
    for number in 2..2 + CLIENTS {
        clients.spawn(client(spawn(&network, number)?, number));
    }
    for elapsed in clients.join_all().await {
        println!("{MESSAGES} messages there and back in {:?}", elapsed?);
    }
    Ok(())
}
