//! `spray report-hardware`: what only an owner's machine can show, in one file to send back.
//!
//! | file | content |
//! |---|---|
//! | `measure` | what `spray perf` measures to the peer, in each mode |
//! | `shorten` | takes addresses out |

mod measure;
mod shorten;

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use serde_json::json;
use spray_nic::net::Interface;
use spray_nic::net::ethtool::Ethtool;

use self::measure::cell;
use self::shorten::Addresses;
use crate::args::{Doctor, ReportHardware};
use crate::doctor::{self, Check, Group};
use crate::failure::{Failure, Outcome};
use crate::{info, say};

/// Examines and probes the interface, measures where there is a peer, and writes the file.
///
/// # Errors
/// 2 when there is no such interface or the file cannot be made, 1 when it cannot be written.
pub fn report_hardware(arguments: &ReportHardware) -> Outcome {
    let interface = Interface::find(&arguments.interface).map_err(Failure::refused)?;
    let path = arguments.out.clone().unwrap_or_else(|| PathBuf::from(format!("spray-hardware-{}.md", interface.name)));
    let told = |error| format!("{}: {error}", path.display());
    let mut file = File::create(&path).map_err(|error| Failure::refused(told(error)))?;
    let driver = Ethtool::open(&interface.name).and_then(|ethtool| ethtool.driver()).unwrap_or_default();
    let addresses = Addresses::of(&interface, &driver);
    let text = addresses.shorten(&document(&interface, arguments)?);
    file.write_all(text.as_bytes()).map_err(|error| Failure::failed(told(error)))?;
    say!("{}: look through it, and send it back", path.display());
    say::object(&json!({ "file": path }))
}

fn document(interface: &Interface, arguments: &ReportHardware) -> Outcome<String> {
    let mut text = format!(
        "# What a machine's hardware does with spray {}\n\nWritten by `spray report-hardware`. Addresses are left out; no key, name of \
         the machine or content of a packet is in it.\n",
        env!("CARGO_PKG_VERSION")
    );
    info!("spray: the doctor examines {}, and opens sockets on each of its queues", interface.name);
    let asked = Doctor {
        interface: Some(interface.name.clone()),
        peer: arguments.peer,
        fix: false,
        undo: false,
        no_probe: false,
        restore: false,
    };
    let machine = Group { title: "Machine", checks: doctor::kernel().into_iter().chain(doctor::packets()).collect() };
    let groups = doctor::examine(&interface.name, &asked)?;
    for group in [machine].into_iter().chain(groups) {
        section(&mut text, &group);
    }
    features(&mut text, interface);
    match arguments.peer {
        Some(peer) => measure::sections(&mut text, arguments, &interface.name, peer),
        None => text.push_str("\n## spray perf\n\nNot measured: no `--peer` was given.\n"),
    }
    Ok(text)
}

fn section(text: &mut String, group: &Group) {
    let _ = write!(text, "\n## {}\n\n| | | found |\n|---|---|---|\n", group.title);
    for Check { check, status, found, .. } in &group.checks {
        let _ = writeln!(text, "| {check} | {} | {} |", format!("{status:?}").to_lowercase(), cell(found));
    }
}

fn features(text: &mut String, interface: &Interface) {
    let features = Ethtool::open(&interface.name).and_then(|ethtool| ethtool.features()).unwrap_or_default();
    let on: Vec<&str> = features.iter().filter(|feature| feature.on).map(|feature| feature.name.as_str()).collect();
    let _ = write!(text, "\n## Features that are on\n\n{}\n", on.join(", "));
}
