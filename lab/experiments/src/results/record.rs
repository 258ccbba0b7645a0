//! How a run came about, `run.json`, and runs that are done.

use std::fs::{self, File};
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SizeClass, Summary, WorkloadSummary, size_classes};

/// The contents of `run.json`: how a run came about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// A hash of all that the results follow from: settings with their defaults, the content of the files that they name, balancer, seed,
    /// engine, version and commit.
    pub key: String,
    /// The same without the values of the axes, the switches' scheme, the balancer and the seed: what all runs of one table have in common.
    #[serde(default)]
    pub table_key: String,
    /// The engine: `xdp` or `sim`.
    pub engine: String,
    /// The run's balancer.
    pub balancer: String,
    /// Its random seed.
    pub seed: u64,
    /// When it ended, in UTC.
    pub date: String,
    /// The program that ran it.
    #[serde(flatten)]
    pub program: Program,
    /// The machine that ran it.
    #[serde(flatten)]
    pub machine: Machine,
}

/// The program, and how it was called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// The command line, a text per argument.
    pub command: Vec<String>,
    /// The version of spray.
    pub version: String,
    /// The commit that it was built from, with `-dirty` after it if files had changed; empty if it was not built from a repository.
    pub commit: String,
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Kernel and its release; empty where the system does not say, as all of these.
    pub kernel: String,
    /// Model of the processor.
    pub cpu: String,
    /// Cores that the program may use.
    pub cores: u64,
    /// The machine's memory.
    pub memory_bytes: u64,
}

impl Machine {
    /// This one.
    pub fn this() -> Self {
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let line = |file: &str, name: &str| {
            let text = read(file);
            let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.trim_start_matches(['\t', ' ', ':']).trim().to_string()
        };
        let kib = line("/proc/meminfo", "MemTotal:");
        let names = ["/proc/sys/kernel/ostype", "/proc/sys/kernel/osrelease"].map(|file| read(file).trim().to_string());
        Self {
            kernel: names.join(" ").trim().into(),
            cpu: line("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(0, |cores| cores.get() as u64),
            memory_bytes: kib.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024,
        }
    }
}

/// A run that is done, as far as tables and reports over several runs need it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finished {
    /// The name of its folder.
    pub folder: String,
    /// It has its own `report.html`.
    pub has_report: bool,
    /// Its figures.
    pub summary: Summary,
    /// Completion times in us, ascending: of the fastest flow, then of those at every hundredth of all flows. Fewer than 101 where flows
    /// did not complete.
    pub fct_us: Vec<f64>,
    /// (Time in us, payload delivered so far in bytes), ascending; a few hundred at most.
    pub delivered: Vec<(f64, f64)>,
    /// The slowdown of its flows by size of message.
    pub sizes: Vec<SizeClass>,
    /// The same two of each workload, in the order of the summary's; empty where there is one.
    pub workloads: Vec<Completion>,
    /// What the ports of each layer dropped and trimmed; without the layers that did neither.
    pub drops: Vec<Drops>,
}

/// Completion times of flows, and their slowdown by size of message, as in [`Finished`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completion {
    /// Completion times in us.
    pub fct_us: Vec<f64>,
    /// The slowdown by size of message.
    pub sizes: Vec<SizeClass>,
}

impl Completion {
    const COLUMNS: [&str; 4] = ["fct_us", "bytes", "had_us", "alone_us"];

    /// Of `total` flows, given by their columns [`Completion::COLUMNS`].
    fn of<'a>(flows: impl Iterator<Item = &'a [Option<f64>]> + Clone, total: usize) -> Self {
        let mut fcts: Vec<f64> = flows.clone().filter_map(|row| row[0]).collect();
        fcts.sort_by(f64::total_cmp);
        // A flow that did not complete counts with the time that it had.
        let slowdown =
            |row: &[Option<f64>]| Some((row[1]? as u64, row[0].or(row[2])? / row[3].filter(|us| *us > 0.0)?));
        let sizes = size_classes(flows.filter_map(slowdown));
        Self { fct_us: quantiles(&fcts, total), sizes }
    }
}

/// What a port or the ports of a layer dropped, by cause, and trimmed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// The port or the layer, such as `leaf->spine`.
    pub name: String,
    /// As in the columns `drops_queue`, `drops_link`, `drops_random`, `drops_ttl` and `trims` of `ports`.
    pub counts: [u64; 5],
}

impl Drops {
    /// The causes, as the columns of `ports` call them.
    pub const CAUSES: [&str; 5] = ["drops_queue", "drops_link", "drops_random", "drops_ttl", "trims"];

