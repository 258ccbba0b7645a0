//! Bare AF_XDP frames from queue 0 of one interface to queue 0 of another: the baseline for a
//! transport over the same NICs.
//!
//! ```text
//! # cargo run --release -p spray-benches --example bare_nics -- FROM TO SECONDS FRAME_BYTES
//! ```
//! Both interfaces are up, in this network namespace, and on one wire. Prints `N frames a second`,
//! counting frames that arrived.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::time::Duration;

use spray_benches::net::bare::{self, BareConfig};
use spray_nic::Ports;
use spray_nic::device::{XskConfig, XskDevice};
use spray_nic::driver::DriverOptions;
use spray_nic::net::Interface;
use spray_nic::xdp::{AttachMode, SteerProgram};
use spray_wire::{Body, Common, Data, Ecn, Envelope, Ev, Kind};

/// Maximum number of frames in flight: the ring size of most NICs.
const WINDOW: u32 = 256;
/// The links of some drivers take seconds to come back after a program is attached.
const SETTLING: Duration = Duration::from_secs(6);
/// Documentation addresses, which only the steering program reads.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, seconds, bytes] = arguments.as_slice() else { return Err("FROM TO SECONDS FRAME_BYTES".into()) };
    let [from, to] = [Interface::find(from)?, Interface::find(to)?];
    let template = frame(from.mac, to.mac, bytes.parse()?)?;
    let (mut sender, _sends) = open(&from, ADDRESSES[0])?;
    let (mut receiver, _receives) = open(&to, ADDRESSES[1])?;
    std::thread::sleep(SETTLING);
    let threads = [DriverOptions::real(); 2];
    let config =
        BareConfig { template: &template, duration: Duration::from_secs(seconds.parse()?), window: WINDOW, threads };
    let measured = bare::run(&mut sender, &mut receiver, &config)?;
    println!("{:.0} frames a second, {} sent, {} arrived", measured.received_pps(), measured.sent, measured.received);
    Ok(())
}

/// Opens a socket, and attaches the program that steers frames to it.
fn open(interface: &Interface, address: Ipv4Addr) -> Result<(XskDevice, SteerProgram), Box<dyn Error>> {
    let device = XskDevice::open(&XskConfig::new(interface.name.clone(), 0))?;
    let mut steer = SteerProgram::load(interface.mac, &[IpAddr::from(address)], Ports::DEFAULT)?;
    steer.register(0, device.as_fd())?;
    let mode = if steer.attach(interface.index)? == AttachMode::Native { "native" } else { "generic" };
    eprintln!("{}: {mode}, zero-copy: {}", interface.name, device.zero_copy());
    Ok((device, steer))
}

/// Builds a frame of the transport with `bytes` bytes.
fn frame(from: [u8; 6], to: [u8; 6], bytes: usize) -> Result<Vec<u8>, Box<dyn Error>> {
    let payload = bytes.checked_sub(spray_wire::header_bytes(false, Kind::Data)).ok_or("shorter than its headers")?;
    let payload_bytes = u16::try_from(payload)?;
    let envelope = Envelope {
        src_mac: from,
        dst_mac: to,
        src: ADDRESSES[0].into(),
        dst: ADDRESSES[1].into(),
        src_port: Ev::new(0).port(256),
        dst_port: Ports::DEFAULT.first(),
        dscp: spray_wire::DSCP_DATA,
        ecn: Ecn::Ect0,
        ttl: spray_wire::INITIAL_TTL,
    };
    let data = Data { message_bytes: payload_bytes.into(), payload_bytes, ..Data::default() };
    let mut frame = vec![0; bytes];
    spray_wire::emit(&mut frame, &envelope, &Common::default(), &Body::Data(data), &vec![0x5a; payload])
        .map_err(|error| format!("{error:?}"))?;
    Ok(frame)
}
