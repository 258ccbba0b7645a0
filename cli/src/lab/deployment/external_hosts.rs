//! `spray up --host`: existing containers and network namespaces as hosts.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

use spray_experiments::switch::ExternalNetns;
use spray_tools::failure::{Failure, Outcome};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalHost {
    host: String,
    location: Location,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Location {
    /// A container, by name or ID.
    Container(String),
    /// A namespace, by name as for `ip netns`, or by path.
    Namespace(String),
}

const ENGINES: [&str; 2] = ["podman", "docker"];

impl FromStr for ExternalHost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not HOST=container:NAME, HOST=NETNS or HOST=/PATH, as in h0=container:web");
        let (host, place) = text.split_once('=').ok_or_else(wrong)?;
        let location = match place.strip_prefix("container:") {
            Some(name) => Location::Container(name.into()),
            None => Location::Namespace(place.into()),
        };
        let (Location::Container(name) | Location::Namespace(name)) = &location;
        if host.is_empty() || name.is_empty() || name.starts_with('-') {
            return Err(wrong());
        }
        Ok(Self { host: host.into(), location })
    }
}

pub fn find(hosts: &[ExternalHost]) -> Outcome<Vec<ExternalNetns>> {
    let twice = (1..hosts.len()).find(|&at| hosts[..at].iter().any(|host| host.host == hosts[at].host));
    if let Some(at) = twice {
        return Err(Failure::refused(format!("--host {} is given twice", hosts[at].host)));
    }
    let find = |ExternalHost { host, location }: &ExternalHost| {
        let namespace = match location {
            // `join` keeps an absolute path.
            Location::Namespace(name) => Path::new("/run/netns").join(name),
            Location::Container(name) => container_namespace(name)?,
        };
        Ok(ExternalNetns { host: host.clone(), namespace })
    };
    hosts.iter().map(find).collect()
}

fn container_namespace(name: &str) -> Outcome<PathBuf> {
    let pid = ENGINES.iter().find_map(|engine| {
        let arguments = ["inspect", "--format", "{{.State.Pid}}", name];
        let output = Command::new(engine).args(arguments).stderr(Stdio::null()).output().ok()?;
        String::from_utf8_lossy(&output.stdout).trim().parse::<u32>().ok().filter(|_| output.status.success())
    });
    match pid {
        Some(0) => Err(Failure::refused(format!("the container {name} is not running: start it first"))),
        Some(pid) => Ok(format!("/proc/{pid}/ns/net").into()),
        None => Err(Failure::refused(format!(
            "there is no container {name} in podman or docker (`podman ps`, `docker ps`)"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_of_hosts_are_parsed() {
        let read = |text: &str| text.parse::<ExternalHost>();
        let host = |host: &str, location| Ok(ExternalHost { host: host.into(), location });
        assert_eq!(read("h0=container:web"), host("h0", Location::Container("web".into())));
        assert_eq!(read("h1=blue"), host("h1", Location::Namespace("blue".into())));
        for text in ["h0", "=blue", "h0=", "h0=container:", "h0=container:--all"] {
            assert!(read(text).unwrap_err().contains("h0=container:web"), "{text}");
        }
        let found = find(&[read("h1=blue").unwrap(), read("h0=/proc/7/ns/net").unwrap()]).ok().unwrap();
        let places: Vec<_> = found.iter().map(|external| external.namespace.to_str().unwrap()).collect();
        assert_eq!(places, ["/run/netns/blue", "/proc/7/ns/net"]);
        assert!(find(&[read("h1=blue").unwrap(), read("h1=red").unwrap()]).is_err());
    }
}
