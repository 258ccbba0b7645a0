//! Self-contained HTML pages about runs: no server, no fonts, nothing fetched.
//!
//! Headings and tables are written here. `data` has the plots' JSON, `assets` their scripts.

mod data;
mod figures;
mod html;
mod overview;
mod run;
#[cfg(test)]
mod tests;

pub(crate) use self::figures::{figure_page, figures_page};
pub(crate) use self::overview::overview_page;
pub(crate) use self::run::run_page;
