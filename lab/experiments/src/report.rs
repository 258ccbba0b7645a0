//! Self-contained HTML pages about runs: no server, no fonts, nothing fetched.
//!
//! Headings and tables are written here. `data` holds the plots' data as JSON, `assets` the scripts
//! that draw it with the library in `vendor`.

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
