//! Converts settings to scenarios: builds the network, reads files, checks consistency.

use std::path::Path;

use spray_settings::{Document, Error};

use spray_core::path::BalancerKind;
use spray_core::units::{ByteSize, Micros};

use super::failure::{FailureSettings, words};
use super::limits::{check_rtt, check_run};
use super::mistake::{allow, read_file};
use super::settings::{ConWeave, Reunion, Settings, Switch};
use super::workload::workloads;
use super::{
    CustomAlgorithms, EffectiveSettings, Failures, MAX_RUNS, MAX_SEEDS, Paths, QueueLength, Scenario, Seeds,
    SimulationSettings,
};
use spray_fabric::limits::MAX_WORKLOADS;
use spray_fabric::{
    CompileError, DrawError, FailureContext, FailureFile, FlowHash, HashFields, Link, LinkAction, LinkChange,
    LinkPattern, Network, RandomFailure, Switching, Thresholds, changes, conweave, preload, reunion,
};

/// Renames settings of the previous release; returns a warning for each.
pub fn rename_settings(document: &mut Document) -> Vec<String> {
    let renamed = [("", "open", "concurrent_messages"), (".kind", "partner-after-partner", "closed-loop")];
    let numbers = (0..MAX_WORKLOADS).map(|number| format!(".{number}")).chain([String::new()]);
    let names = numbers.flat_map(|at| renamed.map(|(field, old, new)| (format!("workload{at}{field}"), old, new)));
    let all = names.chain([("switch.conweave".into(), "held", "reorder_buffer")]);
    all.filter(|(path, old, new)| document.rename(path, old, new))
        .map(|(path, old, new)| format!("`{old}` of `{path}` is now `{new}`; the next release refuses `{old}`"))
        .collect()
}

impl Scenario {
    /// Reads the scenario in `file`, and the files it names.
    ///
    /// # Errors
    /// Returns the first mistake, with its place and what is allowed there.
    pub fn load(file: &Path) -> Result<Self, Error> {
        Self::read(&Document::load(file)?)
    }

    /// Reads `text` of `file`; relative paths start at its folder.
    ///
    /// # Errors
    /// The same as [`Scenario::load`].
    pub fn parse(file: &Path, text: &str) -> Result<Self, Error> {
        Self::read(&Document::parse(file, text)?)
    }

    /// Reads a document with lists of values: a scenario for each combination.
    ///
    /// # Errors
    /// The same as [`Scenario::load`], and more than [`MAX_RUNS`] combinations.
    pub fn read_all(document: &Document) -> Result<Vec<Self>, Error> {
        document.variants::<Settings>(MAX_RUNS)?.iter().map(Self::read).collect()
    }

    /// Reads a document with overriding assignments.
    ///
    /// # Errors
    /// The same as [`Scenario::load`].
    pub fn read(document: &Document) -> Result<Self, Error> {
        let settings: Settings = document.read()?;
        let of_document = EffectiveSettings::of(document, &settings)?;
        check_name(document, &settings.name)?;
        let seeds = seeds(document, &settings)?;
        settings.transport.check(document)?;
        let network = settings.topology.network(document)?;
        let workloads = workloads(document, &settings.workload, &network)?;
        let convergence_ps = settings.routing.convergence_us.ps();
        let events = settings.link_event.iter().enumerate();
        let events = events.map(|(index, event)| event.event(document, index, &network, convergence_ps));
        let link_events = events.collect::<Result<Vec<_>, _>>()?;
        let failures = failures(document, &settings, seeds[0], &network)?;
        // The file's `condition` does not describe events that assignments changed.
        let written = settings.condition.filter(|_| {
            document.is_assigned("condition")
                || !["link_event", "failure", "routing", "simulation"].iter().any(|path| document.is_assigned(path))
        });
        let mut scenario = Self {
            name: settings.name,
            condition: written.unwrap_or_else(|| Self::describe(&link_events, failures.as_ref())),
            seed: seeds[0],
            seeds,
            time_limit_ps: settings.time_limit_us.map(|time| time.ps()),
            sample_ps: settings.sample_us.ps(),
            network,
            workloads,
            transport: settings.transport,
            own: CustomAlgorithms::default(),
            queue: settings.queue,
            link_events,
            convergence_ps,
            emulation: settings.emulation,
            simulation: settings.simulation,
            failures,
            workload_place: document.error("workload.0.bytes", "").location,
            settings: of_document,
        };
        scenario.settings.set_condition(&scenario.condition);
        let paths = scenario.paths();
        let gap_ps = scenario.base_rtt_ps(&paths) / 2;
        let conweave = settings.switch.conweave.over(&scenario);
        scenario.network.switching = settings.switch.switching(gap_ps, scenario.longest_ps(&paths), conweave);
        scenario.transport.check_bytes(document, scenario.packet_bytes())?;
        scenario.transport.check_parts(document, scenario.balancers())?;
        check_rtt(document, &scenario, &paths)?;
        check_switches(document, &scenario)?;
        check_queue(document, &scenario, &paths)?;
        check_events(document, &scenario)?;
        check_run(document, &scenario, &paths)?;
        Ok(scenario)
    }
}

