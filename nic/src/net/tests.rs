//! Queries of interfaces, on a veth pair in a namespace of the test's thread.

use std::process::Command;

use super::Interface;
use super::drivers::mtu_limit;
use super::ethtool::Ethtool;
use super::xdp_features::XdpFeatures;
use crate::xdp::{AttachMode, SteerProgram};

/// Runs `test` in a new namespace with a veth pair, `eth0` and `eth1`, both up.
fn in_namespace(test: impl FnOnce() + Send) {
    if !spray_test_support::has_root() {
        return;
    }
    std::thread::scope(|scope| {
        let run = || {
            // SAFETY: takes a flag only, and changes this thread alone.
            assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0);
            ip("link add eth0 type veth peer name eth1");
            ip("link set eth0 up");
            ip("link set eth1 up");
            test();
        };
        scope.spawn(run).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("iproute2 is installed");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

fn attach(interface: &Interface) -> (SteerProgram, AttachMode) {
    let mut steer = SteerProgram::load(interface.mac, &[], spray_wire::Ports::DEFAULT).unwrap();
    let mode = steer.attach(interface.index).unwrap();
    (steer, mode)
}

#[test]
fn an_interface_is_found_by_every_name() {
    in_namespace(|| {
        let long = "an-altname-longer-than-names-may-be";
        ip("link property add dev eth0 altname other");
        ip(&format!("link property add dev eth0 altname {long}"));
        let found = Interface::find("eth0").unwrap();
        assert_eq!((found.kind.as_deref(), found.up, found.carrier), (Some("veth"), true, true));
        assert_eq!(found.altnames, [long, "other"].map(String::from).to_vec().into_iter().rev().collect::<Vec<_>>());
        for name in ["other", long] {
            assert_eq!(Interface::find(name).unwrap(), found, "by {name}");
        }
        let (_steer, _) = attach(&found);
        let now = Interface::find("eth0").unwrap();
        assert_eq!((now.xdp_program.is_some(), now.xdp_mode), (true, Some(AttachMode::Native)));
        ip("link set eth1 down");
        let cut = Interface::find("eth0").unwrap();
        assert!(!cut.carrier && cut.carrier_changes > found.carrier_changes, "{cut:?}");
    });
}

#[test]
fn members_of_a_bridge_name_it() {
    in_namespace(|| {
        ip("link add br0 type bridge");
        ip("link set eth1 master br0");
        let all = Interface::all().unwrap();
        let bridge = all.iter().find(|interface| interface.name == "br0").unwrap();
        let members: Vec<_> = bridge.members(&all).map(|member| member.name.as_str()).collect();
        assert_eq!((bridge.kind.as_deref(), members), (Some("bridge"), vec!["eth1"]));
    });
}

#[test]
fn settings_of_a_veth_are_read_and_written() {
    in_namespace(|| {
        let ethtool = Ethtool::open("eth0").unwrap();
        let driver = ethtool.driver().unwrap();
        assert_eq!((driver.name.as_str(), driver.bus.as_str()), ("veth", ""));
        assert_eq!(ethtool.channels().unwrap().rx_queues(), 1);
        assert_eq!(ethtool.link_bps().unwrap(), 10_000_000_000);
        let forwarding = "rx-udp-gro-forwarding";
        assert_eq!(ethtool.feature(forwarding).unwrap(), Some(false));
        ethtool.set_feature(forwarding, true).unwrap();
        assert_eq!(ethtool.feature(forwarding).unwrap(), Some(true));
        assert_eq!(ethtool.feature("rx-lro").unwrap(), None, "veth cannot");
        assert!(ethtool.set_feature("rx-lro", true).unwrap_err().to_string().contains("refuses to change rx-lro"));
        ethtool.set_mtu(2000).unwrap();
        assert_eq!((ethtool.mtu().unwrap(), Interface::find("eth0").unwrap().mtu), (2000, 2000));
    });
}

/// Checks the only row of the table that needs no hardware.
#[test]
fn the_maximum_mtu_of_a_veth_is_that_of_the_table() {
    in_namespace(|| {
        let limit = mtu_limit("veth").unwrap();
        ip(&format!("link set eth1 mtu {limit}"));
        let eth0 = Interface::find("eth0").unwrap();
        assert_eq!(attach(&eth0).1, AttachMode::Native);
        ip(&format!("link set eth1 mtu {}", limit + 1));
        assert_eq!(attach(&eth0).1, AttachMode::Generic, "the peer's frames are longer than a buffer");
    });
}

#[test]
fn a_veth_declares_native_xdp_if_the_kernel_reports_it() {
    in_namespace(|| match XdpFeatures::query(Interface::find("eth0").unwrap().index) {
        Ok(declared) => assert!(declared.native() && declared.redirect() && !declared.zero_copy(), "{declared:?}"),
        Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOENT)),
    });
}
