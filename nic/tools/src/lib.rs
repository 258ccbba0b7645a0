//! The commands for real machines (`send`, `recv`, `serve`, `perf`, `paths`, `tunnel`, `keygen`,
//! `doctor`), and what all commands of `spray` share.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[cfg(feature = "xdp")]
pub mod args;
pub mod captures;
#[cfg(feature = "xdp")]
mod confine;
#[cfg(feature = "xdp")]
pub mod doctor;
pub mod failure;
pub mod metrics;
#[cfg(feature = "xdp")]
mod paths;
#[cfg(feature = "xdp")]
mod perf;
#[cfg(feature = "xdp")]
mod places;
#[cfg(feature = "xdp")]
mod ports;
pub mod progress;
pub mod say;
#[cfg(feature = "xdp")]
mod session;
pub mod settings;
pub mod stop;
#[cfg(feature = "xdp")]
mod transfer;
#[cfg(feature = "xdp")]
mod tunnel;

#[cfg(feature = "xdp")]
pub use spray_nic::sys::raise_open_files;

#[cfg(feature = "xdp")]
pub use crate::{
    paths::paths,
    perf::{perf, serve},
    session::keygen,
    transfer::{recv, send},
    tunnel::tunnel,
};
