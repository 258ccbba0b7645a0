//! Goodput of one connection: the client sends for some seconds, the server counts.
//!
//! ```text
//! A# cargo run --release -p spray-nic --example iperf -- server eth0
//! B# cargo run --release -p spray-nic --example iperf -- client eth0 ADDRESS_OF_A [SECONDS]
//!    cargo run --release -p spray-nic --example iperf -- --memory [SECONDS]
//! ```

mod support;

use std::time::Duration;

use spray_nic::Bytes;
use spray_nic::aio::{Destination, Endpoint};
use support::{Outcome, role, run_role};
use tokio::task::JoinSet;
use tokio::time::Instant;

const MESSAGE_BYTES: usize = 1 << 20;
/// Messages in flight at a time.
const IN_FLIGHT: usize = 16;

async fn run_server(endpoint: Endpoint) -> Outcome {
    loop {
        let mut connection = endpoint.accept().await?;
        tokio::spawn(async move {
            let (begun, mut bytes) = (Instant::now(), 0);
            while let Ok(Some(message)) = connection.recv().await {
                bytes += message.data.len();
            }
            println!("received {bytes} bytes: {}", rate(bytes, begun.elapsed()));
        });
    }
}

async fn run_client(endpoint: Endpoint, to: Destination, time: Duration) -> Outcome {
    let connection = endpoint.connect(to).await?;
    let (sending, _receiving) = connection.split();
    let (begun, data) = (Instant::now(), Bytes::from(vec![7; MESSAGE_BYTES]));
    let (mut under_way, mut messages) = (JoinSet::new(), 0);
    loop {
        while under_way.len() < IN_FLIGHT && begun.elapsed() < time {
            let (sending, data) = (sending.clone(), data.clone());
            under_way.spawn(async move { sending.send(data).await });
        }
        let Some(delivered) = under_way.join_next().await else { break };
        delivered??;
        messages += 1;
    }
    let bytes = messages * MESSAGE_BYTES;
    println!("sent {bytes} bytes: {}", rate(bytes, begun.elapsed()));
    if let Some(stats) = sending.stats().await? {
        println!("{} packets, {} retransmissions", stats.sender.packets_sent, stats.sender.retransmits);
    }
    Ok(sending.close().await?)
}

fn rate(bytes: usize, time: Duration) -> String {
    format!("{:.2} Gb/s", bytes as f64 * 8.0 / time.as_secs_f64() / 1e9)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let (role, rest) = role()?;
    let seconds = rest.first().map_or(Ok(5), |seconds| seconds.parse())?;
    run_role(role, run_server, async |endpoint, to| run_client(endpoint, to, Duration::from_secs(seconds)).await).await
}
