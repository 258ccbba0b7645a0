//! What environment variables say.

use std::env;
use std::path::Path;

use spray_nic::BalancerKind;
use spray_nic::keys::{Keys, PrivateKey, PublicKey};

use crate::error::Errno;
use crate::say::{self, Variable};

/// All variables.
pub const VARIABLES: [Variable; 7] = [
    Variable {
        name: c"interface",
        help: c"Network interface to take over (default: the one that has the source address, or leads to the peer)",
    },
    Variable {
        name: c"balancer",
        help: c"How packets choose paths, by a name of `spray explain` (default: reps-plus)",
    },
    Variable { name: c"max_message", help: c"Longest message in bytes, the same on all hosts (default: 16 MiB)" },
    Variable { name: c"peers", help: c"Most peers at a time (default: 64)" },
    Variable { name: c"key", help: c"File with a key of `spray keygen`, by which all frames are sealed" },
    Variable {
        name: c"trust",
        help: c"Public keys of the peers, with commas between; by default they have the same key as this side",
    },
    Variable {
        name: c"insecure",
        help: c"1: no key. Any host that reaches the interface may send, and read and write memory that is registered for peers",
    },
];

/// The settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The interface to take over.
    pub interface: Option<String>,
    /// How packets choose paths.
    pub balancer: Option<BalancerKind>,
    /// Longest message in bytes.
    pub max_message: usize,
    /// Most peers at a time.
    pub peers: u32,
    /// The file of this side's key.
    pub key: Option<String>,
    /// The keys of others.
    pub trust: Vec<PublicKey>,
    /// Without a key, any host may send.
    pub insecure: bool,
}

impl Settings {
    /// The settings of this process.
    ///
    /// # Errors
    /// When one makes no sense, which is told.
    pub fn read() -> Result<Self, Errno> {
        Self::of(|name| env::var(format!("FI_SPRAY_{name}")).ok()).map_err(|why| {
            say::warn(why);
            Errno::INVALID
        })
    }

    /// This side's key and those of its peers; `None` for no keys.
    ///
    /// # Errors
    /// When the key cannot be read, or there is none and nothing says that none is needed. The log says which.
    pub fn keys(&self) -> Result<Option<Keys>, Errno> {
        let denied = |why: &dyn ToString| {
            say::warn(why.to_string());
            Errno(libc::EACCES)
        };
        match &self.key {
            Some(file) => {
                let own = PrivateKey::read(Path::new(file)).map_err(|why| denied(&why))?;
                Ok(Some(Keys::new(own, self.trust.clone())))
            }
            None if self.insecure => Ok(None),
            None => Err(denied(
                &"no key: make one with `spray keygen FILE` and set FI_SPRAY_KEY=FILE on all hosts; or set FI_SPRAY_INSECURE=1: then any \
                  host that reaches the interface may send, and read and write memory that is registered for peers",
            )),
        }
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let number = |name: &str, default: u64, most: u64| match variable(name) {
            None => Ok(default),
            Some(text) => match text.parse() {
                Ok(number) if (1..=most).contains(&number) => Ok(number),
                _ => Err(format!("FI_SPRAY_{name} is {text:?}; it must be a number from 1 to {most}")),
            },
        };
        let balancer = variable("BALANCER").map(|name| {
            BalancerKind::named(&name).ok_or_else(|| format!("FI_SPRAY_BALANCER: there is no balancer {name:?}"))
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
    fn variables_are_read_or_refused() {
        let of = |name: &'static str, value: &'static str| {
            Settings::of(move |asked| (asked == name).then(|| value.to_owned()))
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
    fn without_a_key_it_takes_consent() {
        let of = |insecure: &'static str| {
            Settings::of(move |asked| (asked == "INSECURE").then(|| insecure.to_owned())).unwrap().keys()
        };
        assert_eq!(of("0").err(), Some(Errno(libc::EACCES)));
        assert!(of("1").unwrap().is_none());
    }
}
