//! A server that sends every message back, and a client that checks and times them.
//!
//! ```text
//! A# cargo run --release -p spray-nic --example echo -- server eth0
//! B# cargo run --release -p spray-nic --example echo -- client eth0 ADDRESS_OF_A
//!    cargo run --release -p spray-nic --example echo -- --memory
//! ```

mod support;

use spray_nic::Bytes;
use spray_nic::aio::{Connection, Destination, Endpoint, Error};
use support::{Outcome, role, run_role};
use tokio::time::Instant;

const MESSAGES: usize = 100;

async fn echo(connection: Connection) -> Result<(), Error> {
    let (sending, mut receiving) = connection.split();
    while let Some(message) = receiving.recv().await? {
        sending.send(message.data).await?;
    }
    Ok(())
}

async fn run_server(endpoint: Endpoint) -> Outcome {
    loop {
        let connection = endpoint.accept().await?;
        tokio::spawn(echo(connection));
    }
}

async fn run_client(endpoint: Endpoint, to: Destination) -> Outcome {
    let mut connection = endpoint.connect(to).await?;
    let start = Instant::now();
    for size in 0..MESSAGES {
        let data = Bytes::from(vec![size as u8; 1000 * size]);
        connection.send(data.clone()).await?;
        let answer = connection.recv().await?.ok_or("the server closed the connection")?;
        assert_eq!(answer.data, data, "the same bytes come back");
    }
    println!("{MESSAGES} messages there and back in {:?}", start.elapsed());
    Ok(connection.close().await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let (role, _) = role()?;
    run_role(role, run_server, run_client).await
}
