//! Remarkable observations, one line each.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;

use super::analyse::{Analysis, Path, State, Value};
use super::ask::{Reply, Survey};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub kind: Kind,
    pub text: String,
    /// Empty for all.
    pub ports: Vec<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    NoAnswer,
    InUse,
    NoEndpoint,
    OnePath,
    SilentRouters,
    /// A dead path, one of several behind a router, or a filter of these values.
    DeadPath,
    Refused,
    /// The answers are lost.
    ReturnPath,
    Slow,
    Lossy,
    Uneven,
    Unsteady,
    Limited,
}

/// Slow is what exceeds the fast values by this factor
const SLOW_TIMES: f64 = 2.0;
/// and this number of microseconds: less may be the machine's own delay.
const SLOW_US: f64 = 300.0;
const SOME: u32 = 3;
const LOSSY: f64 = 0.01;
const LOST: u32 = 2;

/// The most serious first. `occupied` describes the program on this side's interface.
pub fn findings(analysis: &Analysis, survey: &Survey, to: IpAddr, occupied: Option<&str>) -> Vec<Finding> {
    let mut all: Vec<Finding> = far_end(survey, to, occupied).into_iter().collect();
    all.extend(refused(analysis, survey));
    all.extend(lost(analysis, to));
    all.extend(slow(analysis));
    if survey.by == Some(Reply::Endpoint) {
        all.extend(lossy(analysis));
    }
    all.extend(spread(analysis));
    all.extend(unsteady(analysis, survey));
    all.extend(limited(survey));
    all
}

/// Formats as `49152, 49155-49157`.
pub fn ranges(ports: &[u16]) -> String {
    let mut runs: Vec<(u16, u16)> = Vec::new();
    for port in ports.iter().copied() {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(port) => *last = port,
            _ => runs.push((port, port)),
        }
    }
    let run = |(first, last): &(u16, u16)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    runs.iter().map(run).collect::<Vec<_>>().join(", ")
}

fn count(values: usize) -> String {
    if values == 1 { "1 value".into() } else { format!("{values} values") }
}

fn finding(kind: Kind, ports: &[u16], text: String) -> Finding {
    Finding { kind, text, ports: ports.to_vec() }
}

fn far_end(survey: &Survey, to: IpAddr, occupied: Option<&str>) -> Option<Finding> {
    match survey.by {
        None if let Some(occupied) = occupied => Some(finding(Kind::InUse, &[], occupied.into())),
        None => {
            let text =
                format!("{to} does not answer: is `spray serve` running there? With keys, give --key or --trust");
            Some(finding(Kind::NoAnswer, &[], text))
        }
        Some(Reply::Kernel) => {
            let text =
                format!("only the kernel of {to} answers, at a limited rate: to see losses, run `spray serve` there");
            Some(finding(Kind::NoEndpoint, &[], text))
        }
        Some(_) => None,
    }
}

fn refused(analysis: &Analysis, survey: &Survey) -> Vec<Finding> {
    let mut by: BTreeMap<(IpAddr, &str), Vec<u16>> = BTreeMap::new();
    for (value, end) in analysis.values.iter().zip(&survey.ends).filter(|(value, _)| value.state == State::Refused) {
        let place = analysis.values.iter().position(|other| other.port == value.port);
        let by_hop = survey.levels.iter().find_map(|level| match level.answers.get(place?)? {
            Some((Reply::Refused(by, why), _)) => Some((*by, *why)),
            _ => None,
        });
        by.entry(end.refused.or(by_hop).unwrap_or((IpAddr::from([0; 4]), ""))).or_default().push(value.port);
    }
    let all = analysis.values.len();
    let text = |((by, why), ports): (&(IpAddr, &str), &Vec<u16>)| {
        let text = format!("{by} refuses {} of {all} ({why}): {}", count(ports.len()), ranges(ports));
        finding(Kind::Refused, ports, text)
    };
    by.iter().map(text).collect()
}

fn lost(analysis: &Analysis, to: IpAddr) -> Vec<Finding> {
    let mut by_last: BTreeMap<(usize, Option<IpAddr>), Vec<&Value>> = BTreeMap::new();
    for value in analysis.values.iter().filter(|value| value.state == State::Lost) {
        by_last.entry((value.hops.len(), value.hops.last().copied().flatten())).or_default().push(value);
    }
    let farthest = analysis.of(State::Arrives).map(|path| path.hops.len()).max().unwrap_or(0);
    let describe = |((hops, last), values): ((usize, Option<IpAddr>), Vec<&Value>)| {
        let (kind, place) = match last {
            None => (Kind::DeadPath, "lost before the first router that answers".into()),
            Some(last) if analysis.passing(hops - 1, Some(last)) == 0 => {
                (Kind::DeadPath, format!("the path via {last} (hop {hops}) is dead behind it"))
            }
            Some(last) if farthest > 0 && hops + 1 >= farthest => {
                let place = format!("lost behind {last} (hop {hops}), the last router: at {to}, or on the way back");
                (Kind::ReturnPath, place)
            }
            Some(last) => {
                let place = format!("lost behind {last} (hop {hops}), which passes others: a dead path, or a filter");
                (Kind::DeadPath, place)
            }
        };
        let ports = ports(&values);
        let all = analysis.values.len();
        finding(kind, &ports, format!("{} of {all}: {place}: {}", count(ports.len()), ranges(&ports)))
    };
    by_last.into_iter().map(describe).collect()
}

fn ports(values: &[&Value]) -> Vec<u16> {
    values.iter().map(|value| value.port).collect()
}

