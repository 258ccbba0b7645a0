//! The commands over UDP sockets, on loopback addresses, without privileges.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use spray_test_support::{Folder, text};
use spray_tests::machines::{Machines, ip};
use spray_tests::running::{Running, content};
use spray_tests::{shared_turn, spray};

/// Root runs them as the user without privileges.
const UNPRIVILEGED_USER: u32 = 65_534;

/// A folder of that user with our program in it, and addresses that no other test uses.
struct Setup {
    folder: Folder,
    program: PathBuf,
    address: String,
    /// The address of the side that connects.
    from: String,
}

impl Setup {
    fn new(number: u8) -> Self {
        let folder = Folder::new();
        let program = folder.path().join("spray");
        // Copied by another process: a program that this one, or a child forked meanwhile, has open
        // for writing cannot be executed.
        assert!(Command::new("cp").arg(spray().get_program()).arg(&program).status().unwrap().success());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let [high, low] = (std::process::id() as u16).to_be_bytes();
        let address = |side| format!("127.{}.{low}.{}", 192 | high & 31, 2 * number + side);
        let setup = Self { folder, program, address: address(0), from: address(1) };
        let inbox = setup.inbox();
        fs::create_dir(&inbox).unwrap();
        if nix::unistd::geteuid().is_root() {
            chown(inbox, Some(UNPRIVILEGED_USER), Some(UNPRIVILEGED_USER)).unwrap();
        }
        setup
    }

    fn inbox(&self) -> PathBuf {
        self.folder.path().join("in")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if nix::unistd::geteuid().is_root() {
            command.uid(UNPRIVILEGED_USER).gid(UNPRIVILEGED_USER);
        }
        command
    }

    fn listening(&self, arguments: &[&str]) -> Running {
        let rest = ["--device", "udp", "--from", &self.address, "--insecure", "--timeout", "60"];
        Running(self.command(&[arguments, &rest].concat()).spawn().unwrap()).listening()
    }

    fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }
}

#[test]
fn any_user_can_send_a_file_to_any_other() {
    let setup = Setup::new(1);
    let sent = content(1, 5_000_000);
    let file = setup.folder.file("file", &sent);
    let inbox = setup.inbox();
    let mut receiver = setup.listening(&["recv", "--out", inbox.to_str().unwrap()]);
    let to = ["--device", "udp", "--from", &setup.from, "--to", &setup.address, "--insecure", "--timeout", "60"];
    let sender = setup.output(&[&["send", &file, "--balancer", "reps"], &to[..]].concat());
    assert!(sender.status.success(), "{}", text(&sender.stderr));
    assert!(receiver.end().success());
    assert!(fs::read(inbox.join("file")).unwrap() == sent);
    for stderr in [text(&sender.stderr), receiver.stderr()] {
        assert!(!stderr.contains("warning"), "{stderr}");
    }
}

#[test]
fn goodput_and_round_trips_are_measured() {
    let setup = Setup::new(2);
    let _server = setup.listening(&["serve"]);
    for way in [&["--time", "1"][..], &["--time", "1", "-R"], &["--time", "1", "--latency"]] {
        let by = ["--device", "udp", "--from", &setup.from, "--insecure", "--json", "--timeout", "60"];
        let rest = [&["perf", &setup.address], &by[..]].concat();
        let output = setup.output(&[&rest[..], way].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let measured: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(measured.is_object(), "{measured}");
    }
}

#[test]
fn paths_are_examined_without_privileges() {
    let setup = Setup::new(4);
    let _server = setup.listening(&["serve"]);
    let output = setup.output(&["paths", &setup.address, "--from", &setup.from, "--json", "-q"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&found["answered_by"], &found["paths"][0]["hops"][0]),
        (&"endpoint".into(), &setup.address.as_str().into())
    );
    assert_eq!(found["values"].as_array().unwrap().iter().filter(|value| value["answered"] == 10).count(), 32);
}

/// The kernel leaves the checksums of its datagrams to the veth, which does not compute them.
#[test]
fn a_host_on_udp_sockets_and_one_on_af_xdp_interoperate_over_veth() {
    let Some(_turn) = shared_turn() else { return };
    let (machines, folder) = (Machines::new("mixed"), Folder::new());
    let ways = [("p0", machines.machine()), ("eth0", machines.host(0))];
    ip(&format!("-n {} address add 10.79.0.9/24 dev p0", ways[0].1));
    ip(&format!("-n {} address add fd79::9/64 dev p0 nodad", ways[0].1));
    let sent = content(3, 3_000_000);
    let file = folder.file("file", &sent);
    let devices = |of: usize, from: &str| {
        [vec!["--device", "udp", "--from", from], vec!["--interface", ways[of].0, "--from", from]]
            .map(|words| words.into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    for (case, (receiver, sender)) in [("10.79.0.9", "10.79.0.1"), ("fd79::9", "fd79::1")].into_iter().enumerate() {
        let [udp_in, xdp_in] = devices(0, receiver);
        let [udp_out, xdp_out] = devices(1, sender);
        for (which, (taking, giving)) in [(xdp_in, udp_out), (udp_in, xdp_out)].into_iter().enumerate() {
            let inbox = folder.path().join(format!("in{case}{which}"));
            fs::create_dir(&inbox).unwrap();
            let in_namespace = |namespace: &str, words: &[&str], device: &[String]| {
                let mut command = Machines::command(namespace, &spray().get_program().to_string_lossy());
                command.args(words).args(device).args(["--insecure", "--timeout", "60"]);
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
                command
            };
            let mut taking = in_namespace(&ways[0].1, &["recv", "--out", inbox.to_str().unwrap()], &taking);
            let mut taking = Running(taking.spawn().unwrap()).listening();
            let output = in_namespace(&ways[1].1, &["send", &file, "--to", receiver], &giving).output().unwrap();
            assert!(output.status.success(), "{giving:?}: {}", text(&output.stderr));
            assert!(taking.end().success());
            assert!(fs::read(inbox.join("file")).unwrap() == sent);
        }
    }
}

#[test]
fn options_without_support_on_udp_sockets_are_rejected() {
    let setup = Setup::new(3);
    for (given, expected) in [
        (&["--device", "xdp"][..], "--interface"),
        (&[], "--interface"),
        (&["--device", "udp", "--queue", "1"], "goes without --queue"),
        (&["--device", "udp", "--from", "203.0.113.7"], "cannot receive at UDP port 61440 of 203.0.113.7"),
        (&["--device", "udp", "--payload", "60000"], "or less --payload"),
    ] {
        let file = setup.folder.file("file", "content");
        let output = setup.output(&[&["send", &file, "--to", &setup.address, "--insecure"], given].concat());
        assert_eq!(output.status.code(), Some(2), "{given:?}");
        assert!(text(&output.stderr).contains(expected), "{given:?}: {}", text(&output.stderr));
    }
}
