//! Interfaces that the library alone takes over, and one whose XDP program was not attached.

use std::net::IpAddr;
use std::ops::ControlFlow;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::Command;

use libbpf_rs::query::LinkInfoIter;

use super::*;
use crate::aio;
use crate::device::TakeOverError;
use crate::driver::{DriverOptions, Idle};
use crate::endpoint::ConnectionError;
use crate::net::{Interface, NetError};
use crate::{Host, HostConfig};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), future).await.expect("in time") })
}

fn add_address(interface: &str, host: u8) {
    ip(&format!("address add 10.77.0.{host}/24 dev {interface}"));
}

#[test]
fn interface_and_peer_address_suffice() {
    if !has_root() {
        return;
    }
    let (ready, over) = (TimedBarrier::default(), TimedBarrier::default());
    let client = |interface: &str| {
        add_address(interface, 1);
        ready.wait();
        let mut config = HostConfig::new(interface).unwrap();
        config.endpoint = config.endpoint.with_give_up(Duration::from_secs(2));
        let endpoint = aio::Endpoint::start(Host::open_with(config).unwrap(), DriverOptions::real()).unwrap();
        block_on(async {
            // The kernel resolves the neighbour; the other side's kernel answers.
            let mut connection = endpoint.connect(IpAddr::from([10, 77, 0, 2])).await.unwrap();
            connection.send(vec![7; 1_000_000].into()).await.unwrap();
            assert_eq!(connection.recv().await.unwrap().unwrap().data, "got it");
            let error = endpoint.connect(IpAddr::from([10, 77, 0, 9])).await.unwrap_err();
            assert!(error.to_string().contains("10.77.0.9, the peer itself, does not answer"), "{error}");
            assert!(matches!(error, aio::Error::NextHop(NetError::NeighbourUnreachable { .. })), "{error:?}");
            connection.close().await.unwrap();
        });
        over.wait();
    };
    let server = |interface: &str| {
        add_address(interface, 2);
        let endpoint = aio::Endpoint::open(interface).unwrap();
        let taken = aio::Endpoint::open(interface).unwrap_err();
        assert!(
            taken.to_string().contains("`steer`, held by ")
                && taken.to_string().contains(&format!("`kill {}`", std::process::id())),
            "{taken}"
        );
        assert!(matches!(taken, aio::Error::Interface(TakeOverError::Net(NetError::Busy { .. }))), "{taken:?}");
        ready.wait();
        block_on(async {
            let mut connection = endpoint.accept().await.unwrap();
            assert_eq!(connection.recv().await.unwrap().unwrap().data, vec![7; 1_000_000]);
            connection.send("got it".into()).await.unwrap();
            assert!(connection.recv().await.unwrap().is_none());
            drop(connection);
            endpoint.close().await;
        });
        over.wait();
        drop(Host::open(interface).unwrap());
        assert!(Interface::find(interface).unwrap().check_available().is_ok(), "the program is detached");
    };
    run_on_veth(MTU, client, server);
}

#[test]
fn a_socket_without_a_program_reports_what_is_missing() {
    if !has_root() {
        return;
    }
    let other = |interface: &str| up(interface, MTU);
    let without_program = |interface: &str| {
        add_address(interface, 1);
        let config = HostConfig::new(interface).unwrap().endpoint.with_give_up(Duration::from_millis(200));
        assert_eq!(
            (config.link_bps, config.address),
            (10_000_000_000, IpAddr::from([10, 77, 0, 1])),
            "the properties of veth"
        );
        let device = XskDevice::open(&XskConfig::new(interface, 0)).unwrap();
        let endpoint = aio::Endpoint::spawn(device, config).unwrap();
        let peer = crate::Peer { address: [10, 77, 0, 2].into(), mac: [2, 0, 0, 0, 0, 2] };
        let error = block_on(endpoint.connect(peer)).unwrap_err();
        assert!(error.to_string().contains("Host::open"));
        assert!(matches!(error, aio::Error::Connection(ConnectionError::NoXdpProgram)));
    };
    run_on_veth(MTU, other, without_program);
}

