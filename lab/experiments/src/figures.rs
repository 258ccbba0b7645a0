//! The papers' figures and tables, each described by a file: runs, plots and claims.
//!
//! A file `figures/PAPER/NUMBER.toml` has the form of [`Figure`]. It runs scenarios on the
//! simulator, or one of the [`models`] (formulas, balls into bins).

mod claim;
mod file;
mod grid;
mod list;
mod markdown;
mod measures;
pub mod models;
mod plan;
mod port_series;
mod run;
mod verdict;

pub use self::claim::Claim;
pub(crate) use self::file::{Condition, Measure, Plot, Series};
pub use self::file::{Figure, Scale, Size};
pub(crate) use self::grid::Grid;
pub use self::grid::grids;
pub use self::list::{PAPERS, all, find};
pub use self::markdown::{Count, has_full, is_over_all, markdown, markdown_of_one};
pub(crate) use self::port_series::PortSeries;
pub use self::run::{Cell, FigureResults, FigureRun, Plan};
pub(crate) use self::verdict::Verdict;
