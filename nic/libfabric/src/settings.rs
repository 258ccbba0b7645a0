//! Settings from environment variables.

use std::env;
use std::path::Path;

use spray_nic::BalancerKind;
use spray_nic::keys::{Keys, PrivateKey, PublicKey};

use crate::error::Errno;
use crate::log::{self, Variable};

pub const VARIABLES: [Variable; 7] = [
    Variable {
        name: c"interface",
        help: c"Network interface to use (default: the one with the source address, or on the route to the peer)",
    },
    Variable {
        name: c"balancer",
        help: c"Load balancer, by its name in `spray explain` (default: reps-plus)",
    },
    Variable { name: c"max_message", help: c"Maximum message length in bytes, the same on all hosts (default: 16 MiB)" },
    Variable { name: c"peers", help: c"Maximum number of concurrent peers (default: 64)" },
    Variable { name: c"key", help: c"File with a key of `spray keygen`, which encrypts and authenticates all frames" },
    Variable {
        name: c"trust",
        help: c"Public keys of the peers, separated by commas (default: the key of this host)",
    },
    Variable {
        name: c"insecure",
        help: c"1: run without a key; any host that reaches the interface may send, and access memory that is registered for peers",
    },
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub interface: Option<String>,
    pub balancer: Option<BalancerKind>,
    /// Maximum message length in bytes.
    pub max_message: usize,
    /// Maximum number of concurrent peers.
    pub peers: u32,
    /// File of this host's private key.
    pub key: Option<String>,
    /// Public keys of peers.
    pub trust: Vec<PublicKey>,
    /// Whether to run without a key.
    pub insecure: bool,
}

impl Settings {
    /// Reads the settings of this process. Logs invalid ones.
    pub fn read() -> Result<Self, Errno> {
        Self::of(|name| env::var(format!("FI_SPRAY_{name}")).ok()).map_err(|why| {
            log::warn(why);
            Errno::INVALID
        })
    }

    /// Returns `None` without encryption. Logs an unreadable or missing key.
    pub fn keys(&self) -> Result<Option<Keys>, Errno> {
        let denied = |why: &dyn ToString| {
            log::warn(why.to_string());
            Errno(libc::EACCES)
        };
        match &self.key {
            Some(file) => {
                let own = PrivateKey::read(Path::new(file)).map_err(|why| denied(&why))?;
                Ok(Some(Keys::new(own, self.trust.clone())))
            }
            None if self.insecure => Ok(None),
            None => Err(denied(
                &"no key: create one with `spray keygen FILE` and set FI_SPRAY_KEY=FILE on all hosts; or set FI_SPRAY_INSECURE=1: then any \
                host that reaches the interface may send, and access memory that is registered for peers",
            )),
        }
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let number = |name: &str, default: u64, most: u64| match variable(name) {
            None => Ok(default),
            Some(text) => match text.parse() {
                Ok(number) if (1..=most).contains(&number) => Ok(number),
                _ => Err(format!("FI_SPRAY_{name} is {text:?}; it must be an integer, 1 to {most}")),
            },
        };
        let balancer = variable("BALANCER").map(|name| {
            BalancerKind::named(&name).ok_or_else(|| format!("FI_SPRAY_BALANCER: unknown balancer {name:?}"))
        });
        let insecure = match variable("INSECURE").as_deref() {
            None | Some("" | "0") => false,
            Some("1") => true,
            Some(text) => return Err(format!("FI_SPRAY_INSECURE is {text:?}; it must be 0 or 1")),
        };
        let trust = variable("TRUST").unwrap_or_default();
        let trust = trust.split(',').filter(|key| !key.is_empty()).map(str::parse).collect::<Result<_, _>>();
        Ok(Self {
            interface: variable("INTERFACE").filter(|name| !name.is_empty()),
            balancer: balancer.transpose()?,
            max_message: number("MAX_MESSAGE", 16 << 20, 1 << 30)? as usize,
            peers: number("PEERS", 64, 32_768)? as u32,
            key: variable("KEY").filter(|file| !file.is_empty()),
            trust: trust.map_err(|error| format!("FI_SPRAY_TRUST: {error}"))?,
            insecure,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_parsed_or_rejected() {
        let of = |name: &'static str, value: &'static str| {
            Settings::of(move |variable| (variable == name).then(|| value.to_owned()))
        };
        let default = Settings {
            interface: None,
            balancer: None,
            max_message: 16 << 20,
            peers: 64,
            key: None,
            trust: Vec::new(),
            insecure: false,
        };
        assert_eq!(of("", ""), Ok(default.clone()));
        assert_eq!(of("INTERFACE", ""), Ok(default.clone()));
        assert_eq!(of("INTERFACE", "eth0"), Ok(Settings { interface: Some("eth0".into()), ..default.clone() }));
        assert_eq!(of("BALANCER", "ecmp"), Ok(Settings { balancer: Some(BalancerKind::Ecmp), ..default.clone() }));
        assert_eq!(of("PEERS", "1000"), Ok(Settings { peers: 1000, ..default.clone() }));
        assert_eq!(of("INSECURE", "1"), Ok(Settings { insecure: true, ..default }));
        for (name, value) in [
            ("BALANCER", "best"),
            ("PEERS", "0"),
            ("MAX_MESSAGE", "1g"),
            ("MAX_MESSAGE", "-1"),
            ("TRUST", "me"),
            ("INSECURE", "yes"),
        ] {
            assert!(of(name, value).unwrap_err().contains(name));
        }
    }

    #[test]
    fn without_a_key_explicit_consent_is_required() {
        let of = |insecure: &'static str| {
            Settings::of(move |variable| (variable == "INSECURE").then(|| insecure.to_owned())).unwrap().keys()
        };
        assert_eq!(of("0").err(), Some(Errno(libc::EACCES)));
        assert!(of("1").unwrap().is_none());
    }
}
