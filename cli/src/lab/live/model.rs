//! What the live view shows, and what its keys order: no terminal here.

use std::collections::VecDeque;

use spray_core::path::BalancerKind;
use spray_experiments::live::NewFlows;
use spray_experiments::scenario::Scenario;
use spray_fabric::live::{HostNow, LinkNow, Order, Snapshot};
use spray_fabric::{LinkAction, LinkState, MIN_RATE_PPM, Node};

/// Looks over which rates are taken.
const SPAN: usize = 10;
/// Looks whose goodput is drawn.
const SERIES: usize = 400;

/// The state of a run, and what may be done.
#[derive(Debug)]
pub struct Model {
    /// What runs: scenario, engine, balancer, seed.
    pub title: String,
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// The links, those between switches first.
    pub links: Vec<Row>,
    /// The row that keys are about.
    pub selected: usize,
    /// The latest look.
    pub now: Snapshot,
    /// Goodput of all hosts over time, in bits a second.
    pub goodput: VecDeque<u64>,
    /// All messages of the run.
    pub messages: u64,
    /// What was done last.
    pub note: String,
    looks: VecDeque<Look>,
}

/// A link in the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// The link's index in the network.
    pub link: usize,
    /// Its name.
    pub name: String,
    /// Its full rate.
    pub rate_bps: u64,
    /// Both directions of its cable, and the cable's name.
    cable: ([usize; 2], String),
}

/// What rates are taken from.
#[derive(Debug)]
struct Look {
    at_ps: i64,
    received: Vec<u64>,
    sent: Vec<u64>,
}

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The row above is selected, or one so many rows above.
    Up(usize),
    /// The row below, or one so many rows below.
    Down(usize),
    /// The selected cable drops every frame, and switches do not learn of it.
    Fail,
    /// It has a quarter of its rate.
    Slow,
    /// It loses a frame in a hundred.
    Lose,
    /// It is healthy.
    Heal,
    /// New flows get the next balancer, or the one before.
    Balancer {
        /// The next one.
        forward: bool,
    },
}

impl Model {
    /// That of a run of `scenario` under `balancer`; `messages` are all that it sends.
    pub fn new(scenario: &Scenario, engine: &str, (balancer, seed): (BalancerKind, u64)) -> Self {
        let network = &scenario.network;
        let mut links: Vec<Row> = Vec::with_capacity(network.links.len());
        for (index, link) in network.links.iter().enumerate() {
            // The two directions of a cable are neighbours.
            let cable = ([index & !1, index | 1], network.links[index & !1].name.replacen("->", "-", 1));
            links.push(Row { link: index, name: link.name.clone(), rate_bps: link.rate_bps, cable });
        }
        let to_host = |row: &Row| {
            let link = &network.links[row.link];
            matches!(link.from, Node::Host(_)) || matches!(link.to, Node::Host(_))
        };
        links.sort_by_key(to_host);
        Self {
            title: format!("{} · {engine} · {balancer} · seed {seed}", scenario.name),
            hosts: network.hosts.clone(),
            links,
            selected: 0,
            now: Snapshot::default(),
            goodput: VecDeque::with_capacity(SERIES),
            messages: scenario.flows(seed).len() as u64,
            note: String::new(),
            looks: VecDeque::with_capacity(SPAN + 1),
        }
    }

    /// Takes the state of the run.
    pub fn take(&mut self, run: &Snapshot) {
        self.now.clone_from(run);
        self.links.retain(|row| run.links[row.link].is_some());
        // Ports count what comes; what waits has yet to leave.
        let sent =
            |link: &Option<LinkNow>| link.map_or(0, |link| link.counters.bytes.saturating_sub(link.waiting_bytes));
        self.looks.push_back(Look {
            at_ps: run.now_ps,
            received: run.hosts.iter().map(|host| host.received_bytes).collect(),
            sent: run.links.iter().map(sent).collect(),
        });
        if self.looks.len() > SPAN {
            self.looks.pop_front();
        }
        let total = (0..self.hosts.len()).map(|host| self.goodput_bps(host)).sum::<f64>();
        self.goodput.push_back(total as u64);
        if self.goodput.len() > SERIES {
            self.goodput.pop_front();
        }
    }

    /// Payload bits a second that a host receives.
    pub fn goodput_bps(&self, host: usize) -> f64 {
        self.rate_bps(|look| look.received[host])
    }