impl Switch {
    /// Returns the switches' settings; `gap_ps` is the default flowlet gap.
    fn switching(&self, gap_ps: u64, longest_ps: u64, conweave: conweave::Settings) -> Switching {
        let schemes = [self.tor, self.agg, self.core].map(|tier| tier.unwrap_or(self.scheme)).to_vec();
        let hash = FlowHash { function: self.hash, fields: self.hash_fields };
        let flowlet_gap_ps = self.flowlet_gap_us.map_or(gap_ps, Micros::ps);
        let longest_ps = if schemes.iter().any(|scheme| scheme.drains()) { longest_ps } else { 0 };
        let (resume_packets, flowcut) = (self.flowcut.resume_packets, self.flowcut.config().thresholds());
        let Reunion { interval_us, tolerance, timeout_us } = self.reunion;
        let (interval_ps, timeout_ps) = (interval_us.ps(), timeout_us.ps());
        let reunion = reunion::Settings { interval_ps, tolerance, timeout_ps, piggyback: false };
        let hash_seed = self.hash_seed;
        Switching { schemes, flowlet_gap_ps, longest_ps, resume_packets, flowcut, hash, hash_seed, reunion, conweave }
    }
}

impl ConWeave {
    /// Returns the switches' settings; defaults depend on the network.
    //= docs/specs/conweave.md#CWV-18 settings
    fn over(&self, scenario: &Scenario) -> conweave::Settings {
        let many_tiers = scenario.network.tiers().tier.into_iter().any(|tier| tier > 1);
        let defaults = conweave::Settings::of(many_tiers, scenario.queue.pfc);
        conweave::Settings {
            reply_extra_ps: self.reply_extra_us.ps(),
            path_busy_ps: self.path_busy_us.ps(),
            inactive_ps: self.inactive_us.map_or(defaults.inactive_ps, Micros::ps),
            resume_extra_ps: self.resume_extra_us.map_or(defaults.resume_extra_ps, Micros::ps),
            resume_default_ps: self.resume_default_us.map_or(defaults.resume_default_ps, Micros::ps),
            queues: self.queues,
            held_bytes: self.reorder_buffer.bytes(),
        }
    }
}

/// Checks that frames have the hashed fields, detours have groups, and switches hash the entropy
/// values by which Host DR names paths.
fn check_switches(document: &Document, scenario: &Scenario) -> Result<(), Error> {
    let Network { switching, groups, .. } = &scenario.network;
    let Switching { schemes, hash, .. } = switching;
    switching.check(*groups).map_err(|error| document.error("switch.scheme", error.to_string()))?;
    let has_label = hash.fields != HashFields::FlowLabel || scenario.is_v6();
    allow(document, has_label, "switch.hash_fields", || {
        "IPv4 has no flow label; allowed: `ip = 6` in `[transport]`, or other `hash_fields`".into()
    })?;
    if !scenario.balancers().contains(&BalancerKind::HostDr) {
        return Ok(());
    }
    let rule = "but the balancer `host-dr` chooses paths by entropy value; allowed:";
    allow(document, hash.fields != HashFields::Addresses, "switch.hash_fields", || {
        format!("switches hash addresses alone, {rule} other `hash_fields`")
    })?;
    schemes.iter().try_for_each(|scheme| {
        allow(document, scheme.hashes(), "switch.scheme", || {
            format!("switches with `{scheme}`, {rule} switches with `ecmp`, `ecmp-resilient` or `wcmp`")
        })
    })
}

