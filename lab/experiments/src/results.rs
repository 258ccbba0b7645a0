//! Results of runs: types, folders, and tables that compare runs.
//!
//! Times are scenario time from the start of the run, in us except for samples.

mod collect;
mod columns;
mod documentation;
mod engine_figures;
mod event;
mod evs;
mod fabric_figures;
mod field;
mod figures;
mod files;
mod flow_figures;
mod flow_result;
mod freezing;
mod incomplete;
pub mod measures;
mod record;
mod run_result;
mod shape;
mod sizes;
mod spread;
pub(crate) mod statistics;
mod summary;
mod sweep;
mod table;
mod tables;
#[cfg(test)]
pub(crate) mod tests;
mod workload_table;
mod workloads;

pub use spray_fabric::{PortCounters, PortOutcome, PortSamples};

pub(crate) use self::collect::{Collect, given_up, reported};
pub use self::documentation::documentation;
pub use self::engine_figures::{EngineFigures, PfcFigures, SimFigures};
pub use self::event::{EventKind, EventRow};
pub(crate) use self::evs::{ConnectionEvs, EvBin};
pub use self::fabric_figures::{FabricFigures, LayerFigures};
pub use self::figures::write_figures;
pub use self::files::{Extras, PART, WriteError, folder_name, write_overview, write_run};
pub use self::flow_figures::FlowFigures;
pub(crate) use self::flow_figures::{gbps, slowdown, times};
pub use self::flow_result::{FlowResult, Incomplete};
pub(crate) use self::freezing::drops_all;
pub use self::incomplete::incomplete_notes;
pub(crate) use self::record::Drops;
pub use self::record::{Completion, FinishedRun, Machine, Program, Record};
pub use self::run_result::{RunResult, TestbedLosses};
pub(crate) use self::shape::Shape;
pub(crate) use self::sizes::{SizeClass, size_classes};
pub use self::spread::Spread;
pub(crate) use self::statistics::{grouped, us};
pub use self::summary::{Hash, Summary};
pub use self::sweep::{compare_table, sweep_table, write_sweep};
pub(crate) use self::table::{WORDS, lateness_note, lines, loss_note};
pub use self::table::{align, table};
pub use self::tables::{trace_json, trace_parquet};
pub use self::workload_table::workload_table;
pub(crate) use self::workload_table::{Lines, workload_lines};
pub use self::workloads::{Collectives, WorkloadSummary};
