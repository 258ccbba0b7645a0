//! Sends a file's worth of bytes over an in-memory network that loses, reorders, duplicates and
//! corrupts frames, using the polled API.
//!
//! `cargo run --release -p spray-nic --example transfer`

use std::net::IpAddr;

use spray_nic::{
    BalancerKind, Endpoint, EndpointConfig, EndpointEvent, FlowConfig, Kind, Path, Peer, Time,
    device::{Impairments, MemoryConfig, MemoryNetwork},
    header_bytes,
};

const RTT_PS: u64 = 20_000_000;
const LINK_BPS: u64 = 100_000_000_000;
const PAYLOAD: u32 = 3000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let impairments = Impairments {
        delay_ps: RTT_PS / 2,
        jitter_ps: RTT_PS / 2,
        loss_ppm: 50_000,
        duplicate_ppm: 10_000,
        corrupt_ppm: 10_000,
        ..Impairments::default()
    };
    let network = MemoryNetwork::new(MemoryConfig { impairments, ..MemoryConfig::default() });
    let header = header_bytes(false, Kind::Data) as u32;
    let flow = FlowConfig::new(BalancerKind::Reps, Path::new(RTT_PS, LINK_BPS, PAYLOAD + header), header);
    let host = |number: u8| Peer { address: IpAddr::from([10, 0, 0, number]), mac: [2, 0, 0, 0, 0, number] };
    let endpoint = |number: u8| {
        let Peer { address, mac } = host(number);
        Endpoint::new(network.attach(mac), EndpointConfig::new(address, mac, flow))
    };
    let (mut sender, mut receiver) = (endpoint(1)?, endpoint(2)?);

    let connection = sender.connect(Time::ZERO, host(2), None)?;
    let sent: Vec<u8> = (0..10_000_000u32).map(|at| (at >> 3) as u8).collect();
    sender.send(connection, sent.clone().into())?;

    let mut now = Time::ZERO;
    let elapsed_ps = loop {
        now = now.after(1_000_000);
        network.advance(now);
        sender.poll(now);
        receiver.poll(now);
        if let Some(EndpointEvent::Received { data, completed_at, .. }) = receiver.poll_event() {
            assert!(data == sent, "received other bytes than were sent");
            break completed_at.ps();
        }
    };
    let stats = sender.connection_stats(connection).unwrap_or_default().sender;
    let gbps = sent.len() as f64 * 8.0 / (elapsed_ps as f64 / 1000.0);
    println!("{} bytes in {} us of the network's time: {gbps:.1} Gb/s", sent.len(), elapsed_ps / 1_000_000);
    println!("{} packets, {} retransmissions", stats.packets_sent, stats.retransmits);
    println!("network: {:?}", network.stats());
    Ok(())
}
