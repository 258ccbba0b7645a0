//! Copies a file over a stream: the client reads it, the server writes it.
//!
//! ```text
//! A# cargo run --release -p spray-nic --example file -- server eth0 TO
//! B# cargo run --release -p spray-nic --example file -- client eth0 ADDRESS_OF_A FROM
//!    cargo run --release -p spray-nic --example file -- --memory FROM TO
//! ```

mod support;

use spray_nic::aio::{Destination, Endpoint};
use support::{Outcome, role, run_role};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};

async fn run_server(endpoint: Endpoint, to: &str) -> Outcome {
    let mut stream = endpoint.accept().await?.into_stream();
    let mut file = File::create(to).await?;
    let bytes = copy(&mut stream, &mut file).await?;
    file.sync_all().await?;
    stream.write_u64(bytes).await?;
    stream.shutdown().await?;
    println!("received {bytes} bytes");
    Ok(())
}

async fn run_client(endpoint: Endpoint, to: Destination, from: &str) -> Outcome {
    let mut stream = endpoint.connect(to).await?.into_stream();
    let bytes = copy(&mut File::open(from).await?, &mut stream).await?;
    stream.shutdown().await?;
    let written = stream.read_u64().await?;
    assert_eq!(written, bytes, "the server wrote all bytes");
    println!("sent {bytes} bytes");
    drop(stream);
    // Waits until the client has acknowledged the server's reply.
    endpoint.close().await;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let (role, paths) = role()?;
    let [first, .., last] = [paths.first(), paths.last()].map(|path| path.map_or("", String::as_str));
    run_role(
        role,
        async |endpoint| run_server(endpoint, last).await,
        async |endpoint, to| run_client(endpoint, to, first).await,
    )
    .await
}
