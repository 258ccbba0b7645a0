//! Which values share a path, and how evenly values are spread over paths.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;

use super::ask::{End, Reply, Survey};

#[derive(Debug, Serialize)]
pub struct Analysis {
    pub values: Vec<Value>,
    pub paths: Vec<Path>,
    /// Of values that arrive, or of all if the far end is silent; `None` for a single path.
    pub evenness: Option<Evenness>,
}

#[derive(Debug, Serialize)]
pub struct Value {
    pub port: u16,
    /// Index in [`Analysis::paths`].
    pub path: usize,
    pub state: State,
    pub hops: Vec<Option<IpAddr>>,
    pub sent: u32,
    pub answered: u32,
    #[serde(flatten)]
    pub rtt: Rtt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Arrives,
    Refused,
    Lost,
    Unknown,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rtt {
    pub rtt_min_us: Option<f64>,
    pub rtt_p50_us: Option<f64>,
    pub rtt_p99_us: Option<f64>,
}

#[derive(Debug, Serialize)]
pub struct Path {
    pub state: State,
    pub hops: Vec<Option<IpAddr>>,
    pub ports: Vec<u16>,
    pub sent: u32,
    pub answered: u32,
    #[serde(flatten)]
    pub rtt: Rtt,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Evenness {
    pub paths: usize,
    pub max_over_mean: f64,
    /// Whether the busiest path has too many values for a uniform hash; `None` for too few values.
    pub uneven: Option<bool>,
}

impl Rtt {
    fn of(mut us: Vec<f64>) -> Self {
        us.sort_by(f64::total_cmp);
        let at = |share: f64| us.get(((us.len() as f64 * share).ceil() as usize).saturating_sub(1)).copied();
        Self { rtt_min_us: at(0.0), rtt_p50_us: at(0.5), rtt_p99_us: at(0.99) }
    }
}

fn us(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

impl Path {
    pub fn loss(&self) -> f64 {
        1.0 - f64::from(self.answered) / f64::from(self.sent.max(1))
    }
}

impl Analysis {
    pub fn new(survey: &Survey, ports: &[u16], to: IpAddr) -> Self {
        let mut values: Vec<Value> =
            ports.iter().enumerate().map(|(value, port)| Value::new(survey, value, *port, to)).collect();
        let paths = group(&mut values, survey);
        let evenness = Evenness::of(&paths);
        Self { values, paths, evenness }
    }

    pub fn of(&self, state: State) -> impl Iterator<Item = &Path> {
        self.paths.iter().filter(move |path| path.state == state)
    }

    /// The number of arriving values that pass `address` at hop `at`, from 0.
    pub fn passing(&self, at: usize, address: Option<IpAddr>) -> usize {
        let passes = |value: &&Value| value.state == State::Arrives && value.hops.get(at) == Some(&address);
        self.values.iter().filter(passes).count()
    }

    /// The addresses that are not on all paths of the same state; all if there are none.
    pub fn via(&self, path: &Path) -> String {
        let is_common = |address: &IpAddr| self.of(path.state).all(|other| other.hops.contains(&Some(*address)));
        let all: Vec<IpAddr> = path.hops.iter().flatten().copied().collect();
        let own: Vec<IpAddr> = all.iter().copied().filter(|address| !is_common(address)).collect();
        let named = if own.is_empty() { all } else { own };
        let named: Vec<String> = named.iter().map(IpAddr::to_string).collect();
        if named.is_empty() { "routers that do not answer".into() } else { named.join(" > ") }
    }
}

impl Value {
    fn new(survey: &Survey, value: usize, port: u16, to: IpAddr) -> Self {
        let end = survey.ends.get(value).cloned().unwrap_or_default();
        let mut hops = Vec::new();
        let mut refused = end.refused.is_some();
        for level in &survey.levels {
            let reply = level.answers.get(value).copied().flatten().map(|(reply, _)| reply);
            let answering = reply.map(|reply| address(reply, to));
            let is_refused = matches!(reply, Some(Reply::Refused(..)));
            // A host that refuses what it should forward has answered before.
            if !is_refused || hops.last() != Some(&answering) {
                hops.push(answering);
            }
            refused |= is_refused;
            if !matches!(reply, None | Some(Reply::Router(_))) {
                break;
            }
        }
        let state = match (&end, survey.by) {
            (end, _) if end.is_alive() => State::Arrives,
            _ if refused => State::Refused,
            (_, None) => State::Unknown,
            _ => State::Lost,
        };
        while hops.pop_if(|last| last.is_none()).is_some() {}
        // What arrives passes the last router.
        if state == State::Arrives && hops.last() != Some(&Some(to)) && !hops.is_empty() {
            hops.push(Some(to));
        }
        let End { sent, rtts, .. } = end;
        let (answered, rtt) = (rtts.len() as u32, Rtt::of(rtts.into_iter().map(us).collect()));
        Self { port, path: 0, state, hops, sent, answered, rtt }
    }
}

/// Whether these hops may be of that path: a missing answer matches any address.
fn fits(hops: &[Option<IpAddr>], way: &[Option<IpAddr>]) -> bool {
    hops.len() == way.len() && hops.iter().zip(way).all(|(ours, theirs)| ours.is_none() || ours == theirs)
}

/// The path of each value. Linux routers answer with the address of the return path, so the
/// addresses of the last router behind the same routers are taken as one.
fn ways(values: &[Value]) -> Vec<Vec<Option<IpAddr>>> {
    let mut last: BTreeMap<Vec<Option<IpAddr>>, IpAddr> = BTreeMap::new();
    let way = |value: &Value| {
        let mut way = value.hops.clone();
        if let (State::Arrives, [before @ .., last_router, _]) = (value.state, way.as_mut_slice())
            && let (false, Some(address)) = (before.is_empty(), *last_router)
        {
            *last_router = Some(*last.entry(before.to_vec()).or_insert(address));
        }
        way
    };
    values.iter().map(way).collect()
}

fn address(reply: Reply, to: IpAddr) -> IpAddr {
    match reply {
        Reply::Router(address) | Reply::Refused(address, _) => address,
        Reply::Endpoint | Reply::Kernel => to,
    }
}

/// A value with missing answers joins the only path that it matches.
fn group(values: &mut [Value], survey: &Survey) -> Vec<Path> {
    let taken = ways(values);
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by_key(|at| taken[*at].iter().filter(|hop| hop.is_none()).count());
    let mut ways: Vec<(State, Vec<Option<IpAddr>>)> = Vec::new();
    for at in order {
        let same = |other: &&(State, Vec<_>)| other.0 == values[at].state && fits(&taken[at], &other.1);
        let is_there = ways.contains(&(values[at].state, taken[at].clone()));
        if !is_there && ways.iter().filter(same).count() != 1 {
            ways.push((values[at].state, taken[at].clone()));
        }
    }
    ways.sort();
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); ways.len()];
    for (at, value) in values.iter_mut().enumerate() {
        let exact = ways.iter().position(|(state, way)| *state == value.state && *way == taken[at]);
        let fitting = || ways.iter().position(|(state, way)| *state == value.state && fits(&taken[at], way));
        value.path = exact.or_else(fitting).unwrap_or_default();
        members[value.path].push(at);
    }
    let path = |((state, hops), members): ((State, _), Vec<usize>)| {
        let of = |read: fn(&Value) -> u32| members.iter().map(|at| read(&values[*at])).sum();
        let rtts = members.iter().flat_map(|at| &survey.ends[*at].rtts).copied().map(us).collect();
        let ports = members.iter().map(|at| values[*at].port).collect();
        Path { state, hops, ports, sent: of(|v| v.sent), answered: of(|v| v.answered), rtt: Rtt::of(rtts) }
    };
    ways.into_iter().zip(members).map(path).collect()
}

impl Evenness {
    fn of(paths: &[Path]) -> Option<Self> {
        let counted =
            if paths.iter().any(|path| path.state == State::Arrives) { State::Arrives } else { State::Unknown };
        let counted = paths.iter().filter(|path| path.state == counted && !path.hops.is_empty());
        Self::of_counts(&counted.map(|path| path.ports.len() as f64).collect::<Vec<_>>())
    }

