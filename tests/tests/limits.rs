//! Commands with limits on processes: few threads, and few open files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use spray_test_support::{Folder, Pair, skip, text};
use spray_tests::running::{Running, inbox};
use spray_tests::{scenarios, shared_turn, spray};

use super::interfaces::{PEER, send};

/// A cgroup that limits its processes and threads.
struct Pids(PathBuf);

impl Pids {
    /// Returns `None`, and reports a skip, if this machine has no cgroup that tests may use.
    fn new() -> Option<Self> {
        let root = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].iter().find(|root| fs::metadata(root).is_ok());
        let this = Self(Path::new(root?).join(format!("spray-test-{}", std::process::id())));
        let made = fs::create_dir(&this.0).and_then(|()| fs::write(this.0.join("pids.max"), "max"));
        made.inspect_err(|_| skip("no cgroup with pids.max")).ok().map(|()| this)
    }

    /// Returns the command with at most `limit` threads.
    fn command(&self, pair: &Pair, limit: u32, arguments: &[&str]) -> Command {
        let folder = self.0.display();
        let script = format!("echo $$ > {folder}/cgroup.procs && echo {limit} > {folder}/pids.max && exec \"$@\"");
        let mut command = pair.command(0, Path::new("sh"));
        command.args(["-c", &script, "sh"]).arg(spray().get_program()).args(arguments);
        command
    }
}

impl Drop for Pids {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn without_threads_commands_use_fewer_or_fail_with_one_line() {
    let Some(_turn) = shared_turn() else { return };
    let Some(pids) = Pids::new() else { return };
    let (pair, folder) = (Pair::new("threads").unwrap(), Folder::new());
    let scenario = scenarios().join("demo-healthy.toml").display().to_string();
    let out = folder.join("runs");
    let matrix = "permutation:1 MB";
    let sim = ["sim", "--topology", "leaf-spine:8x4x4", "--matrix", matrix, "--threads", "4", "--out", &out];
    let run = ["run", &scenario, "--out", &out, "--balancer", "ops"];
    let up = ["up", &scenario, "--name", "limited"];
    let into = inbox(&folder).display().to_string();
    let receives = ["recv", "--insecure", "--interface", "eth0", "--out", &into];
    let sends = ["send", &scenario, "--insecure", "--interface", "eth0", "--timeout", "1", "--to", PEER];
    let serves = ["serve", "--insecure", "--interface", "eth0"];
    let tunnels = ["tunnel", "--insecure", "--interface", "eth0", "--peer", PEER, "--address", "10.9.0.1/24"];
    let all = [(&sim[..], 1), (&run, 3), (&up, 2), (&receives, 1), (&sends, 1), (&serves, 1), (&tunnels, 1)];
    for (arguments, enough) in all {
        for limit in 1..=enough {
            let mut running = Running(
                pids.command(&pair, limit, arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap(),
            );
            let process = running.0.id();
            let ended = running.end();
            let stderr = running.stderr();
            assert!(!stderr.contains("--help"), "{stderr}");
            let what = format!("{limit} threads, {arguments:?}: {ended}: {stderr}");
            assert!(matches!(ended.code(), Some(0..=2)) && !stderr.contains("panicked"), "{what}");
            let left = text(&Command::new("ip").args(["netns", "list"]).output().unwrap().stdout);
            assert!(!left.contains(&format!("spray-{process}-")), "{what} leaves {left}");
            let _ = fs::remove_dir_all(&out);
        }
    }
}

/// As root of a user namespace with separate limits.
#[test]
fn without_network_namespaces_a_run_fails_with_one_line() {
    let Some(_turn) = shared_turn() else { return };
    let (scenario, folder) = (scenarios().join("demo-healthy.toml").display().to_string(), Folder::new());
    let none = "echo 0 > /proc/sys/user/max_net_namespaces && exec \"$@\"";
    for (kind, code, expected) in
        [("-Urmn", 1, "limited by /proc/sys/user/max_net_namespaces"), ("-Urm", 2, "run as root")]
    {
        let mut command = Command::new("unshare");
        command.args([kind, "sh", "-c", none, "sh"]).arg(spray().get_program());
        let output = command.args(["run", &scenario, "--out", &folder.join("runs")]).output().unwrap();
        let stderr = text(&output.stderr);
        if stderr.contains("unshare: unshare failed") {
            return skip("this kernel has no user namespaces");
        }
        assert!(output.status.code() == Some(code) && stderr.contains(expected), "{kind}: {}: {stderr}", output.status);
    }
}

#[test]
fn a_low_soft_limit_of_open_files_is_raised_and_a_hard_one_is_reported() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new("files").unwrap();
    let folder = Folder::new();
    let many = folder.path().join("many");
    fs::create_dir(&many).unwrap();
    (0..500).for_each(|number| fs::write(many.join(number.to_string()), "x").unwrap());
    let limited = |kind: &str, arguments: &[&str]| {
        let mut command = pair.command(1, Path::new("sh"));
        command.args(["-c", &format!("ulimit -{kind}n 64; exec \"$@\""), "sh"]).arg(spray().get_program());
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::piped());
        Running(command.spawn().unwrap())
    };
    let out = inbox(&folder);
    let receives = ["recv", "--insecure", "--interface", "eth0", "--out", out.to_str().unwrap()];
    let mut receiver = limited("S", &receives).listening();
    let sent = send(&pair, &many, &format!("--interface eth0 --to {PEER}"));
    assert!(sent.status.success() && receiver.end().success(), "{}{}", text(&sent.stderr), receiver.stderr());
    assert_eq!(fs::read_dir(out.join("many")).unwrap().count(), 500);
    let scenario = scenarios().join("demo-healthy.toml").display().to_string();
    let run = ["run", &scenario, "--out", &folder.join("runs")];
    for (arguments, needed) in [(&receives[..], "384"), (&run, "232")] {
        let mut hard = limited("", arguments);
        let ended = hard.end();
        let stderr = hard.stderr();
        let named = format!("this process may open 64 files, and needs {needed}");
        assert!(ended.code() == Some(2) && stderr.contains(&named), "{ended}: {stderr}");
    }
    let mut soft = limited("S", &run);
    assert!(soft.end().success(), "{}", soft.stderr());
}
