//! `spray bench switch`: cost of a frame in the switch program, relative to a bare redirect.

use serde_json::json;
use spray_experiments::results::align;
use spray_experiments::switch::program::HopBench;
use spray_fabric::{FlowHash, HashFunction, Scheme, Switching};
use spray_tools::failure::{Failure, Outcome};
use spray_tools::progress::Progress;
use spray_tools::say;

use super::median::median_of;
use crate::lab::args;

/// The kernel returns the mean over this number in whole nanoseconds.
const FRAMES: u32 = 100_000;
/// Parallel cables between two switches.
const CABLES: u32 = 4;
/// Target for the cost of a switch over the bare redirect, with frames in order.
const HOP_TARGET_NS: f64 = 120.0;

/// Nanoseconds per switch, over the bare redirect.
struct Row {
    name: String,
    in_order: f64,
    out_of_order: f64,
}

/// Fails with 2 without root or when the programs cannot be loaded, 1 when a measurement failed.
pub fn switch(arguments: &args::BenchSwitch) -> Outcome {
    let mut progress = Progress::on_stderr();
    progress.phase("test runs of the switch program");
    let alone = HopBench::new(Switching::default(), 1).map_err(Failure::refused)?;
    let repeat = arguments.repeat;
    let redirect_ns = median_of(repeat, || ns(alone.redirect(FRAMES)))?;
    let one_ns = median_of(repeat, || Ok(ns(alone.switch(1, FRAMES))? - ns(alone.redirect(FRAMES))?))?;
    let mut rows = Vec::new();
    for (name, switching) in all() {
        let bench = HopBench::new(switching, CABLES).map_err(Failure::refused)?;
        // Repeats the bare redirect each time, because the clock rate of the processor varies.
        let hop = |time: f64| Ok((time - ns(bench.redirect(FRAMES))?) / f64::from(HopBench::HOPS));
        let in_order = median_of(repeat, || hop(ns(bench.switch(HopBench::HOPS, FRAMES))?))?;
        let out_of_order = median_of(repeat, || hop(ns(bench.out_of_order(HopBench::HOPS, FRAMES))?))?;
        rows.push(Row { name, in_order, out_of_order });
    }
    progress.clear();
    let object =
        |row: &Row| json!({ "scheme": row.name, "hop_ns": row.in_order, "hop_out_of_order_ns": row.out_of_order });
    say::object(&json!({
        "repeat": repeat,
        "redirect_ns": redirect_ns,
        "one_switch_ns": one_ns,
        "most_ns": rows.iter().map(|row| row.in_order).fold(0.0, f64::max),
        "schemes": rows.iter().map(object).collect::<Vec<_>>(),
    }))?;
    say!(
        "a bare redirect {redirect_ns:.0} ns; one switch alone {one_ns:.0} ns more; target for any: {HOP_TARGET_NS:.0}\n"
    );
    let line = |row: &Row| vec![row.name.clone(), format!("{:.0}", row.in_order), format!("{:.0}", row.out_of_order)];
    let head = ["scheme or hash", "ns a switch, over the redirect", "frames out of order"];
    say!("{}", align(&head, 1, &rows.iter().map(line).collect::<Vec<_>>()));
    Ok(())
}

fn ns(time: Result<std::time::Duration, impl std::fmt::Display>) -> Result<f64, Failure> {
    time.map(|time| time.as_secs_f64() * 1e9).map_err(Failure::failed)
}

fn all() -> impl Iterator<Item = (String, Switching)> {
    let schemes = Scheme::ALL.into_iter().filter(|scheme| scheme.is_in_kernel());
    let hashes = [HashFunction::Crc16, HashFunction::Crc32, HashFunction::Xor].map(|function| {
        let hash = FlowHash { function, ..FlowHash::default() };
        (format!("ecmp, {}", format!("{function:?}").to_lowercase()), Switching { hash, ..Switching::default() })
    });
    schemes.map(|scheme| (scheme.to_string(), Switching::all(scheme))).chain(hashes)
}