fn seeds(document: &Document, settings: &Settings) -> Result<Vec<u64>, Error> {
    let seeds = Seeds::all(&settings.seeds);
    allow(document, seeds.len() <= MAX_SEEDS, "seeds", || {
        format!("there are {} seeds; allowed: at most {MAX_SEEDS}", seeds.len())
    })?;
    // Assignments override the file.
    let [one, several] = ["seed", "seeds"].map(|path| (document.has(path), document.is_assigned(path)));
    match (one, several) {
        (_, (false, _)) | ((_, true), (_, false)) => Ok(vec![settings.seed]),
        ((false, _), _) | ((_, false), (_, true)) => Ok(seeds),
        _ => Err(document.error("seeds", "`seed` and `seeds`; allowed: one of the two")),
    }
}

fn check_name(document: &Document, name: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    allow(document, name.chars().all(plain) && !name.starts_with('.'), "name", || {
        let rule = "letters, digits, `-`, `_` and `.`, no `.` first, since a folder is named so";
        format!("`name` is `{name}`; allowed: {rule}")
    })
}

fn failures(document: &Document, settings: &Settings, seed: u64, network: &Network) -> Result<Option<Failures>, Error> {
    let path = "simulation.failures";
    let SimulationSettings { failures, dead_cables_percent, .. } = &settings.simulation;
    let (file, source, name) = match (failures, dead_cables_percent) {
        (None, None) => (FailureFile::default(), path.into(), None),
        (None, Some(percent)) => {
            (FailureFile::dead_cables(percent / 100.0), path.into(), Some(format!("{percent} % of cables dead")))
        }
        (Some(_), Some(_)) => {
            let message = "`failures` and `dead_cables_percent`; allowed: one of the two";
            return Err(document.error(path, message));
        }
        (Some(name), None) => {
            let (file, source) = read_file(document, path, name, "a failure file", FailureFile::parse)?;
            let name = source.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            (file, source, Some(name))
        }
    };
    let (random, places) = random_failures(document, settings, seed, network)?;
    if name.is_none() && random.is_empty() {
        return Ok(None);
    }
    let names: Vec<String> = name.into_iter().chain(random.iter().map(words)).collect();
    Ok(Some(Failures { file: file.and(random), source, places, name: names.join(", ") }))
}

fn random_failures(
    document: &Document,
    settings: &Settings,
    seed: u64,
    network: &Network,
) -> Result<(Vec<RandomFailure>, Vec<String>), Error> {
    let convergence_ps = settings.routing.convergence_us.ps();
    let read = |(index, failure): (usize, &FailureSettings)| failure.failure(document, index, network, convergence_ps);
    let random: Vec<_> = settings.failure.iter().enumerate().map(read).collect::<Result<_, _>>()?;
    let place = |(index, failure): (usize, &FailureSettings)| {
        document.error(&format!("failure.{index}.{}", failure.field()), "").location
    };
    let places: Vec<_> = settings.failure.iter().enumerate().map(place).collect();
    // Checks the draw with the scenario's seed; other seeds are checked when they run.
    let context = FailureContext { network, seed, until_ps: u64::MAX, packet_bytes: 0 };
    match FailureFile::default().and(random.clone()).events(&context) {
        Err(DrawError::Random { index, message }) => Err(Error { location: places[index].clone(), message }),
        _ => Ok((random, places)),
    }
}

