use std::time::Duration;

use spray_nic::device::{Device, DeviceHealth, XskDevice};

use super::rig::Rig;
use super::*;
use spray_fabric::{FabricHost, LeafSpine, Thresholds};
use spray_switch::data_frame;

mod collectives;

const RATE_BPS: u64 = 1_000_000_000_000;
const FABRIC: LeafSpine = LeafSpine::uniform([2, 2, 2], RATE_BPS, 1_000_000);
const QUEUE: Thresholds = Thresholds { limit_bytes: 4 << 20, ..OPEN_QUEUE };
/// Frames of each sender: more than veth's ring (256) and the receiver's fill ring hold together.
const FRAMES: u64 = 6_000;

fn flood(device: &mut XskDevice, from: &FabricHost, to: &FabricHost) {
    let (bytes, mut sent) = (data_frame(from, to, 1_000), 0);
    while sent < FRAMES {
        let Some(id) = device.allocate() else {
            device.flush().unwrap();
            continue;
        };
        device.frame_mut(&id)[..bytes.len()].copy_from_slice(&bytes);
        match device.transmit(id, bytes.len() as u32) {
            Ok(()) => sent += 1,
            Err(id) => device.release(id),
        }
        device.flush().unwrap();
    }
}

/// Three hosts flood a fourth that does not receive: every lost frame must be counted.
#[test]
fn every_frame_of_a_flood_arrives_or_is_counted_as_lost() {
    if !spray_test_support::has_root() {
        return;
    }
    let network = FABRIC.network();
    let queue = |_| QUEUE;
    let spec =
        FabricSpec { network: &network, events: &[], queue: &queue, packet_bytes: 3_114, per_switch: false, seed: 1 };
    let fabric = spec.compile(0).unwrap();
    let mut rig = Rig::with_frames(&spec, &fabric, socket_frames(fabric.hosts.len())).unwrap();
    let before = rig.interface_drops().unwrap();
    let (to, senders) = rig.devices.split_first_mut().unwrap();
    std::thread::scope(|scope| {
        for (number, device) in senders.iter_mut().enumerate() {
            let (from, to) = (&fabric.hosts[number + 1], &fabric.hosts[0]);
            scope.spawn(move || flood(device.as_mut().unwrap(), from, to));
        }
    });
    let receiver = to.as_mut().unwrap();
    let mut arrivals = Vec::with_capacity(64);
    let mut received = 0;
    for _ in 0..200 {
        std::thread::sleep(Duration::from_millis(1));
        while receiver.receive(&mut arrivals, 64).unwrap() > 0 {
            received += arrivals.len() as u64;
            arrivals.drain(..).for_each(|arrival| receiver.release(arrival.frame));
            receiver.flush().unwrap();
        }
    }
    let stats = receiver.stats();
    let veth = rig.interface_drops().unwrap() - before;
    let queue: u64 =
        fabric.ports.iter().enumerate().map(|(port, _)| rig.program(0).counters(port).unwrap().drops_queue).sum();
    let sent = 3 * FRAMES;
    eprintln!("{sent} sent, {received} received, {veth} lost by veth, {queue} by emulated queues, {stats:?}");
    // Interfaces also count what the socket has no room for.
    assert!(veth >= stats.rx_lost() && stats.rx_lost() >= stats.fill_empty);
    assert_eq!(sent, received + veth + queue);
    assert!(received < sent, "the flood must overload the receiver");
}
