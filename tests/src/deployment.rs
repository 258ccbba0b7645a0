//! Deployed fabrics, as users ask for them.

use std::fs::File;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sched::{CloneFlags, setns};
use serde_json::Value;
use spray_test_support::text;

use crate::running::both_ways;
use crate::spray;

/// Runs `spray` and returns its exit code, and what it said on standard output and on standard error.
pub fn run(arguments: &[&str]) -> (i32, String, String) {
    run_by(spray(), arguments)
}

/// As [`run`], by a command that runs `spray` with the arguments behind its own.
pub fn run_by(mut command: Command, arguments: &[&str]) -> (i32, String, String) {
    let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// `spray` in a time namespace with a monotonic clock that is `offset` seconds ahead of the kernel's.
pub fn shifted(offset: i64) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--time", &format!("--monotonic={offset}"), "--fork"]).arg(spray().get_program());
    command
}

/// The links of the fabric called `name` that `links` means, after these changes.
pub fn links(name: &str, links: &str, changes: &[&str]) -> Vec<Value> {
    let (code, said, errors) = run(&[&["link", "--name", name, "--json", links][..], changes].concat());
    assert_eq!(code, 0, "{errors}");
    serde_json::from_str::<Value>(&said).unwrap()["links"].as_array().unwrap().clone()
}

/// What a field of these links comes to in all.
pub fn sum(name: &str, of: &str, field: &str) -> u64 {
    links(name, of, &[]).iter().map(|link| link[field].as_u64().unwrap()).sum()
}

/// Runs `work` in a network namespace; sockets that it makes stay there.
pub fn inside<T: Send>(namespace: &str, work: impl FnOnce() -> T + Send) -> T {
    let namespace = File::open(Path::new("/run/netns").join(namespace)).unwrap();
    let enter = || {
        setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
        work()
    };
    std::thread::scope(|scope| scope.spawn(enter).join().unwrap())
}

/// Sends bytes both ways at once over a TCP connection of the kernel's, from one namespace to an address in another, and compares them.
pub fn exchange(from: &str, to: &str, address: IpAddr, bytes: usize) {
    let listener = inside(to, || TcpListener::bind(SocketAddr::new(address, 0))).unwrap();
    let address = listener.local_addr().unwrap();
    let near = inside(from, || TcpStream::connect_timeout(&address, Duration::from_secs(30))).unwrap();
    let (far, _) = listener.accept().unwrap();
    both_ways([near, far], bytes);
}
