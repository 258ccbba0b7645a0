//! Compares freezing with the schedule of failures.

use std::collections::{HashMap, HashSet};

use spray_fabric::{LinkEvent, Network, Node, ShortestPaths};

use super::collect::Collect;
use super::{EngineFigures, EventKind, EventRow, FlowResult, us};

/// Two host numbers.
type Pair = (usize, usize);

impl EngineFigures {
    /// Computes precision and recall of freezing by pairs of hosts; `events` has all freezes.
    pub(super) fn of_freezing(collect: &Collect<'_>, flows: &[FlowResult], events: &[EventRow]) -> Self {
        let freezes = events.iter().filter(|row| row.kind == EventKind::FreezeEntered);
        let freeze_entries = freezes.clone().count() as u64;
        let failures: Vec<&LinkEvent> =
            collect.link_events.iter().filter(|event| drops_all(event.action.name())).collect();
        if freeze_entries == 0 && failures.is_empty() {
            return Self::default();
        }
        let named: HashMap<String, Pair> =
            collect.plan.flows.iter().enumerate().map(|(flow, of)| (collect.name(flow), (of.src, of.dst))).collect();
        let freezes: Vec<(f64, Pair)> =
            freezes.filter_map(|row| Some((row.time_us, *named.get(&row.subject)?))).collect();
        let (paths, network) = (collect.paths, &collect.scenario.network);
        let grace_us = |(src, dst)| 10.0 * us(collect.scenario.pair_rtt_ps(paths, src, dst));
        let both_ways = collect.plan.flows.iter().flat_map(|flow| [(flow.src, flow.dst), (flow.dst, flow.src)]);
        let links: HashMap<Pair, HashSet<usize>> =
            both_ways.map(|pair| (pair, on_paths(network, &paths.routes, pair))).collect();
        let hits = |event: &LinkEvent, pair: Pair| event.links.iter().any(|link| links[&pair].contains(link));
        let lasts = |event: &LinkEvent| (us(event.at_ps), event.until_ps.map_or(f64::INFINITY, us));
        let during = |at_us: f64, pair: Pair, event: &LinkEvent| {
            let (from_us, to_us) = lasts(event);
            (from_us..=to_us + grace_us(pair)).contains(&at_us)
        };

        let is_justified = |(at_us, pair): &&(f64, Pair)| {
            let back = (pair.1, pair.0);
            let explains = |event: &&LinkEvent| hits(event, *pair) || hits(event, back);
            failures.iter().any(|event| during(*at_us, *pair, event) && explains(event))
        };
        let justified = freezes.iter().filter(is_justified).count();

        let (mut exposed, mut froze) = (HashSet::new(), HashSet::new());
        for sent in flows {
            let flow = &collect.plan.flows[sent.flow as usize];
            let pair = (flow.src, flow.dst);
            let end_us = sent.end_us.unwrap_or(us(collect.end_ps));
            for event in &failures {
                let (from_us, to_us) = lasts(event);
                let overlap_us = end_us.min(to_us) - sent.start_us.max(from_us);
                if overlap_us >= grace_us(pair) && hits(event, pair) {
                    exposed.insert(pair);
                    if freezes.iter().any(|(at_us, of)| *of == pair && during(*at_us, pair, event)) {
                        froze.insert(pair);
                    }
                }
            }
        }
        let share = |part: usize, all: usize| (all > 0).then(|| part as f64 / all as f64);
        let (freeze_precision, freeze_recall) = (share(justified, freezes.len()), share(froze.len(), exposed.len()));
        Self { freeze_entries, freeze_precision, freeze_recall, ..Self::default() }
    }
}

/// Whether a link action drops every frame, permanently or in outages.
pub(crate) fn drops_all(action: &str) -> bool {
    ["down", "silent-drop", "flap"].contains(&action)
}

/// Returns the links on all shortest paths between two hosts.
fn on_paths(network: &Network, routes: &ShortestPaths, (src, dst): Pair) -> HashSet<usize> {
    let mut links = HashSet::from([network.uplink(src), network.downlink(dst)]);
    let leaf = routes.leaf_number(network.leaf_of(dst)).unwrap_or_default();
    let mut at = vec![network.leaf_of(src)];
    while let Some(switch) = at.pop() {
        for link in routes.next(switch, leaf).iter().map(|link| *link as usize) {
            if links.insert(link)
                && let Node::Switch(next) = network.links[link].to
            {
                at.push(next);
            }
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use spray_core::path::BalancerKind;

    use spray_fabric::LinkAction;

    use super::*;
    use crate::sim::{Simulation, published};

    const US: u64 = 1_000_000;

    /// Returns precision and recall, with one sender at leaf 0 and one at leaf 1, when these links
    /// fail.
    fn froze(balancer: BalancerKind, links: &str, action: LinkAction, until_us: u64) -> (Option<f64>, Option<f64>) {
        let topology = include_str!("../../../../tests/reference/leafspine_32_400g.topo");
        let matrix = "Nodes 32\nConnections 2\n0->28 id 1 start 0 size 8388608\n4->29 id 2 start 0 size 8388608\n";
        let mut scenario = published("freezing", topology, matrix);
        let is_meant = |link: &spray_fabric::Link| link.name.starts_with(links) && link.is_uplink();
        let links = (0..scenario.network.links.len()).filter(|link| is_meant(&scenario.network.links[*link])).collect();
        let event = LinkEvent { name: "x".into(), links, at_ps: 50 * US, until_ps: Some(until_us * US), action };
        scenario.add_link_events(vec![event]);
        let summary = Simulation::new(&scenario).run(balancer, 1, &[]).unwrap().summary();
        (summary.engine_figures.freeze_precision, summary.engine_figures.freeze_recall)
    }

    #[test]
    fn freezes_are_compared_with_the_failures() {
        use BalancerKind::{Ops, Reps, RepsPlus};
        let dead = LinkAction::SilentDrop;
        let lossy = LinkAction::Loss { ppm: 10_000 };
        // Only one of the two connections uses the link.
        assert_eq!(froze(RepsPlus, "leaf0->spine0", dead, 150), (Some(1.0), Some(1.0)));
        assert_eq!(froze(Ops, "leaf0->spine0", dead, 150), (None, Some(0.0)));
        assert_eq!(froze(Ops, "leaf5->spine0", dead, 150), (None, None), "nobody's");
        // Too short to be detected: no connection counts as exposed.
        assert_eq!(froze(Ops, "leaf0->spine0", dead, 60), (None, None));
        assert_eq!(froze(RepsPlus, "", lossy, 150), (None, None));
        assert_eq!(froze(Reps, "", lossy, 150), (Some(0.0), None), "needless");
    }
}
