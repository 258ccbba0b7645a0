//! What the commands ask the process that keeps a fabric, and what it answers: a line of JSON each, over its socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spray_tools::failure::{Failure, Outcome};

use super::user;

/// A question.
#[derive(Debug, Serialize, Deserialize)]
pub enum Question {
    /// What is up?
    Show,
    /// What have these links carried?
    Links(Option<String>),
    /// Change these links, as on the command line.
    Change(String, Vec<String>),
    /// Remove everything, and end.
    Down,
}

/// An answer.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    Shown(Shown),
    Links(Vec<Row>),
    /// What was removed, and programs that were in its hosts: they go on without a network.
    Removed {
        namespaces: Vec<String>,
        programs: Vec<Program>,
        #[serde(default)]
        report: Report,
    },
    /// The question was wrong.
    Refused(String),
    /// The machine refuses.
    Failed(String),
}

/// The time that a fabric was up.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Report {
    pub seconds: f64,
    pub links: Vec<Row>,
    pub events: Vec<EventRow>,
    pub lost_frames: u64,
}

/// What happened to links.
#[derive(Debug, Serialize, Deserialize)]
pub struct EventRow {
    /// Since it is up.
    pub at_s: f64,
    pub links: String,
    /// The change, as on the command line; `lost` and `found` of an interface's carrier, or of the box at the cable's other end.
    pub what: String,
}

/// A deployed fabric.
#[derive(Debug, Serialize, Deserialize)]
pub struct Shown {
    pub name: String,
    pub scenario: String,
    pub pid: u32,
    /// The user who set it up.
    #[serde(default)]
    pub user: String,
    pub hosts: Vec<HostRow>,
    /// Frames that the machine did not send on, or not in time.
    pub lost_frames: u64,
    /// Frames are sent on at once, and not held.
    pub at_once: bool,
    /// The only switch that this machine runs; empty: it runs all.
    #[serde(default)]
    pub node: String,
    /// Its cables to others, which other machines run.
    #[serde(default)]
    pub cables: Vec<CableRow>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct HostRow {
    pub host: String,
    /// Its first address of either kind; empty as long as none is known.
    pub ipv4: String,
    pub ipv6: String,
    pub addresses: Vec<String>,
    /// Its namespace, or the interface that it is behind; the other is empty.
    pub namespace: String,
    pub interface: String,
}

/// A cable to another machine that runs a switch.
#[derive(Debug, Serialize, Deserialize)]
pub struct CableRow {
    /// The link that leaves by it.
    pub link: String,
    pub interface: String,
    /// What is at its other end.
    pub state: String,
}

/// A program in a host.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    pub pid: u32,
    pub host: String,
    /// Its command line.
    pub command: String,
}

/// A link, in one direction.
#[derive(Debug, Serialize, Deserialize)]
pub struct Row {
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

impl Row {
    /// The frames that it lost, by cause.
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

/// A change waits for the kernel, and an end for every namespace.
const PATIENCE: Duration = Duration::from_secs(60);

/// Checks that the user may ask: the socket is root's.
pub fn check_root() -> Outcome {
    spray_experiments::switch::check_root().map_err(Failure::refused)
}

/// The fabric that is meant: the one called `name`, or the only one if this user has set it up.
pub fn meant(name: Option<&str>) -> Outcome<String> {
    let found = named_or_only(name)?;
    if name.is_none() {
        let Shown { user, pid, scenario, .. } = shown(&found)?;
        if is_anothers(&user, &user::own()) {
            return Err(Failure::refused(format!(
                "the only fabric that is up, `{found}`, is of the user {user} (process {pid}, of {scenario}); give its name if it is meant"
            )));
        }
    }
    Ok(found)
}

/// Whether a fabric that `user` has set up is not that of `own`; nobody knows of one without a user.
fn is_anothers(user: &str, own: &str) -> bool {
    !user.is_empty() && user != own
}

/// The fabric called `name`, or the only one, of any user.
pub fn named_or_only(name: Option<&str>) -> Outcome<String> {
    check_root()?;
    let deployed = spray_experiments::switch::deployed();
    match (name, deployed.as_slice()) {
        (_, []) => Err(Failure::refused("no fabric is up; `spray up SCENARIO.toml` sets one up")),
        (Some(name), all) if all.iter().any(|other| other == name) => Ok(name.to_string()),
        (Some(name), all) => Err(Failure::refused(format!("there is no fabric `{name}`; {} is up", all.join(", ")))),
        (None, [only]) => Ok(only.clone()),
        (None, all) => Err(Failure::refused(format!("several fabrics are up; say which: {}", all.join(", ")))),
    }
}

/// Asks the fabric called `name`.
pub fn ask(name: &str, question: &Question) -> Outcome<Answer> {
    let answer = exchange(name, question).map_err(|error| {
        Failure::failed(format!("the fabric `{name}` does not answer: {error}; `spray clean` removes dead ones"))
    })?;
    match answer {
        Answer::Refused(why) => Err(Failure::refused(why)),
        Answer::Failed(why) => Err(Failure::failed(why)),
        answer => Ok(answer),
    }
}

/// What is up by that name.
pub fn shown(name: &str) -> Outcome<Shown> {
    match ask(name, &Question::Show)? {
        Answer::Shown(shown) => Ok(shown),
        other => Err(strange(&other)),
    }
}

/// The failure of an answer to another question.
pub fn strange(answer: &Answer) -> Failure {
    Failure::failed(format!("the process that keeps the fabric is of another version: it answers {answer:?}"))
}

fn exchange(name: &str, question: &Question) -> std::io::Result<Answer> {
    let mut stream = UnixStream::connect(spray_experiments::switch::control(name))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    writeln!(stream, "{}", serde_json::to_string(question)?)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fabric_is_anothers_if_another_user_has_set_it_up() {
        assert!(is_anothers("alice", "bob"));
        assert!(!is_anothers("bob", "bob"));
        assert!(!is_anothers("", "bob"), "of a version that did not say");
    }
}
