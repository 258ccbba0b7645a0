//! Several queues of one interface.

use super::*;
use spray_wire::{Body, Common, Ecn, Envelope, EvPort, Ports, Probe};

fn open_all(interface: &str, most: u32, shards: usize) -> Result<Vec<XskInterface>, OpenError> {
    XskInterface::open_all(&XskConfig::new(interface, 0), most, shards, Ports::DEFAULT)
}

#[test]
fn each_queue_is_a_device() {
    if !has_root() {
        return;
    }
    let open_both = |interface: &str| {
        let steer = Steer::attach(interface);
        let devices = [0, 1].map(|queue| XskDevice::open(&XskConfig::new(interface, queue)).unwrap());
        devices.iter().for_each(|device| steer.register(device.queue(), device.fd()));
        (devices, steer)
    };
    let barrier = TimedBarrier::default();
    let sender = |interface: &str| {
        let (mut devices, _steer) = open_both(interface);
        barrier.wait();
        for (device, base) in devices.iter_mut().zip([1000, 2000]) {
            assert_eq!((device.interface(), device.queue()), ("spray-d0", (base / 1000 - 1) as u32));
            (base..base + 100).for_each(|sequence| assert!(send(device, sequence, 100)));
            device.flush().unwrap();
        }
        barrier.wait();
    };
    let receiver = |interface: &str| {
        let (mut devices, _steer) = open_both(interface);
        barrier.wait();
        for (device, base) in devices.iter_mut().zip([1000, 2000]) {
            let mut out = Vec::with_capacity(100);
            eventually("the queue's frames", || {
                device.receive(&mut out, 100).unwrap();
                out.len() == 100
            });
            assert!(out.iter().zip(base..).all(|(got, sequence)| read(device.frame(&got.frame, got.len)) == sequence));
            device.audit().unwrap();
        }
        barrier.wait();
    };
    run_on_veth(MTU, sender, receiver);
}

#[test]
fn queues_together_are_one_device() {
    if !has_root() {
        return;
    }
    let barrier = TimedBarrier::default();
    let left = |interface: &str| {
        let steer = Steer::attach(interface);
        let second = XskDevice::open(&XskConfig::new(interface, 1)).unwrap();
        let busy = open_all(interface, 64, 1).unwrap_err().to_string();
        assert!(
            busy.starts_with("queue 1 of `spray-d0` is in use") && busy.contains("`ethtool -L spray-d0 rx 1`"),
            "{busy}"
        );
        let mut devices = [XskDevice::open(&XskConfig::new(interface, 0)).unwrap(), second];
        devices.iter().for_each(|device| steer.register(device.queue(), device.fd()));
        barrier.wait();
        // More than a batch on either queue; the second queue receives first.
        for (device, base) in devices.iter_mut().zip([1000, 2000]).rev() {
            (base..base + 100).for_each(|sequence| assert!(send(device, sequence, 100)));
            device.flush().unwrap();
            barrier.wait();
        }
        let mut counts = [0, 0];
        eventually("all answers", || {
            for (device, count) in devices.iter_mut().zip(&mut counts) {
                let mut out = Vec::with_capacity(64);
                *count += device.receive(&mut out, 64).unwrap();
                out.into_iter().for_each(|arrival| device.release(arrival.frame));
                device.flush().unwrap();
            }
            counts == [110, 100]
        });
        barrier.wait();
    };
    let right = |interface: &str| {
        let steer = Steer::attach(interface);
        let many = open_all(interface, 1, 1).unwrap_err().to_string();
        assert!(many.starts_with("`spray-d1` has 2 queues, and 1 can be served."), "{many}");
        let mut device = open_all(interface, 2, 1).unwrap().remove(0);
        assert_eq!(device.queues().len(), 2);
        device.queues().iter().for_each(|queue| steer.register(queue.queue(), queue.fd()));
        assert_eq!(device.frame_counts().total, 2 * 4096);
        barrier.wait();
        let mut out = Vec::with_capacity(256);
        for arrived in [100, 200] {
            let mut fds = [crate::sys::poll_fd(device.info().wake_fd.unwrap())];
            crate::sys::wait_readable(&mut fds, Duration::from_secs(10));
            assert_ne!(fds[0].revents, 0);
            eventually("both queues' frames", || {
                device.receive(&mut out, 200).unwrap();
                device.flush().unwrap();
                out.len() == arrived
            });
            barrier.wait();
        }
        let mut sequences: Vec<u64> = out.iter().map(|got| read(device.frame(&got.frame, got.len))).collect();
        sequences.sort_unstable();
        assert!(sequences.into_iter().eq((1000..1100).chain(2000..2100)));
        assert_eq!((device.frame_counts().held, device.stats().rx), (200, 200));
        device.audit().unwrap();
        // A received frame is sent back on its receive queue, a new one on the first queue.
        for received in out {
            write(device.frame_mut(&received.frame), 7);
            device.transmit(received.frame, received.len).unwrap();
        }
        for _ in 0..10 {
            let frame = device.allocate().unwrap();
            write(device.frame_mut(&frame), 8);
            device.transmit(frame, 100).unwrap();
        }
        eventually("everything to go", || {
            device.flush().unwrap();
            device.frame_counts().tx == 0
        });
        assert_eq!((device.frame_counts().held, device.stats().tx), (0, 210));
        device.audit().unwrap();
        barrier.wait();
    };
    run_on_veth(MTU, left, right);
}

