//! HTML pages about runs, each one file that needs nothing else: no server, no fonts, nothing from elsewhere.
//!
//! A page is headings and tables, written here, and plots: `data` says what they show, as JSON, and `assets` are the programs that draw
//! it, around the library in `vendor`.

mod data;
mod figures;
mod html;
mod overview;
mod run;
#[cfg(test)]
mod tests;

pub use self::figures::{figure_page, figures_page};
pub use self::overview::overview_page;
pub use self::run::run_page;