/// A sleeping thread is woken by a request of its user, and does not sleep again before it has
/// handled it.
#[test]
fn a_message_after_a_pause_is_sent_at_once() {
    if !has_root() {
        return;
    }
    let (ready, over) = (TimedBarrier::default(), TimedBarrier::default());
    let client = |interface: &str| {
        add_address(interface, 1);
        ready.wait();
        let endpoint = aio::Endpoint::open(interface).unwrap();
        let least = block_on(async {
            let connection = endpoint.connect(IpAddr::from([10, 77, 0, 2])).await.unwrap();
            let mut least = Duration::MAX;
            for _ in 0..20 {
                tokio::time::sleep(Duration::from_millis(15)).await;
                let begun = clock();
                connection.send("now".into()).await.unwrap();
                least = least.min(begun.elapsed());
            }
            connection.close().await.unwrap();
            least
        });
        assert!(
            least < Duration::from_millis(5),
            "a thread sleeps for 10 ms at a time; the shortest of 20 round trips took {least:?}"
        );
        over.wait();
    };
    let server = |interface: &str| {
        add_address(interface, 2);
        let endpoint = aio::Endpoint::open(interface).unwrap();
        ready.wait();
        block_on(async {
            let mut connection = endpoint.accept().await.unwrap();
            while connection.recv().await.unwrap().is_some() {}
        });
        over.wait();
    };
    run_on_veth(MTU, client, server);
}

/// A polled host whose `close` waits until its peer has received everything.
#[test]
fn a_closed_host_has_delivered_everything() {
    if !has_root() {
        return;
    }
    let (ready, over) = (TimedBarrier::default(), TimedBarrier::default());
    let client = |interface: &str| {
        add_address(interface, 1);
        ready.wait();
        let mut host = Host::open(interface).unwrap();
        let peer = host.peer([10, 77, 0, 2].into()).unwrap();
        let connection = host.endpoint.connect(crate::Time::ZERO, peer, None).unwrap();
        host.endpoint.send(connection, vec![7; 1_000_000].into()).unwrap();
        assert!(host.close(Duration::from_secs(10)) && host.close(Duration::ZERO));
        // The peer does not answer: what is undelivered at the limit is aborted.
        let (now, _) = host.poll();
        host.endpoint.connect(now, crate::Peer { mac: [2; 6], ..peer }, None).unwrap();
        assert!(!host.close(Duration::from_millis(20)));
        assert_eq!(host.endpoint.connections(), 0);
        over.wait();
    };
    let server = |interface: &str| {
        add_address(interface, 2);
        let endpoint = aio::Endpoint::open(interface).unwrap();
        ready.wait();
        block_on(async {
            let mut connection = endpoint.accept().await.unwrap();
            assert_eq!(connection.recv().await.unwrap().unwrap().data, vec![7; 1_000_000]);
            assert!(connection.recv().await.unwrap().is_none());
        });
        over.wait();
    };
    run_on_veth(MTU, client, server);
}

/// The link comes up only after the command that uses it has started.
#[test]
fn a_link_is_awaited_and_its_absence_reported() {
    if !has_root() {
        return;
    }
    let (ready, over) = (TimedBarrier::default(), TimedBarrier::default());
    let client = |interface: &str| {
        add_address(interface, 1);
        let mut config = HostConfig::new(interface).unwrap();
        config.endpoint = config.endpoint.with_give_up(Duration::from_millis(300));
        let host = Host::open_with(config.clone()).unwrap();
        ready.wait();
        let error = host.peer([10, 77, 0, 2].into()).unwrap_err();
        assert!(matches!(error, NetError::NoLink(_)), "{error}");
        drop(host);
        config.endpoint = config.endpoint.with_give_up(Duration::from_secs(20));
        let host = Host::open_with(config).unwrap();
        ready.wait();
        let begun = clock();
        host.peer([10, 77, 0, 2].into()).unwrap();
        let waited = begun.elapsed();
        assert!(waited > Duration::from_millis(2500), "the link needed three seconds, not {waited:?}");
        over.wait();
    };
    let server = |interface: &str| {
        add_address(interface, 2);
        ip(&format!("link set {interface} down"));
        ready.wait();
        ready.wait();
        std::thread::sleep(Duration::from_secs(3));
        up(interface, MTU);
        over.wait();
    };
    run_on_veth(MTU, client, server);
}

