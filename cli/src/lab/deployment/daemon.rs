//! The process that keeps a fabric and serves the commands. Its end removes everything.

use std::fs::File;
use std::io::{BufRead, BufReader, Write, stdout};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use spray_experiments::engine::EngineError;
use spray_experiments::scenario::{QueueLength, Scenario};
use spray_experiments::switch::{
    CableState, DeployedHost, DeployedLink, Deployment, ExternalInterfaces, HostLocation, LinkLogEntry, LinkLogEvent,
    RemoteCable, RunError,
};
use spray_experiments::xdp;
use spray_tools::failure::{Failure, Outcome};
use spray_tools::info;
use spray_tools::metrics::{Metric, Metrics, Section};
use spray_tools::stop::Stop;

use super::change::{Change, state};
use super::external_hosts;
use super::name::Name;
use super::programs::programs;
use super::protocol::{CableRow, EventRow, FabricReport, FabricStatus, HostRow, LinkRow, Request, Response};
use super::user::login_name;
use crate::lab::args;
use crate::lab::settings;

const READ_TIMEOUT: Duration = Duration::from_secs(2);
const POLL_MS: u16 = 100;

/// Sets a fabric up, reports it on standard output, and keeps it until a signal or a request. Fails
/// with 2 when this is not possible, 130 when stopped before it is up.
pub fn run_daemon(arguments: &args::Up, interfaces: Option<ExternalInterfaces<'_>>) -> Outcome {
    // Ctrl-C goes to the command, which forwards it; its end must not end this process.
    let _ = nix::unistd::setsid();
    let stop = Stop::on_signals()?;
    let file = arguments.scenario.as_deref().ok_or_else(|| Failure::refused("no scenario"))?;
    let document = settings::load(&arguments.overrides, file)?;
    let mut scenario = Scenario::read(&document).map_err(Failure::refused)?;
    if interfaces.is_none() && !document.has("queue.limit") {
        let packets = enlarge_queues(&mut scenario);
        info!(
            "every queue holds {packets} packets, which TCP in the kernel needs; `limit` in [queue] sets another length"
        );
    }
    let name = match &arguments.name {
        Some(name) => name.clone(),
        None => {
            let node = interfaces.and_then(|given| given.node).map(|node| format!("-{node}")).unwrap_or_default();
            format!("{}{node}", scenario.name)
                .parse::<Name>()
                .map_err(|why| Failure::refused(format!("the scenario's name: {why}; or give one by --name")))?
        }
    };
    if interfaces.is_some() && !arguments.external_hosts.is_empty() {
        return Err(Failure::refused("--host requires `spray up`; the hosts of `spray switch` are behind its --port"));
    }
    let external_hosts = external_hosts::find(&arguments.external_hosts)?;
    report_differences(&scenario, interfaces.is_some());
    let metrics = Metrics::open(arguments.publish.metrics)?;
    let listener = listen(&name.0)?;
    let socket = Socket(name.0);
    let deployment = xdp::deploy(&scenario, &external_hosts, interfaces).map_err(|error| match error {
        EngineError::Refused(why) => Failure::refused(why),
        error => Failure::failed(error),
    })?;
    if stop.is_set() {
        return Err(Failure::interrupted());
    }
    if deployment.leaves_partial_checksums() {
        info!(
            "drivers forward frames unchanged, and those from a veth lack checksums: run `ethtool -K OTHER_END tx off` there"
        );
    }
    metrics.start()?;
    let metrics_section = metrics.part();
    let daemon =
        FabricDaemon { user: login_name(), deployment, metrics_section, socket, scenario: file.display().to_string() };
    let line = serde_json::to_string(&daemon.status()).map_err(Failure::failed)?;
    writeln!(stdout(), "{line}").and_then(|()| close_streams()).map_err(Failure::failed)?;
    daemon.serve(&listener, &stop)
}

/// With given interfaces the rate is not checked: drivers may carry more than a process.
fn report_differences(scenario: &Scenario, is_given: bool) {
    if !scenario.link_events.is_empty() || scenario.failures.is_some() {
        info!("link events of the scenario are ignored here; use `spray link` to fail links");
    }
    let fastest_bps = scenario.network.links.iter().map(|link| link.rate_bps).max().unwrap_or(0);
    if fastest_bps > MAX_BPS && !is_given {
        let gbps = fastest_bps as f64 / 1e9;
        info!(
            "the fabric runs in real time, and no machine carries {gbps} Gb/s here: its links never fill; docs/deployment.md"
        );
    }
}

/// Sets queues to what TCP in the kernel needs to fill links. Returns the number of packets.
fn enlarge_queues(scenario: &mut Scenario) -> u32 {
    let (paths, packet) = (scenario.paths(), scenario.packet_bytes());
    let limits = scenario.network.links.iter().map(|link| scenario.thresholds(&paths, link.rate_bps).limit_bytes);
    let packets = limits.max().unwrap_or(0).div_ceil(packet).max(MIN_QUEUE_PACKETS);
    scenario.queue.limit = QueueLength::Packets(packets.into());
    packets
}

