//! `spray paths`: which entropy value takes which path, and its loss and round-trip time there.

mod analyse;
mod ask;
mod findings;
pub(crate) mod probe;

#[cfg(test)]
mod tests;

use std::net::IpAddr;

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use serde::Serialize;
use spray_nic::keys::{PrivateKey, PublicKey};
use spray_nic::net::Interface;
use spray_nic::xdp::AttachedProgram;

use self::analyse::{Analysis, Evenness, Path, State};
use self::ask::{Plan, Reply, Survey, survey};
use self::findings::{Finding, findings, ranges};
use self::probe::{Prober, Route};
use crate::args;
use crate::confine::{Reach, confine};
use crate::failure::{Failure, Outcome};
use crate::progress::Progress;
use crate::stop::Stop;
use crate::{note, say};

#[derive(Debug, Serialize)]
struct Report {
    from: IpAddr,
    to: IpAddr,
    port: u16,
    answered_by: Option<&'static str>,
    #[serde(flatten)]
    analysis: Analysis,
    findings: Vec<Finding>,
}

/// Probes the network and prints the result.
///
/// # Errors
/// 2 if it could not start, 1 if nothing answered, 130 after Ctrl-C.
pub fn paths(arguments: &args::Paths) -> Outcome {
    let route = Route::find(arguments.address, arguments.from, arguments.port, key(arguments)?)?;
    let stop = Stop::on_signals()?;
    let cookie = getrandom::u64().map_err(Failure::failed)?;
    let (mut prober, taken) = Prober::open(route.clone(), &arguments.source_ports(), cookie, stop.clone())?;
    if !taken.is_empty() {
        note!("spray: left out, since other programs have them: UDP ports {} (`ss -uapn`)", ranges(&taken));
    }
    let occupied = occupied(route.from);
    confine(&Reach::Read { named: Vec::new(), files: Vec::new() })?;
    let ports = prober.ports();
    let plan = Plan { values: ports.len(), probes: arguments.probes, hops: arguments.hops };
    let mut progress = Progress::on_stderr();
    let survey = survey(&mut prober, &plan, |text| progress.phase(&format!("spray: {text}")));
    progress.clear();
    if stop.is_set() {
        return Err(Failure::stopped());
    }
    let report = Report::new(&survey, &ports, &route, occupied.as_deref());
    report.tell();
    say::object(&report)?;
    if survey.by.is_none() && survey.levels.is_empty() {
        let why = occupied.map(|why| format!(": {why}")).unwrap_or_default();
        return Err(Failure::failed(format!("nothing answered on the way to {} or there{why}", route.to)));
    }
    Ok(())
}

/// Names the XDP program on the interface of this address, which may take the answers.
fn occupied(from: IpAddr) -> Option<String> {
    let has = |found: &InterfaceAddress| {
        let address = found.address.as_ref();
        let v4 = address.and_then(|address| Some(IpAddr::from(address.as_sockaddr_in()?.ip())));
        v4.or_else(|| Some(address?.as_sockaddr_in6()?.ip().into())) == Some(from)
    };
    let name = getifaddrs().ok()?.find(has)?.interface_name;
    let occupant = AttachedProgram::from_id(Interface::find(&name).ok()?.xdp_program?);
    Some(format!("{name} is in use, and what has it takes the answers: {occupant}; {}", occupant.remedy(&name)))
}

fn key(arguments: &args::Paths) -> Outcome<Option<PublicKey>> {
    match (&arguments.trust, &arguments.key) {
        (Some(key), _) => Ok(Some(*key)),
        (None, Some(path)) => Ok(Some(PrivateKey::read(path).map_err(Failure::refused)?.public())),
        (None, None) => Ok(None),
    }
}

impl Report {
    fn new(survey: &Survey, ports: &[u16], route: &Route, occupied: Option<&str>) -> Self {
        let analysis = Analysis::new(survey, ports, route.to);
        Self {
            from: route.from,
            to: route.to,
            port: route.ports.first(),
            answered_by: survey.by.map(|by| if by == Reply::Endpoint { "endpoint" } else { "kernel" }),
            findings: findings(&analysis, survey, route.to, occupied),
            analysis,
        }
    }

    fn tell(&self) {
        let Self { from, to, port, analysis: Analysis { values, .. }, .. } = self;
        let [first, last] = [values.first(), values.last()].map(|value| value.map_or(0, |value| value.port));
        say!("{} entropy values (UDP ports {first} to {last}) from {from} to {to}, port {port}", values.len());
        say!("path  values  share   loss  RTT least     p50     p99  hops");
        for (number, path) in self.analysis.paths.iter().enumerate() {
            say!("{}", self.row(number + 1, path));
            say!("{:24}values {}", "", ranges(&path.ports));
        }
        say!("{}", self.summary());
        for finding in &self.findings {
            say!("- {}", finding.text);
        }
    }

    fn row(&self, number: usize, path: &Path) -> String {
        let share = 100.0 * path.ports.len() as f64 / self.analysis.values.len() as f64;
        let time = |us: Option<f64>| us.map_or("-".into(), |us| format!("{us:.0} us"));
        let loss = match path.state {
            State::Arrives if self.answered_by == Some("endpoint") => format!("{:.1} %", 100.0 * path.loss()),
            State::Lost => "all".into(),
            State::Refused => "refused".into(),
            _ => "-".into(),
        };
        let hops = path.hops.iter().map(|hop| hop.map_or("*".into(), |hop| hop.to_string()));
        let mut hops: Vec<String> = hops.collect();
        if path.state != State::Arrives {
            hops.push("?".into());
        }
        let [least, p50, p99] = [path.rtt.rtt_min_us, path.rtt.rtt_p50_us, path.rtt.rtt_p99_us].map(time);
        let values = path.ports.len();
        format!("{number:4} {values:7} {share:4.0} % {loss:>7} {least:>9} {p50:>7} {p99:>7}  {}", hops.join(" > "))
    }

    fn summary(&self) -> String {
        let Some(Evenness { paths, max_over_mean, uneven }) = self.analysis.evenness else {
            return "1 path is seen".into();
        };
        let judgement = match uneven {
            None => "too few values to tell from a uniform hash: give more with --values",
            Some(true) => "less evenly than a uniform hash would",
            Some(false) => "as evenly as a uniform hash would",
        };
        format!("{paths} paths, {judgement}: the busiest has {max_over_mean:.2} of the mean")
    }
}