    /// Packets of all causes.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sums over `parts` of one name, without those of nothing.
    pub fn sums(parts: impl Iterator<Item = Self>) -> Vec<Self> {
        let mut sums: Vec<Self> = Vec::new();
        for part in parts {
            match sums.iter_mut().find(|own| own.name == part.name) {
                Some(own) => own.counts.iter_mut().zip(part.counts).for_each(|(sum, count)| *sum += count),
                None => sums.push(part),
            }
        }
        sums.retain(|own| own.total() > 0);
        sums
    }
}

/// Most samples that are kept of a run.
const SAMPLES: usize = 400;

impl Finished {
    /// Reads it from its folder `name` in `out`.
    ///
    /// # Errors
    /// A sentence about the file that cannot be read.
    pub fn load(out: &Path, name: &str) -> Result<Self, String> {
        let dir = out.join(name);
        let file = dir.join("summary.json");
        let text = fs::read_to_string(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        let summary: Summary =
            serde_json::from_str(&text).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        let flows = columns(&dir, "flows", &Completion::COLUMNS, "workload")?;
        let rows = flows.iter().map(|(_, row)| row.as_slice());
        let Completion { fct_us, sizes } = Completion::of(rows, summary.flows.flows_total as usize);
        let of_workload = |own: &WorkloadSummary| {
            let rows = flows.iter().filter(|(name, _)| *name == own.name).map(|(_, row)| row.as_slice());
            Completion::of(rows, own.flows.flows_total as usize)
        };
        let workloads = summary.workloads.iter().filter(|_| summary.workloads.len() > 1).map(of_workload).collect();
        // A large fabric has many ports.
        let ports = if summary.fabric.drops + summary.fabric.trims > 0 {
            columns(&dir, "ports", &Drops::CAUSES, "layer")?
        } else {
            Vec::new()
        };
        let drops = ports.into_iter().map(|(name, counts)| {
            let count = |cause: usize| counts[cause].unwrap_or(0.0) as u64;
            Drops { name, counts: std::array::from_fn(count) }
        });
        let drops = Drops::sums(drops.filter(|port| port.total() > 0));
        let delivered = columns(&dir, "goodput", &["time_us", "delivered_bytes"], "")?;
        let delivered: Vec<_> = delivered.into_iter().filter_map(|(_, row)| Some((row[0]?, row[1]?))).collect();
        let step = delivered.len().div_ceil(SAMPLES).max(1);
        let last = delivered.last().filter(|_| delivered.len() % step != 1 || step == 1).copied();
        let mut kept: Vec<_> = delivered.iter().step_by(step).copied().collect();
        kept.extend(last.filter(|last| kept.last() != Some(last)));
        let has_report = dir.join("report.html").exists();
        Ok(Self { folder: name.into(), has_report, fct_us, delivered: kept, sizes, workloads, drops, summary })
    }

    /// The record of the run in the folder; `None` if there is none.
    pub fn record(dir: &Path) -> Option<Record> {
        serde_json::from_str(&fs::read_to_string(dir.join("run.json")).ok()?).ok()
    }
}

/// The values at every hundredth of `total`, of which `ascending` are there.
fn quantiles(ascending: &[f64], total: usize) -> Vec<f64> {
    let rank = |percent: usize| (percent * total).div_ceil(100).max(1) - 1;
    (0..=100).map_while(|percent| ascending.get(rank(percent)).copied()).collect()
}

/// Columns of numbers of a table in `dir`, row by row, each with the text of the column `text`, if that is not empty.
#[expect(clippy::type_complexity, reason = "a row, as it is used once")]
fn columns(dir: &Path, table: &str, names: &[&str], text: &str) -> Result<Vec<(String, Vec<Option<f64>>)>, String> {
    let path = dir.join(format!("{table}.parquet"));
    let wrong = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", path.display());
    let reader = File::open(&path).map_err(|error| wrong(&error))?;
    let reader = SerializedFileReader::new(reader).map_err(|error| wrong(&error))?;
    let schema = reader.metadata().file_metadata().schema();
    let wanted = |name: &str| names.contains(&name) || name == text;
    let fields = schema.get_fields().iter().filter(|field| wanted(field.name())).cloned().collect();
    let schema = parquet::schema::types::Type::group_type_builder(schema.name()).with_fields(fields).build();
    let rows = reader.get_row_iter(Some(schema.map_err(|error| wrong(&error))?)).map_err(|error| wrong(&error))?;
    let field = |row: &Row, name: &str| {
        row.get_column_iter().find(|(column, _)| *column == name).map(|(_, field)| field.clone())
    };
    let number = |row: &Row, name: &str| match field(row, name)? {
        Field::Double(value) => Some(value),
        Field::Long(value) => Some(value as f64),
        _ => None,
    };
    let words = |row: &Row| match field(row, text) {
        Some(Field::Str(words)) => words,
        _ => String::new(),
    };
    let one = |row: Row| (words(&row), names.iter().map(|name| number(&row, name)).collect());
    rows.map(|row| row.map(one).map_err(|error| wrong(&error))).collect()
}
