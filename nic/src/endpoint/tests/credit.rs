//! Credit between endpoints: one pacer for all senders to a host, and none without requests.

use spray_core::cc::CcKind;

use super::*;

const BYTES: usize = 300_000;

/// Hosts 1 to 3 send to host 0 with credit, and host 0 to host 1 without. Returns the time at which
/// everything has arrived.
fn incast(impairments: Impairments) -> (Rig, u64) {
    let mut rig = Rig::with(4, false, impairments, |host, config| {
        if host > 0 {
            config.flow.cc = CcKind::Eqds.into();
        }
    });
    let connections: Vec<_> = [(1, 0), (2, 0), (3, 0), (0, 1)].map(|(from, to)| (from, rig.connect(from, to))).into();
    for (from, connection) in &connections {
        rig.endpoints[*from].send(*connection, content(*from, BYTES)).unwrap();
    }
    let all = |rig: &mut Rig| rig.received(0).len() == 3 && rig.received(1).len() == 1;
    assert!(rig.run(50 * US, 2_000 * MS, all), "{:?}", rig.endpoints.iter().map(Endpoint::stats).collect::<Vec<_>>());
    let took_ps = rig.now.ps();
    let mut received: Vec<_> = rig.received(0).into_iter().map(|(.., data)| data).collect();
    received.sort();
    assert!(received == [1, 2, 3].map(|from| content(from, BYTES)), "other bytes than were sent");
    for (from, connection) in connections {
        rig.endpoints[from].close(connection);
    }
    rig.run(50 * US, 100 * MS, |rig| (0..4).all(|host| rig.endpoints[host].connections() == 0));
    (rig, took_ps)
}

//= docs/specs/eqds.md#EQDS-11 one queue
//= docs/specs/eqds.md#EQDS-15 mixed congestion controls
#[test]
fn a_host_shares_its_link_among_its_senders() {
    let (rig, took_ps) = incast(Impairments::delay(US));
    // 900 packets at 99 % of 10 Gb/s; the first packets of each sender need no credit.
    let link_ps = 900 * u64::from(rig.endpoints[0].config().flow.packet_bytes()) * 800;
    assert!(took_ps > link_ps * 9 / 10 && took_ps < link_ps * 115 / 100, "{took_ps}, on the link {link_ps}");
    let stats: Vec<_> = rig.endpoints.iter().map(Endpoint::stats).collect();
    // Each sender sent a few packets without credit before its first acknowledgement arrived.
    assert!((800..=897).contains(&stats[0].sent[Kind::Pull]), "{}", stats[0].sent[Kind::Pull]);
    assert!(
        stats[1..].iter().all(|stats| (6..40).contains(&stats.sent[Kind::PullRequest]) && stats.sent[Kind::Pull] == 0)
    );
    assert_eq!((stats[0].sent[Kind::PullRequest], stats[1].received[Kind::PullRequest]), (0, 0));
    assert!(rig.endpoints[1..].iter().all(|endpoint| !endpoint.machine.shared.host.grants_credit()));
    let host = &rig.endpoints[0].machine.shared.host;
    assert!(host.grants_credit() && host.grant_at().is_none(), "no sender is waiting");
    rig.audit();
}

//= docs/specs/eqds.md#EQDS-14 A sender without credit
#[test]
fn everything_arrives_despite_losses() {
    let rough = Impairments {
        delay_ps: 5 * US,
        jitter_ps: 10 * US,
        loss_ppm: 200_000,
        duplicate_ppm: 50_000,
        corrupt_ppm: 50_000,
        trim_ppm: 100_000,
        ..Impairments::default()
    };
    incast(rough).0.audit();
}