/// Compared with the fastest quarter of values: slow paths, and slow values of others.
fn slow(analysis: &Analysis) -> Vec<Finding> {
    let mut all: Vec<f64> = analysis.values.iter().filter_map(|value| value.rtt.rtt_p50_us).collect();
    all.sort_by(f64::total_cmp);
    let Some(fast) = all.get(all.len() / 4).copied() else { return Vec::new() };
    let slow = |median: Option<f64>, answered| {
        median.filter(|us| answered >= SOME && *us >= SLOW_TIMES * fast && *us >= fast + SLOW_US)
    };
    let several = analysis.of(State::Arrives).count() > 1;
    let is_slow = |path: &Path| several && slow(path.rtt.rtt_p50_us, path.answered).is_some();
    let describe = |path: &Path| {
        let (via, own) = (analysis.via(path), milliseconds(path.rtt.rtt_p50_us.unwrap_or_default()));
        let text = format!("the path via {via} is slow: median round trip {own}, others {}", milliseconds(fast));
        finding(Kind::Slow, &path.ports, text)
    };
    let mut found: Vec<Finding> = analysis.paths.iter().filter(|path| is_slow(path)).map(describe).collect();
    let others =
        analysis.values.iter().filter(|value| analysis.paths.get(value.path).is_some_and(|path| !is_slow(path)));
    let rest: Vec<&Value> = others.filter(|value| slow(value.rtt.rtt_p50_us, value.answered).is_some()).collect();
    let most = rest.iter().filter_map(|value| value.rtt.rtt_p50_us).fold(0.0, f64::max);
    let (ports, all) = (ports(&rest), analysis.values.len());
    let (values, most, fast, ranges) = (count(ports.len()), milliseconds(most), milliseconds(fast), ranges(&ports));
    let text =
        format!("{values} of {all} take up to {most}, others on the same paths {fast} (slow return path?): {ranges}");
    found.extend((!ports.is_empty()).then(|| finding(Kind::Slow, &ports, text)));
    found
}

fn milliseconds(us: f64) -> String {
    if us < 1000.0 { format!("{:.2} ms", us / 1e3) } else { format!("{:.1} ms", us / 1e3) }
}

fn lossy(analysis: &Analysis) -> Vec<Finding> {
    let lossy = |path: &&Path| path.loss() >= LOSSY && path.sent - path.answered >= LOST;
    let counts = |path: &Path| path.sent > path.ports.len() as u32;
    let text = |path: &Path| {
        let (via, percent, lost) = (analysis.via(path), path.loss() * 100.0, path.sent - path.answered);
        let text = format!("the path via {via} loses {percent:.1} % ({lost} of {} probes)", path.sent);
        finding(Kind::Lossy, &path.ports, text)
    };
    analysis.of(State::Arrives).filter(|path| counts(path)).filter(lossy).map(text).collect()
}

fn spread(analysis: &Analysis) -> Option<Finding> {
    let seen = || analysis.paths.iter().filter(|path| matches!(path.state, State::Arrives | State::Unknown));
    if let Some(even) = analysis.evenness {
        let busiest = seen().max_by_key(|path| path.ports.len())?;
        even.uneven.filter(|uneven| *uneven)?;
        let (values, via, times) = (busiest.ports.len(), analysis.via(busiest), even.max_over_mean);
        let text = format!("uneven spread: {values} values are on the path via {via}, {times:.1} times the mean");
        return Some(finding(Kind::Uneven, &busiest.ports, text));
    }
    let only = seen().next().filter(|path| path.ports.len() > 1)?;
    let routers = only.hops.split_last().map_or(&[][..], |(_, routers)| routers);
    if only.hops.is_empty() || (!routers.is_empty() && routers.iter().all(Option::is_none)) {
        let text = "no router answers a probe whose TTL expires there: paths cannot be distinguished";
        return Some(finding(Kind::SilentRouters, &[], text.into()));
    }
    let text = "all values take one path: there is only one, or routers do not hash UDP source ports \
                (Linux: `sysctl net.ipv4.fib_multipath_hash_policy=1`, or net.ipv6)";
    (analysis.of(State::Lost).count() == 0 && !routers.is_empty()).then(|| finding(Kind::OnePath, &[], text.into()))
}

fn unsteady(analysis: &Analysis, survey: &Survey) -> Option<Finding> {
    let mut cases =
        survey.levels.iter().enumerate().flat_map(|(hop, level)| level.unsteady.iter().map(move |case| (hop, case)));
    let (hop, (value, before, now)) = cases.next()?;
    let port = analysis.values.get(*value)?.port;
    let hop = hop + 1;
    let text = format!(
        "packets of one value take several paths (value {port} passed {before}, then {now} at hop {hop}): switches spray \
         packets, or routes changed"
    );
    Some(finding(Kind::Unsteady, &[], text))
}

fn limited(survey: &Survey) -> Option<Finding> {
    let limited: Vec<_> = survey.levels.iter().zip(1..).filter(|(level, _)| level.limited).collect();
    let hops = limited.iter().map(|(_, hop): &(_, u8)| hop.to_string()).collect::<Vec<_>>().join(", ");
    let assumed = match limited.iter().map(|(level, _)| level.assumed).max() {
        None | Some(0) => String::new(),
        Some(most) => format!("; up to {most} values are assumed to pass the only router seen"),
    };
    let text = format!("routers at hop {hops} limit ICMP (Linux: net.ipv4.icmp_ratelimit), which is no loss{assumed}");
    (!limited.is_empty()).then(|| finding(Kind::Limited, &[], text))
}
