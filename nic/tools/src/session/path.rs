//! Settings of connections, from the command line.

use std::path::Path as FilePath;

use spray_core::cc::CcKind;
use spray_core::flow::FlowConfig;
use spray_core::loss::RtoConfig;
use spray_nic::EndpointConfig;
use spray_settings::{ConnectionPath, Document, Transport};

use crate::failure::{Failure, Outcome};
use crate::settings::Overrides;
use crate::transfer::format::MESSAGE_BYTES;

/// Properties of the path that the kernel does not know.
pub struct PathOptions {
    pub transport: Transport,
    pub given: Document,
    pub trimming: bool,
}

impl PathOptions {
    pub fn new(overrides: &Overrides) -> Outcome<Self> {
        let mut given = Document::parse(FilePath::new("defaults"), "").map_err(Failure::refused)?;
        overrides.apply(&mut given)?;
        let transport = Transport::read(&given).map_err(Failure::refused)?;
        // There is no sensible default.
        if transport.cc == CcKind::FixedRate && transport.cc_schemes.fixed_rate.rate_gbps.is_none() {
            return Err(Failure::refused(
                "--cc fixed-rate needs a rate, as in --set transport.fixed-rate.rate_gbps=10",
            ));
        }
        Ok(Self { transport, given, trimming: false })
    }

    /// Returns `value` if the command line sets `path`, else `default`.
    pub(super) fn or<T>(&self, path: &str, value: T, default: T) -> T {
        if self.given.is_assigned(path) { value } else { default }
    }
}

#[derive(Debug, Default)]
pub(super) struct Room<'a> {
    pub interface: Option<&'a str>,
    pub mtu: u32,
}

/// By default, packets fill the MTU.
pub(super) fn with_path(path: &PathOptions, mut config: EndpointConfig, bound: &Room<'_>) -> Outcome<EndpointConfig> {
    let (Room { interface, mtu }, room) = (bound, config.flow.payload_bytes);
    let payload_bytes = path.or("transport.payload_bytes", path.transport.payload_bytes, room);
    if payload_bytes > room {
        let needed = mtu + payload_bytes - room;
        let small =
            format!("the MTU of {} is too small for {payload_bytes} bytes of payload", interface.unwrap_or("the path"));
        let how = interface.map_or(String::new(), |name| format!(" (`ip link set {name} mtu {needed}`)"));
        return Err(Failure::refused(format!("{small}: it is {mtu}, needed is {needed}{how}, or less --payload")));
    }
    config.flow = connection(path, FlowConfig { payload_bytes, ..config.flow }, config.link_bps);
    path.transport.check_bytes(&path.given, config.flow.packet_bytes()).map_err(Failure::refused)?;
    Ok(config)
}

