//! Captures as Wireshark reads them.

use std::path::Path;
use std::process::Command;

use crate::{root, skip, text};

/// The values of these fields in each frame of a capture that `filter` lets pass, as tshark and our dissector read them; several of one
/// field with commas between. Where there is no tshark, the calling test skips.
///
/// # Panics
/// When tshark does not like the file, or the dissector fails.
#[must_use]
pub fn tshark(capture: &Path, filter: &str, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    if Command::new("tshark").arg("--version").output().is_err() {
        skip("tshark is not installed");
        return None;
    }
    let script = format!("lua_script:{}", root().join("deploy/wireshark/spray.lua").display());
    let mut command = Command::new("tshark");
    command.args(["-X", &script, "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-r"]).arg(capture);
    command.args(["-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,"]);
    if !filter.is_empty() {
        command.args(["-Y", filter]);
    }
    command.args(fields.iter().flat_map(|field| ["-e", field]));
    let output = command.output().unwrap_or_else(|error| panic!("tshark: {error}"));
    let said = text(&output.stderr);
    assert!(output.status.success() && !said.contains("Lua"), "{said}");
    let row = |line: &str| line.split('\t').map(str::to_string).collect();
    Some(text(&output.stdout).lines().map(row).collect())
}

/// What no frame of ours may be: malformed, of another length than it says, with a wrong checksum, or too much for the dissector.
pub const WRONG: &str = "_ws.malformed || _ws.lua.error || spraynic.expert.length || spraynic.expert.short \
                         || (udp.dstport >= 61440 && udp.dstport <= 61503 && !spraynic) || spraynic.expert.kind || spraynic.expert.echoes || ip.checksum.status == 0";
