//! Defaults for real networks of unknown properties: connections measure their path, and timers
//! allow for a general-purpose kernel.

use std::time::Duration;

use spray_core::flow::{FlowConfig, MIN_PAYLOAD_BYTES};
use spray_core::loss::RtoConfig;
use spray_core::path::{BalancerKind, Path};
use spray_wire::Kind;

/// Minimum retransmission timeout: the kernel may keep a thread from the CPU for this long.
pub const MIN_RTO: Duration = Duration::from_millis(5);
/// Maximum delay of an acknowledgement.
pub const ACK_DELAY: Duration = Duration::from_micros(50);
/// Packets per ACK, and entropy values echoed in it: all of them.
pub const ACK_EVERY: u32 = 4;
/// Window in packets: the bandwidth-delay product of 100 Gb/s and 1 ms.
pub const WINDOW_PACKETS: u32 = 8192;
/// Round-trip time assumed before measurement.
pub const FIRST_RTT: Duration = Duration::from_micros(100);
/// Link rate, in bits per second, if the driver does not report one.
pub const FIRST_BPS: u64 = 10_000_000_000;
/// Time without progress after which a connection fails.
pub const GIVE_UP: Duration = Duration::from_secs(5);

const ETHERNET_HEADER: u32 = 14;

/// Converts a duration to picoseconds, saturating.
pub const fn ps(time: Duration) -> u64 {
    let ps = time.as_nanos().saturating_mul(1000);
    if ps > u64::MAX as u128 { u64::MAX } else { ps as u64 }
}

/// Returns the bounds of the retransmission timeout for an assumed round-trip time. Measurements
/// extend them.
pub fn rto(first_rtt_ps: u64) -> RtoConfig {
    let min_ps = ps(MIN_RTO);
    RtoConfig { initial_ps: RtoConfig::for_path(first_rtt_ps).initial_ps.max(2 * min_ps), min_ps, max_ps: 16 * min_ps }
}

/// Returns the bytes of a data frame without payload.
pub fn header_bytes(v6: bool, sealed: bool) -> u32 {
    let seal_bytes = if sealed { spray_wire::seal_bytes(Kind::Data) } else { 0 };
    (spray_wire::header_bytes(v6, Kind::Data) + seal_bytes) as u32
}

/// Returns the bytes of payload in a packet of `mtu` bytes.
///
/// # Errors
/// The smallest possible MTU, if there are too few.
pub fn payload_bytes(mtu: u32, header_bytes: u32) -> Result<u32, u32> {
    let room = (mtu + ETHERNET_HEADER).saturating_sub(header_bytes);
    if room < MIN_PAYLOAD_BYTES { Err(MIN_PAYLOAD_BYTES + header_bytes - ETHERNET_HEADER) } else { Ok(room) }
}

/// Returns the configuration of a connection over an unknown path.
pub fn flow(payload_bytes: u32, header_bytes: u32) -> FlowConfig {
    let first_rtt_ps = ps(FIRST_RTT);
    let path = Path::new(first_rtt_ps, FIRST_BPS, payload_bytes + header_bytes);
    let flow = FlowConfig::new(BalancerKind::RepsPlus, path, header_bytes);
    FlowConfig {
        ack_every: ACK_EVERY,
        ack_evs: ACK_EVERY,
        ack_delay_ps: ps(ACK_DELAY),
        give_up_ps: ps(GIVE_UP),
        rto: rto(first_rtt_ps),
        ..FlowConfig { window_packets: WINDOW_PACKETS, ..flow }.learning()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EndpointConfig;
    use crate::device::{MemoryConfig, MemoryNetwork};
    use crate::endpoint::ConfigError;
    use crate::keys::{Keys, PrivateKey};

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn config(mtu: u32) -> EndpointConfig {
        EndpointConfig::real([10, 0, 0, 1].into(), MAC, mtu).unwrap()
    }

    #[test]
    fn frames_fill_the_mtu_with_and_without_keys() {
        let keys = Keys::new(PrivateKey::generate().unwrap(), Vec::new());
        let plain = config(1500);
        let sealed = config(1500).with_keys(keys.clone());
        for config in [&plain, &sealed, &sealed.clone().with_keys(keys)] {
            assert_eq!(config.flow.packet_bytes(), 1500 + ETHERNET_HEADER);
        }
        assert!(sealed.flow.payload_bytes < plain.flow.payload_bytes);
        let needed = match EndpointConfig::real([10, 0, 0, 1].into(), MAC, 300) {
            Err(ConfigError::Mtu { mtu: 300, needed }) => needed,
            other => panic!("{other:?}"),
        };
        assert_eq!(config(needed).flow.payload_bytes, MIN_PAYLOAD_BYTES);
        let network = MemoryNetwork::new(MemoryConfig { frame_size: 2048, ..MemoryConfig::default() });
        assert!(crate::Endpoint::new(network.attach(MAC), sealed).is_ok());
    }

    #[test]
    fn the_connect_timeout_is_the_configured_one() {
        let config = config(1500).with_give_up(Duration::from_secs(8));
        // Intervals double up to eight times the first.
        let retry_ps = config.handshake.retry_ps;
        let connect_ps: u64 = (0..config.handshake.attempts).map(|attempt| retry_ps << attempt.min(3)).sum();
        assert!((ps(Duration::from_secs(7))..=ps(Duration::from_secs(9))).contains(&connect_ps), "{connect_ps}");
        assert_eq!((config.flow.give_up_ps, config.idle_timeout_ps), (8_000_000_000_000, 8_000_000_000_000));
        assert_eq!(ps(Duration::MAX), u64::MAX);
    }
}
