//! `spray bench transport`: CPU time per packet at either end over in-memory devices.

use spray_benches::{
    BalancerOnly, EndCosts, Flow, Frames, Hosts, Layer, Load, Pair, Steering, aes_gcm_ns, memcpy_ns, packets_per_s,
};
use spray_experiments::results::align;
use spray_tools::failure::{Failure, Outcome};
use spray_tools::progress::Progress;
use spray_tools::say;

use super::median::median;
use crate::lab::args;

/// Maximum cost of a packet at either end, in copies of its payload.
const COPYING_TARGET: f64 = 1.4;
/// The same without copying the payload out of the frame.
const IN_PLACE_TARGET: f64 = 0.7;
/// Maximum cost of sealing a packet beyond the cipher itself.
const SEALING_TARGET_NS: f64 = 150.0;
/// Maximum cost of a packet of [`SMALL_BYTES`] at either end.
const SMALL_TARGET_NS: f64 = 90.0;
/// Maximum cost of a packet with [`MANY`] connections relative to one.
const MANY_TARGET: f64 = 1.1;
const VERY_MANY_TARGET: f64 = 1.3;
/// Minimum packet rate of two queues relative to one.
const QUEUES_TARGET: f64 = 1.9;
const SMALL_BYTES: u32 = 64;
const MANY: u32 = 1_000;
const VERY_MANY: u32 = 10_000;
/// Packets per message in the measurements with many connections.
const MANY_MESSAGE_PACKETS: u32 = 16;
const HOSTS: u16 = 64;

/// Fails with 1 when packets were lost.
pub fn transport(arguments: &args::BenchTransport) -> Outcome {
    let mut progress = Progress::on_stderr();
    progress.phase("opening connections");
    let mut rigs = Rigs::new(arguments);
    let mut figures = Figures::default();
    rigs.round(&mut Figures::default());
    for round in 1..=arguments.repeat {
        progress.phase(&format!("{round}/{}", arguments.repeat));
        rigs.round(&mut figures);
    }
    rigs.audit().map_err(Failure::failed)?;
    progress.clear();
    say::object(&json(arguments, &figures))?;
    say!("{}", report(arguments, &figures));
    Ok(())
}

struct Rigs {
    packets: u64,
    load: Load,
    pair: Pair,
    in_place: Pair,
    small: Pair,
    small_in_place: Pair,
    sealed: Pair,
    small_sealed: Pair,
    few: Pair,
    many: Pair,
    very_many: Pair,
    two_hosts: Hosts,
    hosts: Hosts,
    layers: [Frames; 4],
    flow: Flow,
    choosing: BalancerOnly,
}

impl Rigs {
    fn new(arguments: &args::BenchTransport) -> Self {
        let args::BenchTransport { payload, connections, ack_every, packets, .. } = *arguments;
        let load = Load { connections, ..Load::new(payload, ack_every) };
        let small = Load { connections, ..Load::new(SMALL_BYTES, ack_every) };
        // At 100 Gb/s packets of one of many connections are more than an RTT apart: one ACK each.
        let short =
            Load { message_packets: MANY_MESSAGE_PACKETS, connections: 1, ack_every: 1, in_place: true, ..load };
        let rung = |rung| Frames::new(&load, rung);
        Self {
            packets,
            load,
            pair: Pair::new(&load),
            in_place: Pair::new(&Load { in_place: true, ..load }),
            small: Pair::new(&small),
            small_in_place: Pair::new(&Load { in_place: true, ..small }),
            sealed: Pair::new(&Load { sealed: true, ..load }),
            small_sealed: Pair::new(&Load { sealed: true, ..small }),
            few: Pair::new(&short),
            many: Pair::new(&Load { connections: MANY, ..short }),
            very_many: Pair::new(&Load { connections: VERY_MANY, ..short }),
            two_hosts: Hosts::new(&short, 2),
            hosts: Hosts::new(&short, HOSTS),
            layers: [Layer::Device, Layer::Copying, Layer::Checksum, Layer::Headers].map(rung),
            flow: Flow::new(&load),
            choosing: BalancerOnly::new(&load),
        }
    }

