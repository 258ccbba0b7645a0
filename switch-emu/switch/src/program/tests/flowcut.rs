//! Flowcut in the kernel's switches and in memory.

use super::build::{START_PS, Spec, fabric};
use spray_fabric::{ChassisSpec, Fabric, Scheme, Switching, mix};
use spray_pipeline::Verdict;
use spray_pipeline::shim::SHIM_BYTES;
use spray_test_support::NativeSwitch;
use spray_wire::{Ecn, Ports};

const US: u64 = 1_000_000;

/// Packets of some flows from leaf 0, and ACKs from leaf 1 with increasing delay: some flows drain.
/// Both engines agree frame by frame.
#[test]
fn kernel_and_memory_agree_on_flowcuts() {
    //= docs/specs/switching.md#SWC-2 one implementation
    //= docs/specs/flowcut-switch.md#FCS-5 draining
    let Some(mut kernel) = super::loaded() else { return };
    for scheme in [Scheme::FlowcutIngress, Scheme::FlowcutSwitch] {
        let switching = Switching { longest_ps: 1_000 * US, ..Switching::all(scheme) };
        let fabric = Fabric { switching, ..fabric() };
        let spec = ChassisSpec::whole(&fabric);
        kernel.configure(&spec).expect("a fabric of the same shape");
        let memory = NativeSwitch::new(&spec).expect("a valid fabric");
        let mut on_way: Vec<(Spec, u64)> = Vec::new();
        let (mut ports, mut pauses) = ([0; 12], 0);
        for step in 0..6_000u64 {
            let (lot, time_ps) = (mix(step), START_PS + step * US / 4);
            let sends = on_way.is_empty() || lot % 100 < if step % 600 < 300 { 70 } else { 30 };
            let (frame, ingress) = if sends {
                let flow = lot >> 16;
                let (v6, to, port) = (flow % 2 == 0, 2 + (flow >> 8) as u16 % 2, 50_000 + (flow >> 16) as u16 % 3);
                let packet = Spec { v6, from: flow as u16 / 2 % 2, to, port, time_ps, stamp_ps: time_ps, ..Spec::DATA };
                on_way.push((packet, step));
                (packet.frame(), 0)
            } else {
                let (packet, _) = on_way.remove(0);
                let reply =
                    Spec { from: packet.to, to: packet.from, time_ps, payload: None, ecn: Ecn::NotEct, ..packet };
                (reply.frame(), 1)
            };
            let mut native = frame.clone();
            let verdict = memory.process(&mut native, ingress, 0);
            let run = kernel.test_run(&frame, ingress).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(run, (verdict, native.clone()), "{scheme}, frame {step}");
            let Verdict::Redirect { port, .. } = verdict else { panic!("{scheme}, frame {step}: {verdict:?}") };
            ports[port as usize] += 1;
            let parsed = spray_wire::parse(&native[SHIM_BYTES..], Ports::DEFAULT);
            let parsed = parsed.expect("right checksums").expect("a frame of ours");
            assert!(!parsed.trimmed);
            assert!(!(sends && parsed.is_pause()));
            pauses += u64::from(parsed.is_pause());
        }
        assert!([0, 1, 4, 5].iter().all(|port| ports[*port] > 500), "{scheme}: {ports:?}");
        assert!(pauses > 50, "{scheme}: {pauses}");
        for port in 0..fabric.ports.len() {
            assert_eq!(kernel.counters(port).expect("a port"), memory.counters(port), "{}", fabric.ports[port].name);
        }
        let uplinks = [2, 3].map(|port| memory.counters(port).frames);
        assert!(uplinks.iter().all(|frames| *frames > 500), "{scheme}: {uplinks:?}");
    }
}
