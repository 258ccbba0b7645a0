//! Self-contained HTML pages about runs: without scripts, fonts or references to anything outside the file.

mod chart;
mod figures;
mod html;
mod overview;
mod run;
mod series;
#[cfg(test)]
mod tests;

pub use self::figures::{figure_page, figures_page};
pub use self::overview::{goodput_picture, overview_page};
pub use self::run::run_page;
