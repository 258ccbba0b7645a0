//! `spray up --host`: containers and network namespaces of others as hosts.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

use spray_experiments::switch::Lent;
use spray_tools::failure::{Failure, Outcome};

/// A host, and where it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    host: String,
    whose: Whose,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Whose {
    /// The container of this name or number.
    Container(String),
    /// The namespace of this name, as for `ip netns`, or at this path.
    Namespace(String),
}

/// What knows containers.
const ENGINES: [&str; 2] = ["podman", "docker"];

impl FromStr for Guest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not HOST=container:NAME, HOST=NETNS or HOST=/PATH, as in h0=container:web");
        let (host, place) = text.split_once('=').ok_or_else(wrong)?;
        let whose = match place.strip_prefix("container:") {
            Some(name) => Whose::Container(name.into()),
            None => Whose::Namespace(place.into()),
        };
        let (Whose::Container(name) | Whose::Namespace(name)) = &whose;
        if host.is_empty() || name.is_empty() || name.starts_with('-') {
            return Err(wrong());
        }
        Ok(Self { host: host.into(), whose })
    }
}

/// Finds their namespaces.
pub fn find(guests: &[Guest]) -> Outcome<Vec<Lent>> {
    let twice = (1..guests.len()).find(|&at| guests[..at].iter().any(|guest| guest.host == guests[at].host));
    if let Some(at) = twice {
        return Err(Failure::refused(format!("--host {} comes twice", guests[at].host)));
    }
    let find = |Guest { host, whose }: &Guest| {
        let namespace = match whose {
            // A path that begins at the root stands for itself.
            Whose::Namespace(name) => Path::new("/run/netns").join(name),
            Whose::Container(name) => of_container(name)?,
        };
        Ok(Lent { host: host.clone(), namespace })
    };
    guests.iter().map(find).collect()
}

/// The namespace of a container that runs.
fn of_container(name: &str) -> Outcome<PathBuf> {
    let pid = ENGINES.iter().find_map(|engine| {
        let ask = ["inspect", "--format", "{{.State.Pid}}", name];
        let output = Command::new(engine).args(ask).stderr(Stdio::null()).output().ok()?;
        String::from_utf8_lossy(&output.stdout).trim().parse::<u32>().ok().filter(|_| output.status.success())
    });
    match pid {
        Some(0) => Err(Failure::refused(format!("the container {name} does not run: start it first"))),
        Some(pid) => Ok(format!("/proc/{pid}/ns/net").into()),
        None => Err(Failure::refused(format!(
            "there is no container {name}: neither podman nor docker knows one of this name (`podman ps`, `docker ps`)"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_hosts_are_read() {
        let read = |text: &str| text.parse::<Guest>();
        let guest = |host: &str, whose| Ok(Guest { host: host.into(), whose });
        assert_eq!(read("h0=container:web"), guest("h0", Whose::Container("web".into())));
        assert_eq!(read("h1=blue"), guest("h1", Whose::Namespace("blue".into())));
        for text in ["h0", "=blue", "h0=", "h0=container:", "h0=container:--all"] {
            assert!(read(text).unwrap_err().contains("h0=container:web"), "{text}");
        }
        let found = find(&[read("h1=blue").unwrap(), read("h0=/proc/7/ns/net").unwrap()]).ok().unwrap();
        let places: Vec<_> = found.iter().map(|lent| lent.namespace.to_str().unwrap()).collect();
        assert_eq!(places, ["/run/netns/blue", "/proc/7/ns/net"]);
        assert!(find(&[read("h1=blue").unwrap(), read("h1=red").unwrap()]).is_err());
    }
}
