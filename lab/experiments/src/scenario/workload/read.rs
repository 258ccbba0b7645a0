//! Converts workload settings: finds hosts, reads files, checks consistency.

use std::collections::HashSet;

use spray_core::units::{ByteSize, Micros};
use spray_settings::{Document, Error};

use super::super::mistake::{allow, list, read_file};
use super::{
    ClosedLoopSettings, CollectiveSettings, Connections, FlowSettings, FlowTemplateSettings, PartSettings,
    PatternSettings, PoissonSettings, SizesSettings, WorkloadSettings,
};
use crate::workload::{
    Algorithm, Collective, Distribution, Flow, FlowTemplate, Matrix, Model, Operation, Partners, Pattern, Payload,
    Poisson, Sizes, Workload, WorkloadPart, leaves, members, parse_matrix, pods,
};
use spray_fabric::limits::{MAX_FLOWS, MAX_MESSAGE_BYTES, MAX_WORKLOADS};
use spray_fabric::{Network, Node};

pub(in crate::scenario) fn workloads(
    document: &Document,
    settings: &[WorkloadSettings],
    network: &Network,
) -> Result<Vec<Workload>, Error> {
    let count = settings.len() + settings.iter().map(|workload| workload.part.len()).sum::<usize>();
    allow(document, count <= MAX_WORKLOADS, "workload", || {
        format!("{count} workloads and parts; allowed: at most {MAX_WORKLOADS}")
    })?;
    let read = |(index, settings)| {
        let workload = Workload::new(Pattern::Flows(Vec::new()));
        Reader { document, network, index, settings, workload, members: 0 }.read()
    };
    let workloads: Vec<Workload> = settings.iter().enumerate().map(read).collect::<Result<_, _>>()?;
    check_names(document, &workloads)?;
    check_draws(document, &workloads, network.hosts.len())?;
    Ok(workloads)
}

fn check_names(document: &Document, workloads: &[Workload]) -> Result<(), Error> {
    let mut known: Vec<&str> = Vec::new();
    for (index, workload) in workloads.iter().enumerate() {
        let parts = workload.parts.iter().enumerate();
        let parts = parts.map(|(part, given)| (format!("workload.{index}.part.{part}.name"), &given.name));
        for (path, name) in std::iter::once((format!("workload.{index}.name"), &workload.name)).chain(parts) {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            allow(document, name.chars().all(plain), &path, || {
                format!("`name` is `{name}`; allowed: letters, digits, `-`, `_` and `.`")
            })?;
            allow(document, !known.contains(&name.as_str()), &path, || {
                format!("two workloads are called `{name}`; allowed: another `name` for one of them")
            })?;
            known.push(name);
        }
    }
    Ok(())
}

fn check_draws(document: &Document, workloads: &[Workload], hosts: usize) -> Result<(), Error> {
    for (index, (workload, members)) in workloads.iter().zip(members(workloads, hosts, 0)).enumerate() {
        let is_enough = workload.drawn.is_none_or(|drawn| members.len() >= drawn);
        allow(document, is_enough, &format!("workload.{index}.draw_hosts"), || {
            format!("only {} hosts are left to draw; allowed: fewer, here or in the workloads before", members.len())
        })?;
    }
    Ok(())
}

struct Reader<'a> {
    document: &'a Document,
    network: &'a Network,
    /// Index in the scenario.
    index: usize,
    settings: &'a WorkloadSettings,
    /// The workload as read so far.
    workload: Workload,
    members: usize,
}