    fn round(&mut self, figures: &mut Figures) {
        let packets = self.packets;
        let copy_ns = memcpy_ns(&self.load, packets);
        figures.add("memcpy_ns", copy_ns);
        let ends = self.pair.run(packets);
        figures.add_ends("sender_ns", "receiver_ns", ends);
        figures.add_ends("sender_memcpys", "receiver_memcpys", ends.per(copy_ns));
        let in_place = self.in_place.run(packets);
        figures.add_ends("sender_in_place_ns", "receiver_in_place_ns", in_place);
        figures.add_ends("sender_in_place_memcpys", "receiver_in_place_memcpys", in_place.per(copy_ns));
        figures.add_ends("sender_64_bytes_ns", "receiver_64_bytes_ns", self.small.run(packets));
        figures.add_ends(
            "sender_64_bytes_in_place_ns",
            "receiver_64_bytes_in_place_ns",
            self.small_in_place.run(packets),
        );
        let (sealed, cipher_ns) = (self.sealed.run(packets), aes_gcm_ns(&self.load, packets));
        figures.add("aes_gcm_ns", cipher_ns);
        figures.add_ends("sender_sealed_ns", "receiver_sealed_ns", sealed);
        let cipher = EndCosts { sender_ns: cipher_ns, receiver_ns: cipher_ns };
        figures.add_ends("sender_sealed_over_aes_gcm_ns", "receiver_sealed_over_aes_gcm_ns", less(sealed, cipher));
        figures.add_ends("sender_64_bytes_sealed_ns", "receiver_64_bytes_sealed_ns", self.small_sealed.run(packets));
        let layers = self.layers.each_mut().map(|frames| frames.run(packets));
        self.parts(figures, ends, layers);
        let both = |ends: EndCosts| ends.sender_ns + ends.receiver_ns;
        let few = both(self.few.run(packets));
        figures.add("ratio_1000_connections", both(self.many.run(packets.max(4 * u64::from(MANY)))) / few);
        figures.add("ratio_10000_connections", both(self.very_many.run(packets.max(4 * u64::from(VERY_MANY)))) / few);
        let two_hosts = self.two_hosts.run(packets);
        figures.add("ratio_64_hosts", self.hosts.run(packets) / two_hosts);
        // More packets reduce the share of starting threads.
        let load = Load { deployed: true, ..self.load };
        let of = |queues, steering| packets_per_s(&load, queues, steering, 4 * packets);
        let one = of(1, Steering::Rules);
        figures.add("ratio_two_queues", of(2, Steering::Rules) / one);
        figures.add("ratio_two_queues_hashed", of(2, Steering::Hash) / one);
    }

    /// Adds the parts of the cost. The remainder is the endpoint: table, timers and events.
    fn parts(&mut self, figures: &mut Figures, whole: EndCosts, layers: [EndCosts; 4]) {
        let [device, copying, checksum, headers] = layers;
        let flow = self.flow.run(self.packets);
        let choosing_ns = self.choosing.run(self.packets);
        figures.add("sender_choosing_ns", choosing_ns);
        figures.add("sender_recovery_ns", flow.sender_ns - choosing_ns);
        figures.add("receiver_recovery_ns", flow.receiver_ns);
        figures.add_ends("sender_building_ns", "receiver_parsing_ns", less(headers, checksum));
        figures.add_ends("sender_checksum_ns", "receiver_checksum_ns", less(checksum, copying));
        figures.add_ends("sender_copying_ns", "receiver_copying_ns", less(copying, device));
        figures.add_ends("sender_device_ns", "receiver_device_ns", device);
        figures.add_ends("sender_endpoint_ns", "receiver_endpoint_ns", less(less(whole, headers), flow));
    }

    fn audit(&self) -> Result<(), String> {
        let Self { pair, in_place, small, small_in_place, sealed, small_sealed, few, many, very_many, .. } = self;
        [pair, in_place, small, small_in_place, sealed, small_sealed, few, many, very_many]
            .into_iter()
            .try_for_each(Pair::audit)
    }
}

fn less(more: EndCosts, less: EndCosts) -> EndCosts {
    EndCosts { sender_ns: more.sender_ns - less.sender_ns, receiver_ns: more.receiver_ns - less.receiver_ns }
}

