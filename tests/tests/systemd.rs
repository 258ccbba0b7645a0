//! The packaged units of systemd, started by a systemd that is PID 1 of new namespaces.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use spray_test_support::{Folder, root, skip, text};
use spray_tests::running::wait_until;
use spray_tests::{spray, turn};

/// A systemd in namespaces. All its processes end when it is dropped.
struct Systemd {
    /// The script, whose child is `unshare`, whose child is systemd.
    script: Child,
    folder: Folder,
}

impl Systemd {
    fn boot() -> Self {
        let folder = Folder::new();
        let mut command = Command::new("unshare");
        command.args(["--mount", "bash"]).arg(root().join("tests/tests/systemd/boot.sh"));
        command.arg(folder.path()).arg(spray().get_program()).arg(root().join("deploy/systemd"));
        let script = command.stdin(Stdio::null()).spawn().unwrap();
        let systemd = Self { script, folder };
        wait_until("systemd to start", || systemd.run("systemctl list-units").is_ok());
        systemd
    }

    /// Runs a line of bash in its namespaces. Returns the output, of a failure in `Err`.
    fn run(&self, line: &str) -> Result<String, String> {
        let Some(init) = child(self.script.id()).and_then(child) else { return Err("no systemd".into()) };
        let mut command = Command::new("nsenter");
        command.args(["-t", &init.to_string(), "-p", "-m", "-n", "-C", "-i", "-u", "bash", "-c", line]);
        let output = command.current_dir(self.folder.path()).output().unwrap();
        let all = text(&output.stdout) + &text(&output.stderr);
        if output.status.success() { Ok(all) } else { Err(all) }
    }

    fn must(&self, line: &str) -> String {
        self.run(line).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    /// Starts a unit, and waits until its program has written `ready`.
    fn start(&self, unit: &str, ready: &str) {
        self.must(&format!("systemctl start spray-{unit}@eth0"));
        self.wait_for(unit, ready);
    }

    fn wait_for(&self, unit: &str, line: &str) {
        wait_until(&format!("{unit} to write {line:?}"), || self.run(&format!("grep -q '{line}' /run/{unit}")).is_ok());
    }

    /// Stops a unit, and checks that it ended well and left no program.
    fn stop(&self, unit: &str) {
        self.must(&format!("systemctl stop spray-{unit}@eth0"));
        assert_eq!(self.run(&format!("systemctl is-failed spray-{unit}@eth0")), Err("inactive\n".into()), "{unit}");
        assert!(!self.must("ip link show eth0").contains("xdp"), "{unit}");
    }
}

impl Drop for Systemd {
    fn drop(&mut self) {
        // Ignored: it may have ended.
        let _ = kill(Pid::from_raw(self.script.id() as i32), Signal::SIGTERM);
        let _ = self.script.wait();
    }
}

/// Returns the first child of a process.
fn child(pid: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

#[test]
fn the_packaged_units_of_systemd_serve() {
    let Some(_turn) = turn() else { return };
    if !Path::new("/lib/systemd/systemd").exists() {
        return skip("systemd is not installed");
    }
    let systemd = Systemd::boot();

    systemd.start("recv", "listening on eth0 as 10.0.0.1");
    systemd.must("head -c 3000000 /dev/urandom > /run/file");
    let far = "ip netns exec far spray";
    let path = "--key /etc/spray/key --interface eth0";
    systemd.must(&format!("{far} send /run/file {path} --to 10.0.0.1"));
    systemd.must("cmp /run/file /var/lib/spray/eth0/file");
    // The service runs as another user, as does what it wrote.
    assert_ne!(systemd.must("stat -c %u /var/lib/spray/eth0/file"), "0\n");

    // Another unit on the same interface begins when this one has ended.
    systemd.must("systemctl start spray-serve@eth0");
    systemd.wait_for("serve", "in use by XDP program");
    systemd.stop("recv");
    systemd.wait_for("serve", "listening on eth0 as 10.0.0.1");
    systemd.must(&format!("{far} perf 10.0.0.1 {path} --time 1"));
    // A killed service is started again.
    systemd.must("kill -9 $(systemctl show -P MainPID spray-serve@eth0); : > /run/serve");
    systemd.wait_for("serve", "listening on eth0 as 10.0.0.1");
    systemd.stop("serve");

    assert!(systemd.run("systemctl start spray-tunnel@eth0").is_err(), "a tunnel without a configuration");
    systemd.must("echo OPTIONS=--peer 10.0.0.2 --address 192.168.9.1/24 > /etc/spray/tunnel-eth0.conf");
    systemd.start("tunnel", "packets go by spray0");
    systemd.must(&format!(
        "{far} tunnel {path} --peer 10.0.0.1 --address 192.168.9.2/24 > /run/far 2>&1 &
         until grep -q 'connected to 10.0.0.1' /run/far; do sleep 0.1; done"
    ));
    let server = "exec 3<> /dev/tcp/192.168.9.1/9; read -r line <&3; test \"$line\" = \"through the tunnel\"";
    systemd.must(&format!(
        "python3 -c 'import socket; s = socket.create_server((\"192.168.9.1\", 9)); s.accept()[0].sendall(b\"through the tunnel\\n\")' &
         timeout 20 ip netns exec far bash -c 'sleep 1; {server}'"
    ));
    systemd.must("pkill -INT -f 'tunnel .* --peer 10.0.0.1'");
    systemd.stop("tunnel");
}