/// Checks the thresholds in bytes at the rate of every link.
fn check_queue(document: &Document, scenario: &Scenario, paths: &Paths) -> Result<(), Error> {
    allow(document, !matches!(scenario.queue.limit, QueueLength::Percent(_)), "queue.limit", || {
        "`limit` is a percentage of itself; allowed: bytes, packets or bdp".into()
    })?;
    let packet = scenario.packet_bytes();
    let shared = scenario.queue.shared_buffer.map_or(u64::MAX, ByteSize::bytes);
    allow(document, shared >= packet.into(), "queue.shared_buffer", || {
        format!("`shared_buffer` is {shared}; allowed: from {packet}, which is a full packet")
    })?;
    let shares = shares_of_queues(scenario);
    for (number, link) in scenario.network.links.iter().enumerate() {
        let queue = scenario.thresholds(paths, link.rate_bps);
        check_lengths(document, scenario, link, &queue)?;
        let left =
            u64::from(queue.limit_bytes) * u64::from(shares.get(number).copied().unwrap_or(1_000_000)) / 1_000_000;
        allow(document, left >= packet.into(), "simulation.short_slow_queues", || {
            let rule = format!("allowed: from {packet}, which is a full packet");
            format!("{left} bytes are left of the queue of {}; {rule}", link.name)
        })?;
        // With priority flow control the limit is per ingress link, across all ports.
        let below_limit = scenario.queue.pfc || queue.mark_max_bytes <= queue.limit_bytes;
        let ascending = queue.mark_min_bytes <= queue.mark_max_bytes && below_limit;
        allow(document, !scenario.queue.marking || ascending, "queue.mark_max", || {
            let (min, max, limit) = (queue.mark_min_bytes, queue.mark_max_bytes, queue.limit_bytes);
            let lengths = format!("{min}, {max} and {limit} bytes at {}", link.name);
            format!("`mark_min`, `mark_max` and `limit` are {lengths}; allowed: ascending")
        })?;
    }
    Ok(())
}

/// Returns each link's share of its queue in ppm, if slow links have short queues.
fn shares_of_queues(scenario: &Scenario) -> Vec<u32> {
    if !scenario.simulation.short_slow_queues {
        return Vec::new();
    }
    let first = |changes: &Vec<LinkChange>| changes.first().filter(|first| first.at_ps == 0).copied();
    let all = changes(&scenario.link_events, scenario.network.links.len());
    all.iter().map(|changes| first(changes).map_or(1_000_000, |first| first.state.rate_ppm)).collect()
}

/// Checks that a port of `link` has room for a full packet, and all lengths for their type.
fn check_lengths(document: &Document, scenario: &Scenario, link: &Link, queue: &Thresholds) -> Result<(), Error> {
    let (packet, control) = (scenario.packet_bytes(), scenario.largest_control_bytes());
    let lengths = [
        ("limit", queue.limit_bytes, packet, "a full packet"),
        ("control_limit", queue.control_limit_bytes, control, "the largest control frame"),
        ("mark_min", if scenario.queue.marking { queue.mark_min_bytes } else { 0 }, 0, ""),
        ("mark_max", if scenario.queue.marking { queue.mark_max_bytes } else { 0 }, 0, ""),
    ];
    for (name, bytes, least, what) in lengths {
        let path = format!("queue.{name}");
        let shown = if document.has(&path) { format!("`{name}`") } else { format!("the default of `{path}`") };
        // Larger values are clamped to this one.
        allow(document, bytes < u32::MAX, &path, || {
            format!("{shown} is 4 GiB or more at {}; allowed: a `{path}` below 4 GiB", link.name)
        })?;
        allow(document, bytes >= least, &path, || {
            format!("{shown} is {bytes} bytes at {}; allowed: from {least}, which is {what}", link.name)
        })?;
    }
    Ok(())
}

fn check_events(document: &Document, scenario: &Scenario) -> Result<(), Error> {
    let Err(error) = preload(&scenario.network, &scenario.link_events) else { return Ok(()) };
    let about = match &error {
        CompileError::Periodic(link) | CompileError::Changes { link, .. } | CompileError::Rate { link, .. } => {
            scenario.network.links_named(link)
        }
        CompileError::Reroutes(_) => None,
    };
    // The last event on the link exceeds the limit.
    let culprit = scenario.link_events.iter().rposition(|event| match &about {
        Some(links) => links.iter().any(|link| event.links.contains(link)),
        None => matches!(event.action, LinkAction::Down { .. }),
    });
    let culprit = culprit.unwrap_or(0);
    let event = scenario.link_events.get(culprit);
    let is_node = event.is_some_and(|event| LinkPattern::new(&event.name).is_node());
    let field = if is_node { "node" } else { "link" };
    Err(document.error(&format!("link_event.{culprit}.{field}"), error.to_string()))
}