/// Measured: one TCP connection reached 83 to 95 % of 1 Gb/s with 100 packets, 96 % with 200.
const MIN_QUEUE_PACKETS: u32 = 200;

/// Approximate maximum on a machine a few years old.
const MAX_BPS: u64 = 2_000_000_000;

fn listen(name: &str) -> Outcome<UnixListener> {
    spray_experiments::switch::bind_control_socket(name).map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => Failure::refused(format!(
            "a fabric `{name}` is already running; `spray down {name}` removes it, or give this one another --name"
        )),
        _ => Failure::refused(format!("cannot create the socket of the fabric `{name}`: {error}")),
    })
}

/// Closes the standard streams: a reader of the command's output would wait for this process.
fn close_streams() -> std::io::Result<()> {
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    nix::unistd::dup2_stdin(&nothing)?;
    nix::unistd::dup2_stdout(&nothing)?;
    nix::unistd::dup2_stderr(&nothing)?;
    std::env::set_current_dir("/")
}

struct Socket(String);

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(spray_experiments::switch::control_socket(&self.0));
    }
}

struct FabricDaemon {
    user: String,
    deployment: Deployment,
    metrics_section: Option<Section>,
    socket: Socket,
    scenario: String,
}

impl FabricDaemon {
    fn serve(mut self, listener: &UnixListener, stop: &Stop) -> Outcome {
        listener.set_nonblocking(true).map_err(Failure::failed)?;
        while !stop.is_set() {
            // A signal ends the wait.
            let _ = poll(&mut [PollFd::new(listener.as_fd(), PollFlags::POLLIN)], PollTimeout::from(POLL_MS));
            self.deployment.refresh().map_err(Failure::failed)?;
            if let Some(metrics_section) = &self.metrics_section {
                let links = self.deployment.links(None).map_err(Failure::failed)?.unwrap_or_default();
                metrics_section.put(published(&links, self.deployment.overload_drops().map_err(Failure::failed)?));
            }
            if self.deployment.nears_clock_limit() {
                return Err(Failure::failed(
                    "the fabric has been up for 105 days, the maximum of its switches' clock: set it up again",
                ));
            }
            if self.deployment.has_stopped() {
                return Err(Failure::failed("the thread that forwards frames has ended"));
            }
            let Ok((mut stream, _)) = listener.accept() else { continue };
            let Some(request) = read(&stream) else { continue };
            if matches!(request, Request::Down) {
                let (namespaces, programs) = (self.deployment.namespaces(), programs(&self.status().hosts));
                let report = self.report();
                let Self { deployment, socket, .. } = self;
                drop(deployment);
                drop(socket);
                write(&mut stream, &Response::Removed { namespaces, programs, report });
                return Ok(());
            }
            let answer = self.answer(request);
            write(&mut stream, &answer);
        }
        Ok(())
    }

    fn answer(&mut self, request: Request) -> Response {
        let outcome = match request {
            Request::Status | Request::Down => Ok(Response::Status(self.status())),
            Request::Links(name) => self.links(name.as_deref()),
            Request::Change(name, changes) => self.change(&name, &changes),
        };
        outcome.unwrap_or_else(|error| match error.is_usage() {
            true => Response::Refused(error.to_string()),
            false => Response::Failed(error.to_string()),
        })
    }

    fn status(&self) -> FabricStatus {
        let hosts = self.deployment.hosts().into_iter().map(host);
        FabricStatus {
            name: self.socket.0.clone(),
            scenario: self.scenario.clone(),
            pid: std::process::id(),
            user: self.user.clone(),
            hosts: hosts.collect(),
            lost_frames: self.deployment.overload_drops().unwrap_or(0),
            undelayed: self.deployment.is_undelayed(),
            node: self.deployment.node().unwrap_or_default().into(),
            cables: self.deployment.cables().into_iter().map(cable).collect(),
        }
    }

    fn report(&self) -> FabricReport {
        // Omits what cannot be read any more.
        let links = self.deployment.links(None).ok().flatten().unwrap_or_default();
        FabricReport {
            seconds: seconds(self.deployment.up_ps()),
            links: links.iter().map(row).collect(),
            events: self.deployment.link_log().iter().map(event).collect(),
            lost_frames: self.deployment.overload_drops().unwrap_or(0),
        }
    }

    fn links(&self, name: Option<&str>) -> Result<Response, RunError> {
        let links = self.deployment.links(name)?;
        Ok(links.map_or_else(|| unknown(name), |links| Response::Links(links.iter().map(row).collect())))
    }