    fn of_counts(counts: &[f64]) -> Option<Self> {
        const LEAST: f64 = 5.0;
        /// In standard deviations. Some path has more in fewer than 1 % of cases.
        const MOST: f64 = 4.0;
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        let busiest = counts.iter().copied().fold(0.0, f64::max);
        (counts.len() > 1).then(|| Self {
            paths: counts.len(),
            max_over_mean: busiest / mean,
            uneven: (mean >= LEAST).then_some(busiest > mean + MOST * mean.sqrt()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_router_is_one_despite_several_addresses() {
        let address = |last| Some(IpAddr::from([10, 0, 0, last]));
        let value = |hops: &[u8]| Value {
            port: 1,
            path: 0,
            state: State::Arrives,
            hops: hops.iter().map(|hop| address(*hop)).collect(),
            sent: 1,
            answered: 1,
            rtt: Rtt::default(),
        };
        let survey = Survey { ends: vec![End::default(); 5], ..Survey::default() };
        let mut values = [[1, 2, 3, 9], [1, 2, 4, 9], [1, 5, 4, 9], [1, 5, 3, 9]].map(|hops| value(&hops));
        assert_eq!(group(&mut values, &survey).len(), 2);
        assert_eq!(values.map(|value| value.path), [0, 0, 1, 1]);
        // Two gateways of this machine count as two.
        assert_eq!(group(&mut [value(&[1, 9]), value(&[2, 9])], &survey).len(), 2);
        // A router that did not answer is the one that other values passed.
        let mut values = [value(&[1, 2, 3, 9]), value(&[1, 2, 3, 9])];
        values[0].hops[1] = None;
        assert_eq!(group(&mut values, &survey).len(), 1);
    }

    #[test]
    fn evenness_is_tested_against_a_uniform_hash() {
        let of = |counts: &[f64]| Evenness::of_counts(counts).unwrap();
        assert_eq!(of(&[16.0; 4]), Evenness { paths: 4, max_over_mean: 1.0, uneven: Some(false) });
        assert_eq!(of(&[30.0, 12.0, 11.0, 11.0]).uneven, Some(false));
        assert_eq!(of(&[34.0, 10.0, 10.0, 10.0]).uneven, Some(true));
        assert_eq!(of(&[3.0, 1.0]).uneven, None);
        assert!(Evenness::of_counts(&[64.0]).is_none() && Evenness::of_counts(&[]).is_none());
    }
}
