//! Limits that a peer may state.

use spray_wire::Terms;

use super::*;

//= docs/specs/endpoint.md#END-4a invalid limits
#[test]
fn invalid_limits_are_rejected() {
    let least = MIN_PAYLOAD_BYTES;
    let fine =
        Terms { window_packets: 16, max_payload: least, max_data: least.into(), ack_every: 1, ..Terms::default() };
    let ends = Terms { window_packets: 1 << 16, max_payload: u32::MAX, max_data: u64::MAX, ack_every: 255, ..fine };
    assert!(config().accepts(&fine) && config().accepts(&ends));
    let bad = [
        Terms { max_payload: 0, ..fine },
        Terms { max_payload: 1, ..fine },
        Terms { max_payload: least - 1, ..fine },
        Terms { max_data: 0, ..fine },
        Terms { max_data: u64::from(least) - 1, ..fine },
        Terms { window_packets: 0, ..fine },
        Terms { window_packets: (1 << 16) + 1, ..fine },
        Terms { window_packets: u32::MAX, ..fine },
        Terms { ack_every: 0, ..fine },
        Terms { ack_every: 256, ..fine },
    ];
    assert!(bad.iter().all(|terms| !config().accepts(terms)), "{bad:?}");
    // Two ends may agree on a small limit.
    let small = FlowConfig { payload_bytes: 64, max_data_bytes: 100, max_message_bytes: 100, ..config() };
    assert!(small.accepts(&Terms { max_payload: 64, max_data: 100, ..fine }));
    assert!(!small.accepts(&Terms { max_payload: 63, ..fine }) && !small.accepts(&Terms { max_data: 99, ..fine }));
}
