//! Deployed fabrics, controlled through the `spray` command.

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

/// Runs `spray`; returns its exit code, standard output and standard error.
pub fn run(arguments: &[&str]) -> (i32, String, String) {
    run_by(spray(), arguments)
}

/// As [`run`], with a command to which `spray`'s arguments are appended.
pub fn run_by(mut command: Command, arguments: &[&str]) -> (i32, String, String) {
    let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Returns a command that runs `spray` in a time namespace whose monotonic clock is `offset`
/// seconds ahead of the kernel's.
pub fn shifted(offset: i64) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--time", &format!("--monotonic={offset}"), "--fork"]).arg(spray().get_program());
    command
}

/// Applies changes to the links of the fabric `name` that match `links`; returns these links.
pub fn links(name: &str, links: &str, changes: &[&str]) -> Vec<Value> {
    let (code, stdout, errors) = run(&[&["link", "--name", name, "--json", links][..], changes].concat());
    assert_eq!(code, 0, "{errors}");
    serde_json::from_str::<Value>(&stdout).unwrap()["links"].as_array().unwrap().clone()
}

/// Returns the sum of a field over these links.
pub fn sum(name: &str, of: &str, field: &str) -> u64 {
    links(name, of, &[]).iter().map(|link| link[field].as_u64().unwrap()).sum()
}

/// Runs `work` in a network namespace; sockets that it opens stay there.
pub fn inside<T: Send>(namespace: &str, work: impl FnOnce() -> T + Send) -> T {
    let namespace = File::open(Path::new("/run/netns").join(namespace)).unwrap();
    let enter = || {
        setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
        work()
    };
    std::thread::scope(|scope| scope.spawn(enter).join().unwrap())
}

/// Sends bytes in both directions at the same time over a kernel TCP connection, from one namespace
/// to an address in another, and compares them.
pub fn exchange(from: &str, to: &str, address: IpAddr, bytes: usize) {
    let listener = inside(to, || TcpListener::bind(SocketAddr::new(address, 0))).unwrap();
    let address = listener.local_addr().unwrap();
    let near = inside(from, || TcpStream::connect_timeout(&address, Duration::from_secs(30))).unwrap();
    let (far, _) = listener.accept().unwrap();
    both_ways([near, far], bytes);
}
