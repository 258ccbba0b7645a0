//! Several queues of an interface.

use super::*;
use crate::device::xsk::queues::XskQueues;

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
    let met = Meeting::default();
    let sender = |interface: &str| {
        let (mut devices, _steer) = open_both(interface);
        met.wait();
        for (device, base) in devices.iter_mut().zip([1000, 2000]) {
            assert_eq!((device.interface(), device.queue()), ("spray-d0", (base / 1000 - 1) as u32));
            (base..base + 100).for_each(|sequence| assert!(send(device, sequence, 100)));
            device.flush().unwrap();
        }
        met.wait();
    };
    let receiver = |interface: &str| {
        let (mut devices, _steer) = open_both(interface);
        met.wait();
        for (device, base) in devices.iter_mut().zip([1000, 2000]) {
            let mut out = Vec::with_capacity(100);
            eventually("the queue's frames", || {
                device.receive(&mut out, 100).unwrap();
                out.len() == 100
            });
            assert!(out.iter().zip(base..).all(|(got, sequence)| read(device.frame(&got.frame, got.len)) == sequence));
            device.audit().unwrap();
        }
        met.wait();
    };
    joined(MTU, sender, receiver);
}

#[test]
fn queues_together_are_one_device() {
    if !has_root() {
        return;
    }
    let met = Meeting::default();
    let left = |interface: &str| {
        let steer = Steer::attach(interface);
        let second = XskDevice::open(&XskConfig::new(interface, 1)).unwrap();
        let busy = XskQueues::open_all(&XskConfig::new(interface, 0), 64).unwrap_err().to_string();
        assert!(
            busy.starts_with("queue 1 of `spray-d0` is in use") && busy.contains("`ethtool -L spray-d0 rx 1`"),
            "{busy}"
        );
        let mut devices = [XskDevice::open(&XskConfig::new(interface, 0)).unwrap(), second];
        devices.iter().for_each(|device| steer.register(device.queue(), device.fd()));
        met.wait();
        // More than a batch on either queue; the second one is alone at first.
        for (device, base) in devices.iter_mut().zip([1000, 2000]).rev() {
            (base..base + 100).for_each(|sequence| assert!(send(device, sequence, 100)));
            device.flush().unwrap();
            met.wait();
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
        met.wait();
    };
    let right = |interface: &str| {
        let steer = Steer::attach(interface);
        let many = XskQueues::open_all(&XskConfig::new(interface, 0), 1).unwrap_err().to_string();
        assert!(many.starts_with("`spray-d1` has 2 queues, and 1 can be served."), "{many}");
        let mut device = XskQueues::open_all(&XskConfig::new(interface, 0), 2).unwrap();
        assert_eq!(device.queues().len(), 2);
        device.queues().iter().for_each(|queue| steer.register(queue.queue(), queue.fd()));
        assert_eq!(device.census().total, 2 * 4096);
        met.wait();
        let mut out = Vec::with_capacity(256);
        for arrived in [100, 200] {
            let mut fds = [crate::sys::readable(device.wake_fd().unwrap())];
            crate::sys::wait_readable(&mut fds, Duration::from_secs(10));
            assert_ne!(fds[0].revents, 0);
            eventually("both queues' frames", || {
                device.receive(&mut out, 200).unwrap();
                device.flush().unwrap();
                out.len() == arrived
            });
            met.wait();
        }
        let mut sequences: Vec<u64> = out.iter().map(|got| read(device.frame(&got.frame, got.len))).collect();
        sequences.sort_unstable();
        assert!(sequences.into_iter().eq((1000..1100).chain(2000..2100)));
        assert_eq!((device.census().held, device.stats().rx), (200, 200));
        device.audit().unwrap();
        // A received frame goes back by the queue it came by, a new one by the first.
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
            device.census().tx == 0
        });
        assert_eq!((device.census().held, device.stats().tx), (0, 210));
        device.audit().unwrap();
        met.wait();
    };
    joined(MTU, left, right);
}

#[test]
fn many_queues_share_the_frames_of_eight() {
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
    assert_eq!(of(u32::MAX), (18_432, 16_384, 16_384), "a driver may say anything");
}
