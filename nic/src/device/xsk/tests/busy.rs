//! Sockets that poll the driver.

use std::path::Path;

use super::*;
use crate::device::BusyPoll;
use crate::net::Interface;
use crate::{Host, HostConfig};

/// Shows this thread the /sys of its network namespace.
fn own_sys() {
    // SAFETY: takes a flag only, and changes this thread alone; all strings end in a NUL.
    let outcome = unsafe {
        libc::unshare(libc::CLONE_NEWNS)
            | libc::mount(
                c"none".as_ptr(),
                c"/".as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                std::ptr::null(),
            )
            | libc::mount(c"sysfs".as_ptr(), c"/sys".as_ptr(), c"sysfs".as_ptr(), 0, std::ptr::null())
    };
    assert_eq!(outcome, 0, "{}", io::Error::last_os_error());
}

fn values(interface: &str) -> [String; 2] {
    let folder = Path::new("/sys/class/net").join(interface);
    ["napi_defer_hard_irqs", "gro_flush_timeout"].map(|file| std::fs::read_to_string(folder.join(file)).unwrap())
}

fn open_polling(interface: &str) -> Host<XskInterface> {
    let mut config = HostConfig::of(interface).unwrap();
    config.sockets.busy_poll = BusyPoll::On;
    Host::open_with(config).unwrap()
}

#[test]
fn interrupts_are_off_for_as_long_as_the_sockets_poll() {
    if !has_root() {
        return;
    }
    let test = |interface: &str| {
        ip(&format!("address add 10.77.0.1/24 dev {interface}"));
        let host = open_polling(interface);
        assert_eq!(host.endpoint.device().busy_polls(), Some(false), "/sys is another namespace's");
        drop(host);
        own_sys();
        let host = open_polling(interface);
        assert_eq!(host.endpoint.device().busy_polls(), Some(true));
        assert_eq!(values(interface), ["2\n", "200000\n"]);
        drop(host);
        assert_eq!(values(interface), ["0\n", "0\n"]);
        // By default not with a driver of which nobody says that it wins.
        drop(Host::open(interface).map(|host| assert_eq!(host.endpoint.device().busy_polls(), None)).unwrap());
        // What somebody else has set stays.
        let own = Interface::find(interface).unwrap().folder().unwrap().join("gro_flush_timeout");
        std::fs::write(own, "7").unwrap();
        drop(open_polling(interface));
        assert_eq!(values(interface), ["0\n", "7\n"]);
    };
    joined(MTU, |interface| up(interface, MTU), test);
}

/// Frames come and go, and a receiver that only looks at its ring gets all of them.
#[test]
fn a_thread_that_polls_receives_everything() {
    if !has_root() {
        return;
    }
    const FRAMES: u64 = 20_000;
    let (ready, over) = (Meeting::default(), Meeting::default());
    let open = |interface: &str| {
        yield_to_softirq();
        let steer = Steer::attach(interface);
        let config = XskConfig { busy_poll: BusyPoll::On, ..XskConfig::new(interface, 0) };
        let device = XskDevice::open(&config).unwrap();
        assert!(device.busy_polls());
        steer.register(0, device.fd());
        ready.wait();
        (device, steer)
    };
    let sender = |interface: &str| {
        let (mut device, _steer) = open(interface);
        let (mut sent, mut patience) = (0, Patience::new());
        while sent < FRAMES {
            // A veth's ring holds 256 frames.
            (0..32).for_each(|_| sent += u64::from(send(&mut device, sent, 1000)));
            device.flush().unwrap();
            std::thread::sleep(Duration::from_micros(200));
            patience.check(sent, || device.audit().unwrap_err());
        }
        over.wait();
        device.audit().unwrap();
    };
    let receiver = |interface: &str| {
        let (mut device, _steer) = open(interface);
        let (mut next, mut out, mut patience) = (0, Vec::with_capacity(64), Patience::new());
        while next < FRAMES {
            device.receive(&mut out, 64).unwrap();
            for Received { frame, len } in out.drain(..) {
                assert_eq!(read(device.frame(&frame, len)), next);
                next += 1;
                device.release(frame);
            }
            device.flush().unwrap();
            patience.check(next, || format!("{:?}", device.stats()));
        }
        over.wait();
        device.audit().unwrap();
    };
    joined(MTU, sender, receiver);
}