/// Writes a frame of the transport to the given port of the host, with a number in it.
fn write_to(port: u8, number: u64, space: &mut [u8]) -> u32 {
    let envelope = Envelope {
        src_mac: [2, 0, 0, 0, 0, 1],
        dst_mac: [0xff; 6],
        src: [10, 0, 0, 1].into(),
        dst: [10, 0, 0, 2].into(),
        src_port: EvPort::new(50_000),
        dst_port: Ports::DEFAULT.at(port),
        dscp: 0,
        ecn: Ecn::NotEct,
        ttl: 64,
    };
    let probe = Body::Probe(Probe { token: number, timestamp: crate::Time::ZERO });
    spray_wire::emit(space, &envelope, &Common::default(), &probe, &[]).unwrap() as u32
}

fn number_in(frame: &[u8]) -> u64 {
    match spray_wire::parse(frame, Ports::DEFAULT).unwrap().unwrap().body {
        Body::Probe(Probe { token, .. }) => token,
        other => panic!("{other:?}"),
    }
}

#[test]
fn shards_forward_misrouted_frames() {
    /// Frames to each port on each queue per round; those to three ports fit veth's ring.
    const EACH: u64 = 60;
    /// With these rounds there are more frames than a queue has: forwarded frames must return.
    const ROUNDS: u64 = 80;
    if !has_root() {
        return;
    }
    let barrier = TimedBarrier::default();
    let left = |interface: &str| {
        let steer = Steer::attach(interface);
        let mut devices = [0, 1].map(|queue| XskDevice::open(&XskConfig::new(interface, queue)).unwrap());
        devices.iter().for_each(|device| steer.register(device.queue(), device.fd()));
        barrier.wait();
        for round in 0..ROUNDS {
            for device in &mut devices {
                for (port, number) in (0..3).flat_map(|port| (0..EACH).map(move |number| (port, number))) {
                    let frame = device.allocate().unwrap();
                    let len = write_to(port, round * EACH + number, device.frame_mut(&frame));
                    device.transmit(frame, len).unwrap();
                }
                eventually("everything to go", || {
                    device.flush().unwrap();
                    device.frame_counts().tx == 0
                });
            }
            barrier.wait();
        }
    };
    let right = |interface: &str| {
        let steer = Steer::attach(interface);
        let mut shards = open_all(interface, 2, 2).unwrap();
        assert_eq!(queues_of_each(&shards), [1, 1]);
        shards.iter().flat_map(XskInterface::queues).for_each(|queue| steer.register(queue.queue(), queue.fd()));
        barrier.wait();
        for round in 0..ROUNDS {
            // Ports 0 and 2 belong to the first shard, on either queue, and port 1 to the other.
            let mut out = [(); 2].map(|()| Vec::with_capacity(6 * EACH as usize));
            eventually("each shard's frames", || {
                for (shard, out) in shards.iter_mut().zip(&mut out) {
                    shard.receive(out, 256).unwrap();
                    shard.flush().unwrap();
                }
                [out[0].len(), out[1].len()].map(|frames| frames as u64) == [4 * EACH, 2 * EACH]
            });
            for (shard, out) in shards.iter_mut().zip(out) {
                for Received { frame, len, .. } in out {
                    let number = number_in(shard.frame(&frame, len));
                    assert!((round * EACH..(round + 1) * EACH).contains(&number), "{number}");
                    shard.frame_mut(&frame)[0] = 0;
                    if number == 0 {
                        // Regardless of the queue on which it arrived.
                        shard.transmit(frame, len).unwrap();
                    } else {
                        shard.release(frame);
                    }
                }
                shard.flush().unwrap();
            }
            barrier.wait();
        }
        eventually("every frame to be back", || {
            shards.iter_mut().for_each(|shard| drop((shard.receive(&mut Vec::with_capacity(1), 1), shard.flush())));
            shards.iter().all(|shard| shard.frame_counts().held == 0)
        });
        shards.iter().for_each(|shard| shard.audit().unwrap());
        let handed_over: Vec<u64> = shards.iter().map(|shard| shard.stats().handed_over).collect();
        assert_eq!(handed_over, [ROUNDS * EACH, 2 * ROUNDS * EACH]);
        assert!(shards.iter().all(|shard| shard.interface_rx_frames() == 6 * ROUNDS * EACH));
        // A frame that is forwarded to a closed shard is dropped, and its buffer is not lost.
        drop(shards.pop());
        let mut out = Vec::with_capacity(64);
        assert_eq!(shards[0].receive(&mut out, 64).unwrap(), 0);
    };
    run_on_veth(MTU, left, right);
}

