//! `spray bench start`: how long commands take that have little to do.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use spray_benches::net::Pair;
use spray_tools::failure::{Failure, Outcome};
use spray_tools::say;
use tempfile::TempDir;

use super::median::median_of;
use crate::lab::args;

/// One short flow each way between two hosts.
const TINY: &str = "name = \"tiny\"\ntopology = { kind = \"leaf-spine\", leaves = 2, spines = 1, hosts_per_leaf = 1 }\n\
                    workload = { kind = \"permutation\", bytes = \"1 KiB\" }\n";

/// Measures this program.
///
/// # Errors
/// 2 without root, 1 when a command failed.
pub fn start(arguments: &args::BenchStart) -> Outcome {
    let pair = Pair::new().map_err(Failure::refused)?;
    let bench = Bench { folder: tempfile::tempdir().map_err(Failure::failed)?, pair };
    let folder = bench.folder.path();
    std::fs::create_dir(folder.join("received")).map_err(Failure::failed)?;
    for (name, content) in [("tiny.toml", TINY.as_bytes()), ("file", &[7; 1000])] {
        std::fs::write(folder.join(name), content).map_err(Failure::failed)?;
    }
    bench.ms(0, "keygen key")?;
    let receiver = bench.spawn(1, "recv --keep --key key --interface eth0 --out received")?;
    let times = bench.all(arguments.repeat);
    stop(receiver)?;
    let [version_ms, run_ms, send_ms] = times?;
    say::object(&json!({
        "repeat": arguments.repeat, "version_ms": version_ms, "run_ms": run_ms, "send_ms": send_ms,
    }))?;
    say!(
        "spray --version: {version_ms:.0} ms; a tiny run of the simulator: {run_ms:.0} ms; a file of 1 kB: {send_ms:.0} ms"
    );
    Ok(())
}

/// Ends a command as a user would.
fn stop(mut child: Child) -> Outcome {
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).map_err(Failure::failed)?;
    child.wait().map(drop).map_err(Failure::failed)
}

/// Where commands run: a folder, and two hosts with a veth pair.
struct Bench {
    folder: TempDir,
    pair: Pair,
}

impl Bench {
    /// Milliseconds of each command, medians.
    fn all(&self, repeat: u32) -> Outcome<[f64; 3]> {
        let send = || {
            let ms = self.ms(0, &format!("send file --key key --interface eth0 --to {}", Pair::address(1, false)))?;
            std::fs::remove_file(self.folder.path().join("received/file")).map_err(Failure::failed)?;
            Ok(ms)
        };
        // The first one waits for the receiver.
        send()?;
        let run = || self.ms(0, "run tiny.toml --engine sim");
        Ok([median_of(repeat, || self.ms(0, "--version"))?, median_of(repeat, run)?, median_of(repeat, send)?])
    }

    /// Milliseconds that this program takes with these `arguments`, on one of the two hosts.
    #[expect(clippy::disallowed_methods, reason = "a measurement")]
    fn ms(&self, host: usize, arguments: &str) -> Outcome<f64> {
        let begun = Instant::now();
        let output = self.spawn(host, arguments)?.wait_with_output().map_err(Failure::failed)?;
        let ms = begun.elapsed().as_secs_f64() * 1e3;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Failure::failed(format!("`spray {arguments}` ended with {}: {said}", output.status)));
        }
        Ok(ms)
    }

    fn spawn(&self, host: usize, arguments: &str) -> Outcome<Child> {
        let program = std::env::current_exe().map_err(Failure::failed)?;
        let mut command = Command::new(program);
        command.args(arguments.split_whitespace()).current_dir(self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        self.pair.run_in(host, || command.spawn()).map_err(Failure::failed)?.map_err(Failure::failed)
    }
}
