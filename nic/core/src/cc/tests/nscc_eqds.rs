//! Clauses are those of `docs/specs/nscc-eqds.md`.

use super::*;

const PACKET: u32 = 4_000;
const RTT_PS: u64 = 12_000_000;

/// A path with a window of this number of packets at 100 Gb/s and 12 us, for which EQDS alone
/// requests three BDPs: 112 packets.
fn path(window: u64) -> Path {
    let bytes = window * u64::from(PACKET);
    Path { initial_window_bytes: bytes, max_window_bytes: bytes, ..Path::new(RTT_PS, 100_000_000_000, PACKET) }
}

fn at(window: u64) -> AnyCc {
    AnyCc::new(&CcKind::NsccEqds.into(), &path(window))
}

fn packets(count: u64) -> u64 {
    count * u64::from(PACKET)
}

#[test]
fn credit_and_window_must_both_admit_a_packet() {
    //= docs/specs/nscc-eqds.md#NSE-1 window and credit
    let path = path(10);
    let mut cc = at(10);
    assert!(cc.uses_credit() && !cc.has_credit(), "nothing is queued");
    assert_eq!(cc.window_bytes(&path), packets(10));
    cc.on_queued(&path, packets(1_000), true);
    assert!(cc.has_credit(), "it speculates");
    // A NACK ends speculation, and removes its packet from the window.
    cc.on_send(path.at_ps(0), PACKET);
    cc.on_loss(path.at_ps(RTT_PS), PACKET, LossCause::Trimmed);
    assert_eq!((cc.has_credit(), cc.window_bytes(&path)), (false, packets(9)));
    assert!(cc.poll_request(&path, false).is_some() && cc.on_pull(&path, packets(1)));
    assert!(cc.has_credit());
    cc.on_send(path.at_ps(RTT_PS), PACKET);
    assert_eq!((cc.has_credit(), cc.window_bytes(&path)), (false, packets(9)));
}

#[test]
fn a_sender_requests_its_window_and_a_packet() {
    //= docs/specs/nscc-eqds.md#NSE-2 requests limited by the window
    let requested = |window: u64, cc: CcKind| {
        let mut cc = AnyCc::new(&cc.into(), &path(window));
        cc.on_queued(&path(window), packets(1_000), true);
        cc.on_loss(path(window).at_ps(0), 0, LossCause::Timeout);
        cc.poll_request(&path(window), false).unwrap().demand_bytes
    };
    assert_eq!([10, 60, 500].map(|window| requested(window, CcKind::NsccEqds)), [packets(11), packets(61), 450_000]);
    assert_eq!(requested(10, CcKind::Eqds), 450_000);
}

#[test]
fn trims_at_the_last_port_do_not_reduce_the_window() {
    //= docs/specs/nscc-eqds.md#NSE-3 trimmed by the last port
    let left = |kind: CcKind, cause: LossCause| {
        let mut cc = AnyCc::new(&kind.into(), &path(10));
        cc.on_send(path(10).at_ps(0), PACKET);
        cc.on_loss(path(10).at_ps(RTT_PS), PACKET, cause);
        cc.window_bytes(&path(10)) / u64::from(PACKET)
    };
    assert_eq!(left(CcKind::NsccEqds, LossCause::TrimmedLast), 10);
    for cause in [LossCause::Trimmed, LossCause::Timeout, LossCause::SackGap] {
        assert_eq!(left(CcKind::NsccEqds, cause), 9, "{cause:?}");
    }
    assert_eq!(left(CcKind::Nscc, LossCause::TrimmedLast), 9, "NSCC alone always reduces the window");
    // After a period without delivered bytes the next trim is a quick adaptation, regardless of its
    // port.
    let mut cc = at(10);
    (0..2).for_each(|n| cc.on_loss(path(10).at_ps(n * 4 * RTT_PS + 1_024), PACKET, LossCause::TrimmedLast));
    assert_eq!(cc.window_bytes(&path(10)), packets(1));
}
