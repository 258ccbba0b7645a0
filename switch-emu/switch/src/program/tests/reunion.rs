//! Reunion in the kernel's switches and in memory.

use super::build::{START_PS, Spec, fabric};
use spray_fabric::{ChassisSpec, Fabric, Scheme, Switching, mix, reunion};
use spray_test_support::NativeSwitch;
use spray_wire::Ecn;

const US: u64 = 1_000_000;
/// The lowest entropy value of mice.
const MICE: u16 = 50_000;

/// Two elephants collide; ACKs carry the notification back, and one of the elephants is rerouted.
/// Both engines agree frame by frame.
//= docs/specs/reunion.md#REU-19 supported engines
#[test]
fn kernel_and_memory_agree_on_reroutes() {
    //= docs/specs/switching.md#SWC-2 one implementation
    //= docs/specs/reunion.md#REU-18 piggybacked notifications
    let Some(mut kernel) = super::loaded() else { return };
    for scheme in Scheme::anywhere().filter(|scheme| scheme.is_in_kernel() && scheme.reunion_base().is_some()) {
        let settings = reunion::Settings { interval_ps: 100 * US, ..reunion::Settings::default() };
        let switching = Switching { reunion: settings, flowlet_gap_ps: 20 * US, ..Switching::all(scheme) };
        let fabric = Fabric { switching, ..fabric() };
        let spec = ChassisSpec::whole(&fabric);
        kernel.configure(&spec).expect("a fabric of the same shape");
        let memory = NativeSwitch::new(&spec).expect("a valid fabric");
        let uplinks = || [2, 3].map(|port| memory.counters(port).frames);
        let elephants = [0, 1].map(colliding);
        let mut shares = Vec::new();
        for step in 0..6_000u64 {
            let (lot, time_ps) = (mix(step), START_PS + step * US / 4);
            let elephant = Spec { time_ps, ..elephants[(lot >> 1) as usize % 2] };
            let packet = match lot % 32 {
                0 => Spec { port: MICE + (lot >> 8) as u16 % 500, ..elephant },
                _ => elephant,
            };
            let reply = Spec { from: packet.to, to: packet.from, payload: None, ecn: Ecn::NotEct, ..packet };
            for (frame, ingress) in [(packet.frame(), 0), (reply.frame(), 1)] {
                let mut native = frame.clone();
                let verdict = memory.process(&mut native, ingress, 0);
                let run = kernel.test_run(&frame, ingress).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(run, (verdict, native), "{scheme}, frame {step} at {ingress}");
            }
            // An interval has 400 steps.
            if step % 400 == 399 {
                shares.push(uplinks());
            }
        }
        for port in 0..fabric.ports.len() {
            assert_eq!(kernel.counters(port).expect("a port"), memory.counters(port), "{}", fabric.ports[port].name);
        }
        let last: Vec<u64> = shares[14].iter().zip(shares[13]).map(|(now, before)| now - before).collect();
        assert!(last.iter().all(|frames| *frames > 120), "{scheme}: not separated at the end: {last:?}");
        // Bases other than ECMP may have separated them from the start.
        let together = shares[0].iter().any(|frames| *frames < 40);
        assert!(together || scheme != Scheme::Reunion, "{scheme}: not together at the start: {:?}", shares[0]);
        let moved = kernel.counted().get("rerouted").expect("switches with Reunion");
        assert!((u64::from(together)..8).contains(&moved), "{scheme}: {moved} flows rerouted");
    }
}

/// Returns a packet of a flow from this host that its hash sends over the first uplink.
fn colliding(host: u16) -> Spec {
    let over = |port: u16| {
        let packet = Spec { from: host, to: 2 + host, port, ..Spec::DATA };
        let switch = NativeSwitch::new(&ChassisSpec::whole(&fabric())).expect("a valid fabric");
        switch.process(&mut packet.frame(), 0, 0);
        (switch.counters(2).frames == 1).then_some(packet)
    };
    (1_000..MICE).find_map(over).expect("half of them do")
}
