use std::path::Path;
use std::process::Command;

use crate::{root, skip, text};

/// Returns the values of `fields` in each frame of a capture that matches `filter`, as read by
/// tshark with our dissector; several of one field are separated by commas. Without tshark the
/// calling test skips. Panics when tshark cannot read the file, or the dissector fails.
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
    let errors = text(&output.stderr);
    assert!(output.status.success() && !errors.contains("Lua"), "{errors}");
    let row = |line: &str| line.split('\t').map(str::to_string).collect();
    Some(text(&output.stdout).lines().map(row).collect())
}

/// A filter for invalid frames: malformed, of another length than stated, with a wrong checksum, or
/// not decodable.
pub const WRONG: &str = "_ws.malformed || _ws.lua.error || spraynic.expert.length || spraynic.expert.short \
                         || (udp.dstport >= 61440 && udp.dstport <= 61503 && !spraynic) || spraynic.expert.kind || spraynic.expert.echoes || ip.checksum.status == 0";
