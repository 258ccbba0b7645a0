//! Sockets that poll the driver.

use std::path::Path;

use super::super::busy_poll::{self, Deferral};
use super::*;
use crate::net::{Interface, drivers};

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

/// Puts interrupts off for an interface, as if its sockets polled.
fn begin(interface: &str) -> Option<Deferral> {
    let (found, asked) = (Interface::find(interface).unwrap(), polling(interface));
    Deferral::around(&found, &asked, || Ok::<_, OpenError>(()), |()| true).unwrap().1
}

fn polling(interface: &str) -> XskConfig {
    XskConfig { busy_poll: BusyPoll::On, ..XskConfig::new(interface, 0) }
}

fn eventually_off(interface: &str) {
    eventually("interrupts as before", || values(interface) == ["0\n", "0\n"]);
}

#[test]
fn interrupts_come_back_however_the_process_ends() {
    if !has_root() {
        return;
    }
    let test = |interface: &str| {
        assert!(begin(interface).is_none(), "/sys is another namespace's");
        own_sys();
        let deferral = begin(interface);
        assert_eq!(values(interface), ["2\n", "200000\n"]);
        drop(deferral);
        assert_eq!(values(interface), ["0\n", "0\n"]);
        // Sockets that turn out not to poll leave them as they are.
        let found = Interface::find(interface).unwrap();
        let none = Deferral::around(&found, &polling(interface), || Ok::<_, OpenError>(()), |()| false);
        assert!(none.unwrap().1.is_none() && values(interface) == ["0\n", "0\n"]);
        // SAFETY: the child only does what this thread has just done, and then ends.
        match unsafe { libc::fork() } {
            0 => {
                let _deferral = begin(interface);
                let were_set = values(interface) == ["2\n", "200000\n"];
                // SAFETY: plain arguments.
                unsafe { libc::kill(libc::getpid(), if were_set { libc::SIGKILL } else { libc::SIGABRT }) };
            }
            child => {
                let mut status = 0;
                // SAFETY: the pointer is to a live `int`.
                unsafe { libc::waitpid(child, &raw mut status, 0) };
                assert_eq!(status, libc::SIGKILL);
                eventually_off(interface);
            }
        }
        // What somebody else has set stays.
        std::fs::write(found.sysfs_dir().unwrap().join("gro_flush_timeout"), "7").unwrap();
        assert!(begin(interface).is_none());
        assert_eq!(values(interface), ["0\n", "7\n"]);
    };
    joined(MTU, |interface| up(interface, MTU), test);
}

/// From Linux 6.13, and before that nobody knows.
#[test]
fn a_driver_that_cannot_be_polled_is_refused_only_who_insists() {
    if !has_root() || drivers::running_kernel() < Some((6, 13)) {
        return;
    }
    let test = |interface: &str| {
        let refused = XskDevice::open(&polling(interface)).unwrap_err().to_string();
        assert!(refused.contains("nothing would be polled"), "{refused}");
        assert!(!XskDevice::open(&XskConfig::new(interface, 0)).unwrap().busy_polls());
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
    let received = AtomicU64::new(0);
    let (ready, over) = (Meeting::default(), Meeting::default());
    let open = |interface: &str| {
        yield_to_softirq();
        let steer = Steer::attach(interface);
        let mut device = XskDevice::open(&XskConfig::new(interface, 0)).unwrap();
        // A veth cannot be polled, but takes the calls.
        let _nothing = busy_poll::prefer(&device.fd());
        device.polls = true;
        steer.register(0, device.fd());
        ready.wait();
        (device, steer)
    };
    let sender = |interface: &str| {
        let (mut device, _steer) = open(interface);
        let (mut sent, mut patience) = (0, Patience::new());
        while sent < FRAMES {
            // A veth's ring holds 256 frames, however long the receiver is kept from its CPU.
            if sent - received.load(Relaxed) <= 192 {
                (0..32).for_each(|_| sent += u64::from(send(&mut device, sent, 1000)));
            }
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
            for Received { frame, len, .. } in out.drain(..) {
                assert_eq!(read(device.frame(&frame, len)), next);
                next += 1;
                device.release(frame);
            }
            received.store(next, Relaxed);
            device.flush().unwrap();
            patience.check(next, || format!("{:?}", device.stats()));
        }
        over.wait();
        device.audit().unwrap();
    };
    joined(MTU, sender, receiver);
}
