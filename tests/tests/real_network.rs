//! Short transfers over plain Linux routers: they succeed under every condition that `cargo xtask
//! real-network` measures.

use spray_tests::content::Content;
use spray_tests::real_network::{CUBIC, Candidate, CompetingFlows, Condition, Contender, compete, latency, transfer};
use spray_tests::routers::{RouterQueue, Routers};
use spray_tests::{spray, turn};

#[test]
fn transfers_over_plain_routers_succeed() {
    let Some(_turn) = turn() else { return };
    let file = Content::new(4_000_000);
    let mut routers = Routers::new().unwrap();
    let by = |balancer: &str| Contender::Spray(vec![format!("--balancer={balancer}")]);
    for (balancer, condition) in [
        ("ecmp", Condition::Healthy),
        ("flowcut", Condition::Healthy),
        ("reps", Condition::Slow),
        ("reps-plus", Condition::Silent),
        ("ops", Condition::Withdrawn),
        ("reps", Condition::Lossy),
        ("reps-plus", Condition::Jitter),
        ("reps-plus", Condition::Far),
    ] {
        let command = spray();
        let done = transfer(&routers, command.get_program().as_ref(), file.path(), &by(balancer), condition).unwrap();
        assert!(done.mbps.is_some(), "{balancer}, {}: {}", condition.name(), done.output);
    }
    for contender in [Contender::Tcp(CUBIC), Contender::Mptcp] {
        let command = spray();
        let done = transfer(&routers, command.get_program().as_ref(), file.path(), &contender, Condition::Healthy);
        assert!(done.unwrap().mbps.is_some(), "{contender:?}");
    }
    routers.set_queue(RouterQueue::RED).unwrap();
    let command = spray();
    let done = transfer(&routers, command.get_program().as_ref(), file.path(), &by("reps-plus"), Condition::Healthy);
    assert!(done.unwrap().mbps.is_some(), "RED");
}

#[test]
fn a_transfer_in_competition_with_tcp_succeeds_and_leaves_it_a_share() {
    let Some(_turn) = turn() else { return };
    let file = Content::new(4_000_000);
    let routers = Routers::new().unwrap();
    let competing = CompetingFlows { each: 1, control: "cubic", ecn: true };
    let shares = compete(&routers, Candidate::Spray(spray().get_program().as_ref()), file.path(), &competing).unwrap();
    assert!(shares.ours.is_some(), "{}", shares.output);
    assert!(shares.alone.len() == Routers::SPINES && shares.during.iter().all(|mbps| *mbps > 0.0), "{shares:?}");
}

#[test]
fn datagrams_arrive_during_a_transfer() {
    let Some(_turn) = turn() else { return };
    let file = Content::new(16_000_000);
    let routers = Routers::new().unwrap();
    let ours = Contender::Spray(Vec::new());
    let seen = latency(&routers, spray().get_program().as_ref(), file.path(), &ours).unwrap();
    assert!(seen.transfer.mbps.is_some() && seen.sent > 0, "{seen:?}");
    // Datagrams that find full queues are lost.
    assert!(seen.took.len() <= seen.sent && seen.took.len() * 2 > seen.sent, "{seen:?}");
    assert!(seen.quantile(0.5) <= seen.quantile(0.99), "{seen:?}");
}