    fn change(&mut self, name: &str, changes: &[String]) -> Result<Response, RunError> {
        let settings: Result<Vec<_>, _> =
            changes.iter().map(|change| change.parse::<Change>().map(|Change(order)| order)).collect();
        match settings {
            Err(why) => Ok(Response::Refused(why)),
            Ok(settings) if self.deployment.set_links(name, &settings)? => self.links(Some(name)),
            Ok(_) => Ok(unknown(Some(name))),
        }
    }
}

fn unknown(name: Option<&str>) -> Response {
    let name = name.unwrap_or("*");
    Response::Refused(format!(
        "no link `{name}`; `spray link` lists all; names are as in `leaf0-spine1`, `leaf0->spine*` and `spine1`"
    ))
}

fn read(stream: &UnixStream) -> Option<Request> {
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(READ_TIMEOUT)).ok()?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

fn write(stream: &mut UnixStream, answer: &Response) {
    // The client may have gone.
    if let Ok(text) = serde_json::to_string(answer) {
        let _ = writeln!(stream, "{text}");
    }
}

fn published(links: &[DeployedLink], lost: u64) -> Vec<Metric> {
    let mut frames = Metric::counter("link_frames", "Frames that a link has carried");
    let mut bytes = Metric::counter("link_bytes", "Bytes that a link has carried");
    let mut marks = Metric::counter("link_marks", "Frames that a link's port has marked");
    let mut trims = Metric::counter("link_trims", "Frames that a link's port has trimmed");
    let mut drops = Metric::counter("link_drops", "Frames that a link has lost, by cause");
    let mut longest = Metric::gauge("link_queue_max_bytes", "Maximum queue length of a link");
    for row in links.iter().map(row) {
        let link = || vec![("link", row.link.clone())];
        frames = frames.with(link(), row.frames as f64);
        bytes = bytes.with(link(), row.bytes as f64);
        marks = marks.with(link(), row.marks as f64);
        trims = trims.with(link(), row.trims as f64);
        longest = longest.with(link(), row.queue_max_bytes as f64);
        for (cause, count) in row.drops() {
            drops = drops.with([link(), vec![("cause", cause.into())]].concat(), count as f64);
        }
    }
    let late = Metric::counter("lost_frames", "Frames for which this machine was too slow").with(vec![], lost as f64);
    vec![frames, bytes, marks, trims, drops, longest, late]
}

fn host(host: DeployedHost) -> HostRow {
    let first = |wanted: fn(&IpAddr) -> bool| {
        host.addresses.iter().find(|address| wanted(address)).map(ToString::to_string).unwrap_or_default()
    };
    let (namespace, interface) = match &host.place {
        HostLocation::Namespace(name) => (name.clone(), String::new()),
        HostLocation::External(port) => (String::new(), port.to_string()),
    };
    HostRow {
        ipv4: first(IpAddr::is_ipv4),
        ipv6: first(IpAddr::is_ipv6),
        addresses: host.addresses.iter().map(ToString::to_string).collect(),
        namespace,
        interface,
        host: host.name,
    }
}

fn seconds(ps: u64) -> f64 {
    (ps as f64 / 1e9).round() / 1e3
}

fn event(LinkLogEntry { at_ps, links, event }: &LinkLogEntry) -> EventRow {
    let change = match event {
        LinkLogEvent::Set(settings) => settings.iter().map(|order| Change(*order).text()).collect::<Vec<_>>().join(","),
        LinkLogEvent::Down => "disconnected".into(),
        LinkLogEvent::Up => "connected".into(),
        LinkLogEvent::AddressMoved(address, from) => format!("took {address}, which {from} no longer answers for"),
        LinkLogEvent::AddressConflict(address, of) => format!("claims {address}, which remains assigned to {of}"),
    };
    EventRow { at_s: seconds(*at_ps), links: links.clone(), change }
}

fn cable(RemoteCable { link, port, state }: RemoteCable) -> CableRow {
    let state = match state {
        CableState::Connected => "connected".into(),
        CableState::NoPeer => "no messages: the link is down".into(),
        CableState::Miscabled(other) => format!("connected to `{other}`: the link is down"),
        CableState::OtherFabric => "another scenario or other settings: the link is down".into(),
    };
    CableRow { link, interface: port.to_string(), state }
}

fn row(link: &DeployedLink) -> LinkRow {
    let counters = &link.counters;
    LinkRow {
        link: link.name.clone(),
        mbps: link.rate_bps as f64 / 1e6,
        state: state(&link.state, &link.impairment),
        frames: counters.frames,
        bytes: counters.bytes,
        queue_max_bytes: counters.queue_max,
        marks: counters.marks,
        trims: counters.trims,
        drops_queue: counters.drops_queue,
        drops_down: counters.drops_down,
        drops_silent: counters.drops_silent,
        drops_random: counters.drops_random,
        drops_ttl: counters.drops_ttl,
    }
}
