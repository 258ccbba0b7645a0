//! Interfaces that are set down or removed.

use super::*;

#[test]
fn an_interface_that_is_down_is_an_error_until_it_returns() {
    if !has_root() {
        return;
    }
    let (ready, over) = (TimedBarrier::default(), TimedBarrier::default());
    let sender = |interface: &str| {
        let (mut device, _steer) = open(interface);
        ready.wait();
        ip(&format!("link set {interface} down"));
        assert!(send(&mut device, 5, 60));
        let down = device.flush().unwrap_err();
        assert_eq!(down.kind(), ErrorKind::NetworkDown);
        assert!(!device.is_gone());
        assert_eq!(device.frame_counts().tx, 1, "what is queued stays queued");
        device.audit().unwrap();
        up(interface, MTU);
        eventually("the frame to go", || {
            device.flush().unwrap();
            device.frame_counts().tx == 0
        });
        over.wait();
    };
    let receiver = |interface: &str| {
        let (mut device, _steer) = open(interface);
        let mut out = Vec::with_capacity(64);
        ready.wait();
        eventually("the frame", || device.receive(&mut out, 64).unwrap() > 0);
        assert_eq!(read(device.frame(&out[0].frame, out[0].len)), 5);
        over.wait();
    };
    run_on_veth(MTU, sender, receiver);
}

#[test]
fn a_removed_interface_is_an_error_also_for_receivers() {
    if !has_root() {
        return;
    }
    let (ready, over) = (TimedBarrier::default(), TimedBarrier::default());
    let remover = |interface: &str| {
        let (mut device, _steer) = open(interface);
        ready.wait();
        ip(&format!("link delete {interface}"));
        assert!(send(&mut device, 5, 60));
        assert!(device.flush().is_err() && device.is_gone());
        device.audit().unwrap();
        over.wait();
    };
    let receiver = |interface: &str| {
        let (mut device, _steer) = open(interface);
        let mut out = Vec::with_capacity(64);
        ready.wait();
        let mut error = None;
        eventually("the error", || {
            error = (0..RECEIVES_PER_CHECK).find_map(|_| device.receive(&mut out, 64).err());
            error.is_some()
        });
        assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::NetworkDown));
        let again = (0..RECEIVES_PER_CHECK).find_map(|_| device.receive(&mut out, 64).err());
        assert!(device.is_gone() && again.is_some(), "the kernel reports it once, the device always");
        over.wait();
    };
    run_on_veth(MTU, remover, receiver);
}