/// Frames that arrive while an interface is taken over do not count as frames to a queue without a
/// socket.
#[test]
fn frames_before_the_sockets_are_not_strays() {
    if !has_root() {
        return;
    }
    let (ready, is_over) = (TimedBarrier::default(), std::sync::atomic::AtomicBool::new(false));
    let other = |interface: &str| {
        add_address(interface, 1);
        up(interface, MTU);
        ready.wait();
        let socket = std::net::UdpSocket::bind("10.77.0.1:0").unwrap();
        while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
            let _ = socket.send_to(&[0; 64], ("10.77.0.2", spray_wire::Ports::default().first()));
        }
    };
    let taken = |interface: &str| {
        add_address(interface, 2);
        ready.wait();
        let lost = |_| Host::open(interface).unwrap().endpoint.device().frames_without_socket();
        let lost: Vec<u64> = (0..5).map(lost).collect();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(lost, [0; 5]);
    };
    run_on_veth(MTU, other, taken);
}

/// The error contains the driver's reason and its consequence for the mode.
#[test]
fn a_refusal_of_the_driver_contains_its_reason() {
    if !has_root() {
        return;
    }
    let (ready, over) = (TimedBarrier::default(), TimedBarrier::default());
    let other = |interface: &str| {
        up(interface, MTU);
        ready.wait();
        over.wait();
    };
    let refused = |interface: &str| {
        ready.wait();
        let bridge = "bridge0";
        ip(&format!("link add {bridge} type bridge"));
        ip(&format!("link set {interface} master {bridge}"));
        add_address(bridge, 1);
        up(interface, MTU);
        up(bridge, MTU);
        let mut config = HostConfig::new(bridge).unwrap();
        let host = Host::open_with(config.clone()).unwrap();
        let device = host.endpoint.device();
        assert_eq!(device.taken_over().mode, crate::xdp::AttachMode::Generic);
        let reason = "driver does not support XDP in native mode";
        assert!(device.taken_over().native_error.as_ref().unwrap().ends_with(reason));
        assert!(!device.taken_over().zero_copy);
        drop(host);
        config.sockets.mode = BindMode::ZeroCopy;
        let error = Host::open_with(config).unwrap_err();
        assert!(matches!(error, TakeOverError::Generic { .. }), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
        over.wait();
    };
    run_on_veth(MTU, other, refused);
}

/// Some drivers lose the program when they are set down: it is attached again, which needs no
/// privilege to load programs.
#[test]
fn the_program_is_attached_again_after_the_interface_was_down() {
    if !has_root() {
        return;
    }
    let (ready, over) = (TimedBarrier::default(), TimedBarrier::default());
    let other = |interface: &str| {
        up(interface, MTU);
        ready.wait();
        over.wait();
    };
    let host = |interface: &str| {
        add_address(interface, 1);
        ready.wait();
        let mut host = Host::open(interface).unwrap();
        let links = || {
            let shown = Command::new("ip").args(["-d", "link", "show", interface]).output().unwrap().stdout;
            let shown = String::from_utf8(shown).unwrap();
            let mut words = shown.split_whitespace().skip_while(|word| *word != "prog/xdp").skip(2);
            let program: Option<u32> = words.next().map(|id| id.parse().unwrap());
            LinkInfoIter::default().filter(|link| program == Some(link.prog_id)).map(|link| link.id).collect::<Vec<_>>()
        };
        let polls = |host: &mut Host<_>, for_: Duration| {
            let begun = clock();
            host.run(Idle::Sleep(Duration::from_millis(10)), &[], |_, _| match begun.elapsed() < for_ {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            })
            .unwrap();
        };
        polls(&mut host, Duration::from_millis(100));
        let before = links();
        // A program that lists all links opens each; this must not prevent the program from being
        // attached again. SAFETY: a plain number, and a descriptor with no other owner.
        let held = unsafe { OwnedFd::from_raw_fd(libbpf_rs::libbpf_sys::bpf_link_get_fd_by_id(before[0])) };
        ip(&format!("link set {interface} down"));
        polls(&mut host, Duration::from_millis(100));
        up(interface, MTU);
        let mut after = Vec::new();
        // It takes a second, or longer on a busy machine.
        for _ in 0..20 {
            polls(&mut host, Duration::from_millis(500));
            after = links();
            after.retain(|link| !before.contains(link));
            if !after.is_empty() {
                break;
            }
        }
        assert_eq!((before.len(), after.len()), (1, 1), "by another link");
        drop(held);
        over.wait();
    };
    run_on_veth(MTU, other, host);
}
