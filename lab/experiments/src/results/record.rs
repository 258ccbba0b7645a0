//! The record of a run (`run.json`), and finished runs.

use std::fs::{self, File};
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SizeClass, Summary, WorkloadSummary, size_classes};

/// The contents of `run.json`: how a run was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Hash of all that determines the results: settings, named files, seed, engine, commit.
    pub key: String,
    /// The same without axis values, switch scheme, balancer and seed: that of a table.
    #[serde(default)]
    pub table_key: String,
    /// The engine: `xdp` or `sim`.
    pub engine: String,
    /// The balancer.
    pub balancer: String,
    /// The random seed.
    pub seed: u64,
    /// End of the run in UTC.
    pub date: String,
    /// The program that ran it.
    #[serde(flatten)]
    pub program: Program,
    /// The machine that ran it.
    #[serde(flatten)]
    pub machine: Machine,
}

/// The program and its command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Command line arguments.
    pub command: Vec<String>,
    /// Version of spray.
    pub version: String,
    /// Commit it was built from, with `-dirty` if files had changed; empty outside a repository.
    pub commit: String,
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Kernel and release; empty if unknown, like all of these.
    pub kernel: String,
    /// Processor model.
    pub cpu: String,
    /// Cores available to the program.
    pub cores: u64,
    /// Memory of the machine.
    pub memory_bytes: u64,
}

impl Machine {
    /// Describes this machine.
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

/// A finished run as tables and reports over several runs need it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FinishedRun {
    /// Name of its folder.
    pub folder: String,
    /// Whether it has a `report.html`.
    pub has_report: bool,
    /// Its measures.
    pub summary: Summary,
    /// Completion times in us: minimum and percentiles of all flows; fewer if some are incomplete.
    pub fct_us: Vec<f64>,
    /// (Time in us, cumulative payload in bytes), ascending; a few hundred at most.
    pub delivered: Vec<(f64, f64)>,
    /// Slowdown by message size.
    pub sizes: Vec<SizeClass>,
    /// Completion by workload, in the order of the summary; empty if there is one workload.
    pub workloads: Vec<Completion>,
    /// Drops and trims by layer, without layers that had none.
    pub drops: Vec<Drops>,
}

/// Completion times and slowdowns of flows, as in [`FinishedRun`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completion {
    /// Completion times in us.
    pub fct_us: Vec<f64>,
    /// Slowdown by message size.
    pub sizes: Vec<SizeClass>,
}

impl Completion {
    const COLUMNS: [&str; 4] = ["fct_us", "bytes", "elapsed_us", "unloaded_fct_us"];

    /// Computes them from rows of [`Completion::COLUMNS`] of `total` flows.
    fn of<'a>(flows: impl Iterator<Item = &'a [Option<f64>]> + Clone, total: usize) -> Self {
        let mut fcts: Vec<f64> = flows.clone().filter_map(|row| row[0]).collect();
        fcts.sort_by(f64::total_cmp);
        // Incomplete flows count with their elapsed time.
        let slowdown =
            |row: &[Option<f64>]| Some((row[1]? as u64, row[0].or(row[2])? / row[3].filter(|us| *us > 0.0)?));
        let sizes = size_classes(flows.filter_map(slowdown));
        Self { fct_us: quantiles(&fcts, total), sizes }
    }
}

/// Drops by cause, and trims, of a port or a layer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// Port, or layer such as `leaf->spine`.
    pub name: String,
    /// Counts by [`Drops::CAUSES`].
    pub counts: [u64; 5],
}

impl Drops {
    /// The causes: columns of `ports`.
    pub const CAUSES: [&str; 5] = ["drops_queue", "drops_link", "drops_random", "drops_ttl", "trims"];

    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Sums `parts` by name, without those that are 0.
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

/// Maximum number of samples kept of a run.
const SAMPLES: usize = 400;

impl FinishedRun {
    /// Loads it from the folder `name` in `out`.
    ///
    /// # Errors
    /// Describes the file that cannot be read.
    pub fn load(out: &Path, name: &str) -> Result<Self, String> {
        let dir = out.join(name);
        let file = dir.join("summary.json");
        let wrong = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", file.display());
        let text = fs::read_to_string(&file).map_err(|error| wrong(&error))?;
        let summary: Summary = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
        let flows = columns(&dir, "flows", &Completion::COLUMNS, "workload")?;
        let rows = flows.iter().map(|(_, row)| row.as_slice());
        let Completion { fct_us, sizes } = Completion::of(rows, summary.flows.flows_total as usize);
        let of_workload = |own: &WorkloadSummary| {
            let rows = flows.iter().filter(|(name, _)| *name == own.name).map(|(_, row)| row.as_slice());
            Completion::of(rows, own.flows.flows_total as usize)
        };
        let workloads = summary.workloads.iter().filter(|_| summary.workloads.len() > 1).map(of_workload).collect();
        // Skipped without drops, as large fabrics have many ports.
        let has_drops = summary.fabric.drops + summary.fabric.trims > 0;
        let ports = if has_drops { columns(&dir, "ports", &Drops::CAUSES, "layer")? } else { Vec::new() };
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

    /// Returns the record in the folder, if there is one.
    pub fn record(dir: &Path) -> Option<Record> {
        serde_json::from_str(&fs::read_to_string(dir.join("run.json")).ok()?).ok()
    }
}

/// Returns the minimum and every percentile of `total` values, as far as `ascending` has them.
fn quantiles(ascending: &[f64], total: usize) -> Vec<f64> {
    let rank = |percent: usize| (percent * total).div_ceil(100).max(1) - 1;
    (0..=100).map_while(|percent| ascending.get(rank(percent)).copied()).collect()
}

/// Reads numeric columns by row, each with the text column `text` if that is not empty.
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