/// Returns the number of queues of each shard.
fn queues_of_each(shards: &[XskInterface]) -> Vec<usize> {
    shards.iter().map(|shard| shard.queues().len()).collect()
}

#[test]
fn a_sleeping_shard_is_woken_by_another() {
    if !has_root() {
        return;
    }
    let barrier = TimedBarrier::default();
    let left = |interface: &str| {
        let steer = Steer::attach(interface);
        let mut device = XskDevice::open(&XskConfig::new(interface, 0)).unwrap();
        steer.register(0, device.fd());
        barrier.wait();
        let frame = device.allocate().unwrap();
        let len = write_to(1, 7, device.frame_mut(&frame));
        device.transmit(frame, len).unwrap();
        device.flush().unwrap();
        barrier.wait();
    };
    let right = |interface: &str| {
        let steer = Steer::attach(interface);
        let mut shards = open_all(interface, 2, 2).unwrap();
        shards.iter().flat_map(XskInterface::queues).for_each(|queue| steer.register(queue.queue(), queue.fd()));
        let mut out = Vec::with_capacity(1);
        for _ in 0..100 {
            assert_eq!(shards[1].receive(&mut out, 1).unwrap(), 0);
        }
        barrier.wait();
        let [first, second] = &mut shards[..] else { panic!("two") };
        let wake = |shard: &XskInterface| {
            let mut fds = [crate::sys::poll_fd(shard.info().wake_fd.unwrap())];
            crate::sys::wait_readable(&mut fds, Duration::from_secs(10));
            assert_ne!(fds[0].revents, 0);
        };
        wake(first);
        assert_eq!(first.receive(&mut Vec::with_capacity(1), 1).unwrap(), 0);
        wake(second);
        assert_eq!(second.receive(&mut out, 1).unwrap(), 1);
        assert_eq!(number_in(second.frame(&out[0].frame, out[0].len)), 7);
        barrier.wait();
    };
    run_on_veth(MTU, left, right);
}

#[test]
fn many_queues_share_the_memory_of_eight() {
    let config = XskConfig::new("spray-none", 0);
    let of = |queues| {
        let XskConfig { frames, fill_ring, tx_ring, .. } = queues::share(&config, queues);
        (frames, fill_ring, tx_ring)
    };
    assert_eq!(
        [of(1), of(8), of(9), of(64)],
        [(4096, 2048, 2048), (4096, 2048, 2048), (2048, 1024, 1024), (512, 256, 256)]
    );
    assert_eq!(of(4096), (128, 64, 64), "a batch at least");
}

#[test]
fn the_fill_ring_fills_the_nics_ring() {
    let config = XskConfig::new("spray-none", 0);
    let of = |nic_ring| {
        let XskConfig { frames, fill_ring, rx_ring, .. } = config.filling(nic_ring);
        (frames, fill_ring, rx_ring)
    };
    assert_eq!([of(0), of(512), of(2048)], [(4096, 2048, 2048); 3]);
    assert_eq!([of(3000), of(4096)], [(6144, 4096, 4096); 2]);
    assert_eq!(of(u32::MAX), (18_432, 16_384, 16_384), "a driver may report any size");
}