impl Reader<'_> {
    fn read(mut self) -> Result<Workload, Error> {
        let WorkloadSettings { name, pattern, draw_hosts, own, payload, part, .. } = self.settings;
        self.workload.name = name.clone().unwrap_or_else(|| pattern.kind());
        self.workload.hosts = self.hosts()?;
        self.workload.drawn = *draw_hosts;
        self.workload.own = *own;
        self.workload.parts = self.parts(part)?;
        if let Some(name) = payload {
            let path = self.document.folder(&self.path("payload")).join(name);
            self.workload.set_payload_file(path.clone()).map_err(|error| {
                self.mistake("payload", format!("`{}`: {error}; allowed: a file that is not empty", path.display()))
            })?;
        }
        let all = self.workload.hosts.as_ref().map_or(self.network.hosts.len(), Vec::len);
        self.members = draw_hosts.unwrap_or(all);
        self.workload.pattern = self.pattern(pattern)?;
        Ok(self.workload)
    }

    fn path(&self, field: &str) -> String {
        format!("workload.{}.{field}", self.index)
    }

    fn mistake(&self, field: &str, message: impl Into<String>) -> Error {
        self.document.error(&self.path(field), message)
    }

    fn allow(&self, is_allowed: bool, field: &str, message: impl FnOnce() -> String) -> Result<(), Error> {
        allow(self.document, is_allowed, &self.path(field), message)
    }

    //= docs/specs/workloads.md#WL-2 hosts that are named
    fn hosts(&self) -> Result<Option<Vec<usize>>, Error> {
        let Some(names) = &self.settings.hosts else { return Ok(None) };
        let network = self.network;
        let (mut hosts, mut named) = (Vec::new(), HashSet::new());
        for (entry, name) in names.iter().enumerate() {
            let fits = |host: &usize| {
                let leaf = &network.switches[network.leaf_of(*host)].name;
                spray_fabric::globs(name, &network.hosts[*host]) || spray_fabric::globs(name, leaf)
            };
            let own: Vec<usize> = (0..network.hosts.len()).filter(fits).filter(|host| !named.contains(host)).collect();
            self.allow(!own.is_empty(), &format!("hosts.{entry}"), || {
                let names = list(&network.hosts);
                format!("`{name}` names no host that is not named before; allowed: {names}, or a switch with hosts")
            })?;
            named.extend(own.iter().copied());
            hosts.extend(own);
        }
        self.allow(hosts.len() > 1, "hosts", || "one host takes part; allowed: at least two".into())?;
        Ok(Some(hosts))
    }

    fn parts(&self, settings: &[PartSettings]) -> Result<Vec<WorkloadPart>, Error> {
        let part = |of: &PartSettings| WorkloadPart { name: of.name.clone(), ppm: of.share.ppm() as u32, own: of.own };
        let parts: Vec<WorkloadPart> = settings.iter().map(part).collect();
        let ppm: u64 = parts.iter().map(|part| u64::from(part.ppm)).sum();
        if ppm > 1_000_000 {
            let message = format!("the shares of all parts come to {}; allowed: at most 1", ppm as f64 / 1e6);
            return Err(self.mistake(&format!("part.{}.share", parts.len() - 1), message));
        }
        Ok(parts)
    }

    fn pattern(&self, settings: &PatternSettings) -> Result<Pattern, Error> {
        let network = self.network;
        Ok(match settings {
            PatternSettings::CrossLeafPermutation(each) => {
                self.check_halves("leaf", &leaves(network))?;
                Pattern::CrossLeafPermutation(self.each(each)?)
            }
            PatternSettings::CrossPodPermutation(each) => {
                self.check_halves("pod", &pods(network))?;
                Pattern::CrossPodPermutation(self.each(each)?)
            }
            PatternSettings::Permutation(each) => Pattern::Permutation(self.each(each)?),
            PatternSettings::AllToAll { concurrent_messages: open, rounds, compute_us, connections, each } => {
                let hosts = self.members;
                self.allow(hosts * (hosts - 1) <= MAX_FLOWS, "kind", || {
                    format!("all to all of {hosts} hosts; allowed: at most {MAX_FLOWS} flows, which 548 hosts have")
                })?;
                let (start_us, each) = (each.start_us, self.each(each)?);
                let FlowTemplate { bytes, .. } = each;
                match (open, rounds) {
                    (_, 1) => Pattern::AllToAll { each, open: *open },
                    (Some(_), _) => {
                        let message = "`concurrent_messages` holds messages of a round back, `rounds` repeats it; allowed: one of the two";
                        return Err(self.mistake("concurrent_messages", message));
                    }
                    (None, _) => {
                        let (algorithm, bytes, groups) = (Algorithm::Ring, ByteSize::new(bytes), 1);
                        let (rounds, compute_us, connections) = (*rounds, *compute_us, *connections);
                        let settings =
                            CollectiveSettings { algorithm, bytes, groups, rounds, compute_us, connections, start_us };
                        self.collective(Operation::AllToAll, &settings)?
                    }
                }
            }
            PatternSettings::Tornado(each) => Pattern::Tornado(self.each(each)?),
            PatternSettings::Incast { senders, receiver, each } => {
                let receiver = receiver.as_ref().map(|name| self.host("receiver", name)).transpose()?;
                Pattern::Incast { senders: self.senders(*senders, receiver)?, receiver, each: self.each(each)? }
            }
            PatternSettings::ClosedLoop(partners) => Pattern::ClosedLoop(self.partners(partners)?),
            PatternSettings::Poisson(poisson) => Pattern::Poisson(self.poisson(poisson)?),
            PatternSettings::AllReduce(settings) => self.collective(Operation::AllReduce, settings)?,
            PatternSettings::AllGather(settings) => self.collective(Operation::AllGather, settings)?,
            PatternSettings::ReduceScatter(settings) => self.collective(Operation::ReduceScatter, settings)?,
            PatternSettings::Fsdp { model, layers, compute_us, connections, start_us } => {
                let (algorithm, bytes, groups) = (Algorithm::Ring, ByteSize::new(model.bytes()), Model::RINGS as usize);
                let (rounds, compute_us, connections, start_us) = (*layers, *compute_us, *connections, *start_us);
                let settings =
                    CollectiveSettings { algorithm, bytes, groups, rounds, compute_us, connections, start_us };
                self.collective(Operation::Layer, &settings)?
            }
            PatternSettings::Flows { flow } => {
                self.check_all_take_part()?;
                self.allow(flow.len() <= MAX_FLOWS, "flow", || {
                    format!("{} flows; allowed: at most {MAX_FLOWS}", flow.len())
                })?;
                let flows = flow.iter().enumerate().map(|(index, flow)| self.flow(index, flow));
                Pattern::Flows(flows.collect::<Result<_, _>>()?)
            }
            PatternSettings::Matrix { file } => {
                self.check_all_take_part()?;
                Pattern::Matrix(self.matrix(file)?)
            }
        })
    }

    /// Rejects `hosts` and `draw_hosts` where the flows name their hosts.
    fn check_all_take_part(&self) -> Result<(), Error> {
        let WorkloadSettings { hosts, draw_hosts, pattern, .. } = self.settings;
        let field = if hosts.is_some() { "hosts" } else { "draw_hosts" };
        self.allow(hosts.is_none() && draw_hosts.is_none(), field, || {
            let kind = pattern.kind();
            format!("`{field}` does not go with kind `{kind}`, which names its hosts; allowed: another kind")
        })
    }

    fn collective(&self, operation: Operation, settings: &CollectiveSettings) -> Result<Pattern, Error> {
        let CollectiveSettings { algorithm, groups, rounds, .. } = *settings;
        let (bytes, own) = (settings.bytes.bytes(), self.members / groups);
        let field = if operation == Operation::Layer { "hosts" } else { "groups" };
        self.allow(self.members.is_multiple_of(groups) && own > 1, field, || {
            let hosts = self.members;
            format!("{hosts} hosts are in {groups} groups; allowed: groups of one size, of at least two hosts")
        })?;
        self.allow(operation == Operation::AllToAll || bytes >= own as u64, "bytes", || {
            format!("`bytes` is {bytes} for {own} hosts; allowed: at least a byte of each")
        })?;
        self.allow(algorithm != Algorithm::HalvingDoubling || own.is_power_of_two(), "algorithm", || {
            format!("`halving-doubling` of {own} hosts; allowed: a power of two, or another algorithm")
        })?;
        self.allow(algorithm != Algorithm::Tree || operation == Operation::AllReduce, "algorithm", || {
            "`tree` sums up; allowed: kind `all-reduce`, or another algorithm".into()
        })?;
        let collective = Collective {
            operation,
            algorithm,
            bytes,
            groups,
            rounds,
            compute_ps: settings.compute_us.ps(),
            start_ps: settings.start_us.ps(),
            persistent: settings.connections == Connections::Persistent,
        };
        let messages = collective.messages(self.members);
        self.allow(messages <= MAX_FLOWS as u64, "kind", || {
            let each = messages / u64::from(rounds);
            format!("{messages} messages; allowed: at most {MAX_FLOWS} messages; a round has {each}")
        })?;
        Ok(Pattern::Collective(collective))
    }

    fn partners(&self, settings: &ClosedLoopSettings) -> Result<Partners, Error> {
        let ClosedLoopSettings { sizes, messages, cross_leaf, start_us, until_us } = settings;
        self.allow(*messages as usize * self.members <= MAX_FLOWS, "messages", || {
            let (hosts, most) = (self.members, MAX_FLOWS / self.members);
            format!("`messages` is {messages} for each of {hosts} hosts; allowed: at most {most}")
        })?;
        let sizes = self.sizes(sizes)?;
        self.check_until(*start_us, *until_us)?;
        self.check_cross_leaf(*cross_leaf)?;
        let (start_ps, until_ps) = (start_us.ps(), until_us.map(Micros::ps));
        Ok(Partners { messages: *messages, sizes, cross_leaf: *cross_leaf, start_ps, until_ps })
    }

    fn poisson(&self, settings: &PoissonSettings) -> Result<Poisson, Error> {
        let PoissonSettings { load, sizes, cross_leaf, start_us, until_us } = settings;
        let sizes = self.sizes(sizes)?;
        self.check_until(*start_us, Some(*until_us))?;
        self.check_cross_leaf(*cross_leaf)?;
        let (start_ps, until_ps) = (start_us.ps(), until_us.ps());
        let poisson = Poisson { load: *load, sizes, cross_leaf: *cross_leaf, start_ps, until_ps };
        let all: Vec<usize> = (0..self.network.hosts.len()).collect();
        let expected = poisson.expected(self.network, &all) * self.members as f64 / all.len() as f64;
        self.allow(expected <= MAX_FLOWS as f64 * 0.98, "until_us", || {
            format!(
                "about {expected:.0} messages arrive; allowed: at most {MAX_FLOWS}: a shorter time, or larger messages"
            )
        })?;
        self.allow(expected >= 1.0, "until_us", || {
            format!("about {expected:.3} messages arrive; allowed: at least one: a longer time, or a higher `load`")
        })?;
        Ok(poisson)
    }

    fn sizes(&self, settings: &SizesSettings) -> Result<Distribution, Error> {
        let SizesSettings { sizes, sizes_file, max_bytes } = settings;
        let most = max_bytes.map_or(MAX_MESSAGE_BYTES, ByteSize::bytes);
        match (sizes, sizes_file) {
            (Some(Sizes::Uniform), None) if max_bytes.is_none() => {
                Err(self.mistake("sizes", "`uniform` needs `max_bytes`; allowed: a size such as \"1 MiB\""))
            }
            (Some(sizes), None) => Ok(Distribution::published(*sizes, most)),
            (None, Some(name)) => {
                let parse = |text: &str| Distribution::parse(text, most);
                read_file(self.document, &self.path("sizes_file"), name, "a file of sizes and shares", parse)
                    .map(|(sizes, _)| sizes)
            }
            (Some(_), Some(_)) => Err(self.mistake("sizes_file", "`sizes` and `sizes_file`; allowed: one of the two")),
            (None, None) => {
                let names = Sizes::ALL.map(|sizes| sizes.to_string()).join(", ");
                let message = format!("[workload] needs `sizes`; allowed: {names}, or a file as `sizes_file`");
                Err(self.mistake("sizes", message))
            }
        }
    }

    fn check_until(&self, start_us: Micros, until_us: Option<Micros>) -> Result<(), Error> {
        self.allow(until_us.is_none_or(|until| until > start_us), "until_us", || {
            "`until_us` is not after `start_us`; allowed: later".into()
        })
    }

    /// Checks that hosts are under several leaves, regardless of the draw.
    fn check_cross_leaf(&self, cross_leaf: bool) -> Result<(), Error> {
        let crosses = || self.largest_group(&leaves(self.network)) < self.members;
        self.allow(!cross_leaf || crosses(), "cross_leaf", || {
            "all hosts are under one leaf; allowed: false, or another topology".into()
        })
    }

    /// Returns the maximum number of participating hosts in one group.
    fn largest_group(&self, group: &[usize]) -> usize {
        let mut own: Vec<usize> = match &self.workload.hosts {
            Some(hosts) => hosts.iter().map(|host| group[*host]).collect(),
            None => group.to_vec(),
        };
        own.sort_unstable();
        own.chunk_by(|a, b| a == b).map(<[usize]>::len).max().unwrap_or(0)
    }

    /// Checks that no group has more than half of the hosts.
    fn check_halves(&self, what: &str, group: &[usize]) -> Result<(), Error> {
        self.allow(2 * self.largest_group(group) <= self.members, "kind", || {
            format!("one {what} has more than half of the hosts; allowed: `permutation`, or another topology")
        })
    }

    fn each(&self, each: &FlowTemplateSettings) -> Result<FlowTemplate, Error> {
        let bytes = self.bytes(each.bytes, "bytes", "[workload]")?;
        Ok(FlowTemplate { bytes, start_ps: each.start_us.ps() })
    }

    fn bytes(&self, bytes: Option<ByteSize>, path: &str, table: &str) -> Result<u64, Error> {
        match (bytes, &self.workload.payload) {
            (Some(bytes), _) => Ok(bytes.bytes()),
            (None, Payload::File { bytes, .. }) => Ok(bytes.len() as u64),
            (None, Payload::Generated) => {
                let allowed = "a size such as \"4 MiB\", or a file as `payload`, which has one";
                Err(self.mistake(path, format!("{table} needs `bytes`; allowed: {allowed}")))
            }
        }
    }

    fn senders(&self, senders: Option<usize>, receiver: Option<usize>) -> Result<usize, Error> {
        let hosts = self.workload.hosts.as_ref();
        // The receiver may be among the drawn hosts.
        let is_member = receiver.is_none_or(|receiver| hosts.is_none_or(|hosts| hosts.contains(&receiver)));
        let others = self.members - usize::from(is_member);
        let senders = senders.unwrap_or(others);
        self.allow(senders <= others, "senders", || {
            format!("`senders` is {senders}; allowed: at most the {others} other hosts")
        })?;
        Ok(senders)
    }

    fn host(&self, field: &str, name: &str) -> Result<usize, Error> {
        let network = self.network;
        match network.node(name) {
            Some(Node::Host(host)) => Ok(host),
            _ => Err(self.mistake(field, format!("there is no host `{name}`; allowed: {}", list(&network.hosts)))),
        }
    }

    fn flow(&self, index: usize, flow: &FlowSettings) -> Result<Flow, Error> {
        let path = |field: &str| format!("flow.{index}.{field}");
        let (src, dst) = (self.host(&path("src"), &flow.src)?, self.host(&path("dst"), &flow.dst)?);
        self.allow(src != dst, &path("dst"), || "a host sends to itself; allowed: another host".into())?;
        let bytes = self.bytes(flow.bytes, &format!("flow.{index}"), "[[workload.flow]]")?;
        Ok(Flow { flow: index as u32, src, dst, bytes, start_ps: flow.start_us.ps(), ..Flow::default() })
    }

    fn matrix(&self, name: &str) -> Result<Matrix, Error> {
        let parse = |text: &str| parse_matrix(text, self.network.hosts.len());
        let (mut matrix, file) = read_file(self.document, &self.path("file"), name, "a .cm file", parse)?;
        matrix.warnings.iter_mut().for_each(|warning| *warning = format!("{}: {warning}", file.display()));
        Ok(matrix)
    }
}

#[cfg(test)]
mod tests;
