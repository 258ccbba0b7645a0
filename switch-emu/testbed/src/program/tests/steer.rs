//! Which frames the program of a host's interface takes from the kernel.

use super::super::SteerProgram;
use super::loaded;
use crate::frame::data_frame;
use libbpf_rs::ProgramInput;
use spray_fabric::{Host, LeafSpine, Thresholds, compile};

impl SteerProgram {
    /// Whether the program takes `frame` for its sockets. There are none here: it counts what it took and leaves it to the kernel.
    fn takes(&self, frame: &[u8]) -> bool {
        let before = self.strays().expect("readable");
        let program = self.object.progs_mut().find(|program| program.name() == "steer").expect("the program");
        let input = ProgramInput { data_in: Some(frame), ..Default::default() };
        program.test_run(input).expect("a test run");
        self.strays().expect("readable") > before
    }
}

#[test]
fn only_frames_to_this_host_are_taken() {
    if loaded().is_none() {
        return;
    }
    let network = LeafSpine::uniform([2, 1, 2], 100_000_000_000, 1).network();
    let fabric = compile(&network, 1, |_| Thresholds::NONE, &[]).expect("a fabric without events");
    let [own, other, ..] = fabric.hosts.as_slice() else { unreachable!("four hosts") };
    let steer = SteerProgram::load(own.mac, &[own.v4.into(), own.v6.into()]).expect("it loads");
    let to = |host: &Host| data_frame(other, host, 100);
    assert!(steer.takes(&to(own)));
    let sniffed = Host { mac: other.mac, ..own.clone() };
    let routed = Host { mac: own.mac, ..other.clone() };
    assert!(!steer.takes(&to(other)), "to another host");
    assert!(!steer.takes(&to(&routed)), "this host is a router on the way");
    assert!(!steer.takes(&to(&sniffed)), "the interface takes whatever passes");
    let nobody = Host { mac: [0; 6], v4: [0, 0, 0, 0].into(), ..own.clone() };
    assert!(!steer.takes(&to(&nobody)), "as empty as an unused place");
    assert!(SteerProgram::load(own.mac, &[own.v4.into(); SteerProgram::ADDRESSES + 1]).is_err());
}