    /// Bits a second that leave by the link of a row.
    pub fn link_bps(&self, row: &Row) -> f64 {
        self.rate_bps(|look| look.sent[row.link]).min(row.rate_bps as f64)
    }

    /// What a host does.
    pub fn host(&self, host: usize) -> HostNow {
        self.now.hosts.get(host).copied().unwrap_or_default()
    }

    /// What the link of a row does.
    pub fn link(&self, row: &Row) -> LinkNow {
        self.now.links.get(row.link).copied().flatten().unwrap_or_default()
    }

    fn rate_bps(&self, bytes: impl Fn(&Look) -> u64) -> f64 {
        let (Some(first), Some(last)) = (self.looks.front(), self.looks.back()) else { return 0.0 };
        let ps = (last.at_ps - first.at_ps).max(1) as f64;
        bytes(last).saturating_sub(bytes(first)) as f64 * 8e12 / ps
    }

    /// Does what a key says; returns what the run is to be told.
    pub fn act(&mut self, action: Action, new_flows: &NewFlows) -> Option<Order> {
        let last = self.links.len().saturating_sub(1);
        match action {
            Action::Up(rows) => self.selected = self.selected.saturating_sub(rows),
            Action::Down(rows) => self.selected = (self.selected + rows).min(last),
            Action::Fail => return self.apply(LinkAction::SilentDrop, "drops every frame"),
            Action::Slow => return self.slow(),
            Action::Lose => return self.apply(LinkAction::Loss { ppm: 10_000 }, "loses 1 % of its frames"),
            Action::Heal => {
                let (links, name) = self.cable()?;
                self.note = format!("{name} is healthy");
                return Some(Order::Heal { links: links.to_vec() });
            }
            Action::Balancer { forward } => return Some(self.choose(forward, new_flows)),
        }
        None
    }

    /// Leaves a quarter of the rate that the selected link has, as long as that is a rate that it can have.
    fn slow(&mut self) -> Option<Order> {
        let row = self.links.get(self.selected)?;
        let (ppm, name) = (self.link(row).state.rate_ppm, row.name.clone());
        let left = f64::from(ppm / 4) / 1e4;
        if ppm / 4 < MIN_RATE_PPM {
            let least = f64::from(MIN_RATE_PPM) / 1e4;
            self.note = format!("{name} would have {left} % of its rate; allowed: at least {least} %");
            return None;
        }
        self.apply(LinkAction::Rate { ppm: 250_000 }, &format!("has {left} % of its rate"))
    }

    fn apply(&mut self, action: LinkAction, what: &str) -> Option<Order> {
        let (links, name) = self.cable()?;
        self.note = format!("{name} {what}");
        Some(Order::Apply { name, links: links.to_vec(), action })
    }

    /// The cable of the selected row; `None` where the engine cannot change it.
    fn cable(&mut self) -> Option<([usize; 2], String)> {
        let row = self.links.get(self.selected)?;
        if self.link(row).can_change {
            return Some(row.cable.clone());
        }
        self.note = format!("{} leads to a host, which plays it: choose a link between switches", row.name);
        None
    }

    fn choose(&mut self, forward: bool, new_flows: &NewFlows) -> Order {
        let all = BalancerKind::ALL;
        let step = if forward { 1 } else { all.len() - 1 };
        let next = all[(new_flows.get() as usize + step) % all.len()];
        new_flows.set(next);
        self.note = format!("flows that begin from now on: {next}");
        Order::Rechoose
    }
}

/// A link's state in words.
pub fn state(state: &LinkState) -> String {
    let percent = |ppm: u32| format!("{} %", f64::from(ppm) / 1e4);
    let mut words = Vec::new();
    if !state.up {
        words.push("down".to_owned());
    }
    if state.silent_drop {
        words.push("drops all".into());
    }
    if state.rate_ppm < 1_000_000 {
        words.push(format!("slow: {}", percent(state.rate_ppm)));
    }
    if state.loss_ppm > 0 {
        words.push(format!("loses {}", percent(state.loss_ppm)));
    }
    if state.flap.is_some() {
        words.push("flaps".into());
    }
    if state.drop_every.is_some() {
        words.push("loses some".into());
    }
    words.join(", ")
}