/// Keeps only the rate of `fixed-rate`: the rest of the path is measured.
//= docs/specs/calibration.md#CAL-5 initial estimates
fn connection(path: &PathOptions, library: FlowConfig, link_bps: u64) -> FlowConfig {
    let FlowConfig { payload_bytes, header_bytes, .. } = library;
    let given = path.transport.flow_config(&ConnectionPath {
        balancer: path.transport.balancer[0],
        base_rtt_ps: library.path.base_rtt_ps,
        link_bps,
        payload_bytes,
        header_bytes,
        trimming: path.trimming,
    });
    let window_packets = path.or("transport.window_packets", given.window_packets, library.window_packets);
    let learned = FlowConfig { window_packets, ..given }.learning();
    let max_window_bytes =
        path.or("transport.max_window_bytes", given.path.max_window_bytes, learned.path.max_window_bytes);
    let first_bytes = learned.path.initial_window_bytes.min(max_window_bytes);
    let initial_window_bytes = path.or("transport.initial_window_bytes", given.path.initial_window_bytes, first_bytes);
    // If both are given, the window must hold its initial value.
    let max_window_bytes = max_window_bytes.max(initial_window_bytes);
    let rto = path.or("transport.rto_min_us", given.rto, library.rto);
    let bounds = path.transport.rto(rto.min_ps);
    let bounded = RtoConfig { initial_ps: rto.initial_ps.min(bounds.max_ps), ..bounds };
    let rto = path.or("transport.rto_max_us", bounded, rto);
    FlowConfig {
        path: spray_nic::Path { max_window_bytes, initial_window_bytes, ..learned.path },
        ack_every: path.or("transport.ack_every", given.ack_every, library.ack_every),
        ack_evs: path.or("transport.ack_evs", given.ack_evs, library.ack_evs),
        ack_delay_ps: path.or("transport.ack_delay_us", given.ack_delay_ps, library.ack_delay_ps),
        give_up_ps: path.or("transport.give_up_us", given.give_up_ps, library.give_up_ps),
        rto,
        max_message_bytes: MESSAGE_BYTES,
        ..learned
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};
    use spray_core::cc::{ControlConfig, FixedRateConfig};

    use spray_settings::Connections;

    use super::*;

    fn path(arguments: &[&str]) -> PathOptions {
        let command = Overrides::<Connections>::augment_args(Command::new("send"));
        let matches = command.get_matches_from([&["send"], arguments].concat());
        let overrides = Overrides::from_arg_matches(&matches).unwrap();
        PathOptions::new(&overrides).unwrap()
    }

    fn library() -> EndpointConfig {
        EndpointConfig::real([10, 0, 0, 1].into(), [2; 6], 1500).unwrap()
    }

    fn flow(path: &PathOptions) -> FlowConfig {
        with_path(path, library(), &Room::default()).unwrap().flow
    }

    #[test]
    //= docs/specs/calibration.md#CAL-5 initial estimates
    fn without_settings_the_librarys_hold() {
        assert_eq!(flow(&path(&[])), FlowConfig { max_message_bytes: MESSAGE_BYTES, ..library().flow });
    }

    #[test]
    fn what_is_given_holds_whatever_the_defaults_are() {
        let given = flow(&path(&["--ack-every=1", "--payload=1000", "--set=transport.window_packets=4096"]));
        assert_eq!((given.ack_every, given.ack_evs), (1, library().flow.ack_evs));
        assert_eq!((given.payload_bytes, given.window_packets), (1000, 4096));
        let too_long = with_path(&path(&["--payload=9000"]), library(), &Room::default());
        assert!(too_long.unwrap_err().to_string().contains("too small for 9000 bytes of payload"));
    }

    #[test]
    fn a_fixed_rate_is_the_one_that_is_typed() {
        let path = path(&["--cc=fixed-rate", "--set=transport.fixed-rate.rate_gbps=0.8"]);
        let ControlConfig::FixedRate(FixedRateConfig { rate_gbps }) = flow(&path).cc else { panic!("another control") };
        assert_eq!(rate_gbps.unwrap().bps(), 800_000_000);
    }

    /// Bounds the length that a peer may announce, since the first packet allocates the message.
    #[test]
    //= docs/specs/endpoint.md#END-21 No message is longer
    fn no_message_is_longer_than_a_piece() {
        use crate::transfer::format::{PIECE_BYTES, begin_piece};
        let longest = begin_piece(0, 0, PIECE_BYTES).len() as u64 + PIECE_BYTES;
        assert_eq!(flow(&path(&[])).max_message_bytes, longest);
    }

    #[test]
    fn a_maximum_timeout_applies_without_a_minimum() {
        let bounds = |us: u64| {
            let rto = flow(&path(&[&format!("--set=transport.rto_max_us={us}")])).rto;
            [rto.initial_ps, rto.min_ps, rto.max_ps].map(|ps| ps / 1_000_000)
        };
        assert_eq!(bounds(1_000), [1_000; 3]);
        assert_eq!(bounds(50_000)[1..], [5_000, 50_000]);
        let first = flow(&path(&["--set=transport.initial_window_bytes=100000000"])).path;
        assert!(first.initial_window_bytes == 100_000_000 && first.max_window_bytes == 100_000_000);
    }

    #[test]
    fn the_first_window_is_within_the_largest() {
        let path = path(&["--set=transport.max_window_bytes=10000"]);
        let known = flow(&path).path;
        assert_eq!((known.initial_window_bytes, known.max_window_bytes), (10_000, 10_000));
    }
}
