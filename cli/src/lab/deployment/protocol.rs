//! Requests to the daemon, and its responses: a line of JSON each, over its socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spray_tools::failure::{Failure, Outcome};

use super::user;

#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    Status,
    /// The links of this pattern, or all.
    Links(Option<String>),
    /// Links and their changes, as on the command line.
    Change(String, Vec<String>),
    Down,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum Response {
    Status(FabricStatus),
    Links(Vec<LinkRow>),
    /// `programs` ran in the hosts; they continue without a network.
    Removed {
        namespaces: Vec<String>,
        programs: Vec<Program>,
        #[serde(default)]
        report: FabricReport,
    },
    /// Exit code 2.
    Refused(String),
    /// Exit code 1.
    Failed(String),
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct FabricReport {
    pub seconds: f64,
    pub links: Vec<LinkRow>,
    pub events: Vec<EventRow>,
    pub lost_frames: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct EventRow {
    pub at_s: f64,
    pub links: String,
    /// A change, or `disconnected` and `connected` of an interface's carrier or a cable's far end.
    pub change: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct FabricStatus {
    pub name: String,
    pub scenario: String,
    pub pid: u32,
    #[serde(default)]
    pub user: String,
    pub hosts: Vec<HostRow>,
    /// Frames that this machine did not forward, or not in time.
    pub lost_frames: u64,
    /// Frames are forwarded immediately, without emulated delay.
    pub undelayed: bool,
    /// The only switch on this machine; empty if it runs all.
    #[serde(default)]
    pub node: String,
    /// Cables to switches on other machines.
    #[serde(default)]
    pub cables: Vec<CableRow>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct HostRow {
    pub host: String,
    /// The first IPv4 and IPv6 address; empty while unknown.
    pub ipv4: String,
    pub ipv6: String,
    pub addresses: Vec<String>,
    /// The namespace or the interface of the host; the other is empty.
    pub namespace: String,
    pub interface: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct CableRow {
    /// The link in the outgoing direction.
    pub link: String,
    pub interface: String,
    pub state: String,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    pub pid: u32,
    pub host: String,
    pub command: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct LinkRow {
    pub link: String,
    pub mbps: f64,
    pub state: String,
    pub frames: u64,
    pub bytes: u64,
    pub queue_max_bytes: u64,
    pub marks: u64,
    pub trims: u64,
    pub drops_queue: u64,
    pub drops_down: u64,
    pub drops_silent: u64,
    pub drops_random: u64,
    pub drops_ttl: u64,
}

impl LinkRow {
    pub fn drops(&self) -> [(&'static str, u64); 5] {
        [
            ("queue", self.drops_queue),
            ("down", self.drops_down),
            ("silent", self.drops_silent),
            ("random", self.drops_random),
            ("ttl", self.drops_ttl),
        ]
    }
}

/// Read timeout. A change waits for the kernel, and removal for every namespace.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

pub fn check_root() -> Outcome {
    spray_experiments::switch::check_root().map_err(Failure::refused)
}

/// Returns the fabric called `name`, or the only one if this user set it up.
pub fn own_fabric(name: Option<&str>) -> Outcome<String> {
    let found = named_or_only(name)?;
    if name.is_none() {
        let FabricStatus { user, pid, scenario, .. } = status(&found)?;
        if belongs_to_other(&user, &user::login_name()) {
            return Err(Failure::refused(format!(
                "the only running fabric, `{found}`, belongs to the user {user} (process {pid}, {scenario}); to use it, give its name"
            )));
        }
    }
    Ok(found)
}

/// False if the user is unknown.
fn belongs_to_other(user: &str, own: &str) -> bool {
    !user.is_empty() && user != own
}

/// Returns the fabric called `name`, or the only one, of any user.
pub fn named_or_only(name: Option<&str>) -> Outcome<String> {
    check_root()?;
    let deployed = spray_experiments::switch::deployed();
    match (name, deployed.as_slice()) {
        (_, []) => Err(Failure::refused("no fabric is running; `spray up SCENARIO.toml` sets one up")),
        (Some(name), all) if all.iter().any(|other| other == name) => Ok(name.to_string()),
        (Some(name), all) => Err(Failure::refused(format!("no fabric `{name}`; running: {}", all.join(", ")))),
        (None, [only]) => Ok(only.clone()),
        (None, all) => Err(Failure::refused(format!("several fabrics are running; name one of {}", all.join(", ")))),
    }
}

pub fn send(name: &str, request: &Request) -> Outcome<Response> {
    let response = exchange(name, request).map_err(|error| {
        Failure::failed(format!("the fabric `{name}` does not respond: {error}; `spray clean` removes dead ones"))
    })?;
    match response {
        Response::Refused(why) => Err(Failure::refused(why)),
        Response::Failed(why) => Err(Failure::failed(why)),
        response => Ok(response),
    }
}

pub fn status(name: &str) -> Outcome<FabricStatus> {
    match send(name, &Request::Status)? {
        Response::Status(status) => Ok(status),
        other => Err(unexpected(&other)),
    }
}

pub fn unexpected(response: &Response) -> Failure {
    Failure::failed(format!("the process of the fabric is of another version: unexpected response {response:?}"))
}

fn exchange(name: &str, request: &Request) -> std::io::Result<Response> {
    let mut stream = UnixStream::connect(spray_experiments::switch::control_socket(name))?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    writeln!(stream, "{}", serde_json::to_string(request)?)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fabric_belongs_to_the_user_who_deployed_it() {
        assert!(belongs_to_other("alice", "bob"));
        assert!(!belongs_to_other("bob", "bob"));
        assert!(!belongs_to_other("", "bob"), "of a version without a user name");
    }
}
