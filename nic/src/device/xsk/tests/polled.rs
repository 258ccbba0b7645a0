//! Sockets that busy-poll the driver.

use std::path::Path;

use super::super::busy_poll::{self, Deferral};
use super::*;
use crate::net::{Interface, drivers};

/// Mounts the /sys of this thread's network namespace.
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

/// Defers the interrupts of an interface, as if its sockets busy-polled.
fn begin(interface: &str) -> Option<Deferral> {
    let (found, config) = (Interface::find(interface).unwrap(), polling(interface));
    Deferral::around(&found, &config, || Ok::<_, OpenError>(()), |()| true).unwrap().1
}

fn polling(interface: &str) -> XskConfig {
    XskConfig { busy_poll: BusyPoll::On, ..XskConfig::new(interface, 0) }
}

fn eventually_off(interface: &str) {
    eventually("interrupts as before", || values(interface) == ["0\n", "0\n"]);
}

#[test]
fn interrupts_are_restored_when_the_process_ends() {
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
        // Sockets for which busy polling is unavailable leave the values unchanged.
        let found = Interface::find(interface).unwrap();
        let none = Deferral::around(&found, &polling(interface), || Ok::<_, OpenError>(()), |()| false);
        assert!(none.unwrap().1.is_none() && values(interface) == ["0\n", "0\n"]);
        // SAFETY: the child only repeats what this thread has just done, and then ends.
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
        // Values that another program has changed are not restored.
        std::fs::write(found.sysfs_dir().unwrap().join("gro_flush_timeout"), "7").unwrap();
        assert!(begin(interface).is_none());
        assert_eq!(values(interface), ["0\n", "7\n"]);
    };
    run_on_veth(MTU, |interface| up(interface, MTU), test);
}

/// Known from Linux 6.13 on; earlier kernels do not report it.
#[test]
fn a_driver_without_busy_polling_is_an_error_only_if_required() {
    if !has_root() || drivers::running_kernel() < Some((6, 13)) {
        return;
    }
    let test = |interface: &str| {
        let refused = XskDevice::open(&polling(interface)).unwrap_err().to_string();
        assert!(refused.contains("nothing would be polled"), "{refused}");
        assert!(!XskDevice::open(&XskConfig::new(interface, 0)).unwrap().busy_polls());
    };
    run_on_veth(MTU, |interface| up(interface, MTU), test);
}

/// A receiver that only looks at its ring receives all frames.
#[test]
fn a_thread_that_polls_receives_everything() {
    if !has_root() {
        return;
    }
    const FRAMES: u64 = 20_000;
    let received = AtomicU64::new(0);
    let (ready, over) = (TimedBarrier::default(), TimedBarrier::default());
    let open = |interface: &str| {
        yield_to_softirq();
        let steer = Steer::attach(interface);
        let mut device = XskDevice::open(&XskConfig::new(interface, 0)).unwrap();
        // A veth cannot be polled, but accepts the calls.
        let _nothing = busy_poll::prefer(&device.fd());
        device.polls = true;
        steer.register(0, device.fd());
        ready.wait();
        (device, steer)
    };
    let sender = |interface: &str| {
        let (mut device, _steer) = open(interface);
        let (mut sent, mut stall_check) = (0, StallCheck::new());
        while sent < FRAMES {
            // Stays below the 256 frames of veth's ring while the receiver is not scheduled.
            if sent - received.load(Relaxed) <= 192 {
                (0..32).for_each(|_| sent += u64::from(send(&mut device, sent, 1000)));
            }
            device.flush().unwrap();
            std::thread::sleep(Duration::from_micros(200));
            stall_check.check(sent, || device.audit().unwrap_err());
        }
        over.wait();
        device.audit().unwrap();
    };
    let receiver = |interface: &str| {
        let (mut device, _steer) = open(interface);
        let (mut next, mut out, mut stall_check) = (0, Vec::with_capacity(64), StallCheck::new());
        while next < FRAMES {
            device.receive(&mut out, 64).unwrap();
            for Received { frame, len, .. } in out.drain(..) {
                assert_eq!(read(device.frame(&frame, len)), next);
                next += 1;
                device.release(frame);
            }
            received.store(next, Relaxed);
            device.flush().unwrap();
            stall_check.check(next, || format!("{:?}", device.stats()));
        }
        over.wait();
        device.audit().unwrap();
    };
    run_on_veth(MTU, sender, receiver);
}
