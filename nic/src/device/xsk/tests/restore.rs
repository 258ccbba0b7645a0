//! Changes to an interface are undone after the process has ended.

use super::super::restore::RestoreOnExit;
use super::*;

/// A feature that veth has, and that can be turned on and off.
const FEATURE: &str = "rx-gro";

fn is_on(interface: &str) -> bool {
    Ethtool::open(interface).unwrap().feature(FEATURE).unwrap().unwrap()
}

fn rule(place: u32) -> Rule {
    Rule { address: [10, 0, 0, 1].into(), port: 61440, queue: 0, place }
}

/// Turns the feature on and registers the undo request. Changes registered earlier are undone
/// later.
fn begin(interface: &str) -> RestoreOnExit {
    let nic = Ethtool::open(interface).unwrap();
    let undo = RestoreOnExit::begin(interface, &[]).unwrap();
    for on in [false, true, false, true] {
        undo.add(&nic.feature_request(FEATURE, on).unwrap()).unwrap();
    }
    undo.add(&rule(7).removal()).unwrap();
    nic.set_feature(FEATURE, true).unwrap();
    undo
}

#[test]
fn driver_settings_are_restored_when_the_process_ends() {
    if !has_root() {
        return;
    }
    let test = |interface: &str| {
        Ethtool::open(interface).unwrap().set_feature(FEATURE, false).unwrap();
        let undo = begin(interface);
        assert!(is_on(interface));
        drop(undo);
        assert!(!is_on(interface));
        // SAFETY: the child only repeats what this thread has just done, and then ends.
        match unsafe { libc::fork() } {
            0 => {
                let _undo = begin(interface);
                // SAFETY: plain arguments.
                unsafe { libc::kill(libc::getpid(), if is_on(interface) { libc::SIGKILL } else { libc::SIGABRT }) };
            }
            child => {
                let mut status = 0;
                // SAFETY: the pointer is to a live `int`.
                unsafe { libc::waitpid(child, &raw mut status, 0) };
                assert_eq!(status, libc::SIGKILL);
                eventually("the feature as before", || !is_on(interface));
            }
        }
    };
    run_on_veth(MTU, |interface| up(interface, MTU), test);
}

/// Veth has no flow rules: sockets work without them, and frames are forwarded between shards.
#[test]
fn a_driver_without_flow_rules_works() {
    if !has_root() {
        return;
    }
    let test = |interface: &str| {
        let nic = Ethtool::open(interface).unwrap();
        assert_eq!(nic.feature(Feature::NTUPLE).unwrap(), None);
        assert_eq!(nic.add(rule(7)).unwrap_err().raw_os_error(), Some(libc::EOPNOTSUPP));
        assert_eq!(nic.rules().unwrap_err().raw_os_error(), Some(libc::EOPNOTSUPP));
    };
    run_on_veth(MTU, |interface| up(interface, MTU), test);
}