/// The values of every figure, one per round, in order of first appearance.
#[derive(Default)]
struct Figures(Vec<(&'static str, Vec<f64>)>);

impl Figures {
    fn add(&mut self, name: &'static str, value: f64) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => self.0.push((name, vec![value])),
        }
    }

    fn add_ends(&mut self, sender: &'static str, receiver: &'static str, ends: EndCosts) {
        self.add(sender, ends.sender_ns);
        self.add(receiver, ends.receiver_ns);
    }

    fn get(&self, name: &str) -> f64 {
        self.0.iter().find(|(known, _)| *known == name).map_or(f64::NAN, |(_, values)| median(values))
    }
}

/// Returns the payload in Gb/s that a core carries at `packet_ns` per packet.
fn gbps(payload_bytes: u32, packet_ns: f64) -> f64 {
    f64::from(payload_bytes) * 8.0 / packet_ns
}

fn json(arguments: &args::BenchTransport, figures: &Figures) -> serde_json::Value {
    let args::BenchTransport { payload, connections, ack_every, repeat, packets } = *arguments;
    let mut object = serde_json::json!({
        "payload_bytes": payload,
        "connections": connections,
        "ack_every": ack_every,
        "repeat": repeat,
        "packets": packets,
        "sender_gbps": round(gbps(payload, figures.get("sender_ns"))),
        "receiver_gbps": round(gbps(payload, figures.get("receiver_ns"))),
    });
    for (name, values) in &figures.0 {
        object[*name] = round(median(values)).into();
    }
    object
}

fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

fn report(arguments: &args::BenchTransport, figures: &Figures) -> String {
    let args::BenchTransport { payload, connections, ack_every, repeat, .. } = *arguments;
    let mut out = format!(
        "{payload}-byte payloads, connections: {connections}, packets for an ACK: {ack_every}, devices in memory, medians of {repeat}\n\
         A memcpy of the payload takes {:.0} ns, AES-128-GCM of it {:.0}.\n\n",
        figures.get("memcpy_ns"),
        figures.get("aes_gcm_ns")
    );
    let row = |what: &str, sender: &str, receiver: &str, target: &str| {
        let cell = |name: &str| if name.is_empty() { String::new() } else { format!("{:.0}", figures.get(name)) };
        vec![what.to_string(), cell(sender), cell(receiver), target.to_string()]
    };
    let rate = |name| format!("{:.0}", gbps(payload, figures.get(name)));
    let copies = |most: f64| format!("at most {:.0} ({most} memcpys)", most * figures.get("memcpy_ns"));
    let small = format!("at most {SMALL_TARGET_NS}");
    let sealed =
        format!("at most {:.0} (AES-GCM and {SEALING_TARGET_NS})", figures.get("aes_gcm_ns") + SEALING_TARGET_NS);
    let rows = [
        row("whole", "sender_ns", "receiver_ns", &copies(COPYING_TARGET)),
        row("  choosing a path", "sender_choosing_ns", "", ""),
        row("  recovery", "sender_recovery_ns", "receiver_recovery_ns", ""),
        row("  building, parsing", "sender_building_ns", "receiver_parsing_ns", ""),
        row("  checksum", "sender_checksum_ns", "receiver_checksum_ns", ""),
        row("  copying", "sender_copying_ns", "receiver_copying_ns", ""),
        row("  device", "sender_device_ns", "receiver_device_ns", ""),
        row("  endpoint", "sender_endpoint_ns", "receiver_endpoint_ns", ""),
        row("payload in place", "sender_in_place_ns", "receiver_in_place_ns", &copies(IN_PLACE_TARGET)),
        row("64 bytes", "sender_64_bytes_ns", "receiver_64_bytes_ns", &small),
        row("64 bytes in place", "sender_64_bytes_in_place_ns", "receiver_64_bytes_in_place_ns", &small),
        row("sealed, without checksum", "sender_sealed_ns", "receiver_sealed_ns", &sealed),
        row("64 bytes, sealed", "sender_64_bytes_sealed_ns", "receiver_64_bytes_sealed_ns", ""),
        vec!["Gb/s a core".into(), rate("sender_ns"), rate("receiver_ns"), String::new()],
    ];
    out += &align(&["ns a packet", "sender", "receiver", "target"], 1, &rows);
    let ratio = |what: &str, name: &str, target: &str| {
        vec![what.to_string(), format!("{:.2}", figures.get(name)), target.to_string()]
    };
    let rows = [
        ratio(
            "time a packet, 1,000 connections / one, an ACK a packet, in place",
            "ratio_1000_connections",
            &format!("at most {MANY_TARGET:.2}"),
        ),
        ratio(
            "time a packet, 10,000 connections / one",
            "ratio_10000_connections",
            &format!("at most {VERY_MANY_TARGET:.2}"),
        ),
        ratio("time a packet, 64 hosts on a thread / two, the same", "ratio_64_hosts", "none"),
        ratio("packets a second, two queues / one", "ratio_two_queues", &format!("at least {QUEUES_TARGET:.2}")),
        ratio("the same, by a NIC that hashes", "ratio_two_queues_hashed", "none"),
    ];
    out.push('\n');
    out + &align(&["ratio", "", "target"], 1, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_run_gives_every_figure_and_loses_nothing() {
        let arguments = args::BenchTransport { payload: 200, connections: 2, ack_every: 4, packets: 256, repeat: 1 };
        let mut rigs = Rigs::new(&arguments);
        let mut figures = Figures::default();
        rigs.round(&mut figures);
        assert_eq!(rigs.audit(), Ok(()));
        let object = json(&arguments, &figures);
        assert!(object.as_object().unwrap().values().all(serde_json::Value::is_number), "{object}");
        assert!(!report(&arguments, &figures).contains("NaN"));
    }

    #[test]
    fn parts_of_an_end_add_up_to_its_total() {
        let arguments = args::BenchTransport { payload: 200, connections: 1, ack_every: 1, packets: 64, repeat: 1 };
        let mut figures = Figures::default();
        Rigs::new(&arguments).round(&mut figures);
        for end in ["sender", "receiver"] {
            let parts = ["choosing", "recovery", "building", "parsing", "checksum", "copying", "device", "endpoint"];
            let names = parts.map(|part| format!("{end}_{part}_ns"));
            let sum: f64 = names.iter().map(|name| figures.get(name)).filter(|part| part.is_finite()).sum();
            assert!((sum - figures.get(&format!("{end}_ns"))).abs() < 1e-6, "{end}");
        }
    }
}
