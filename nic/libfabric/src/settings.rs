//! What environment variables say.

use std::env;
use std::path::Path;

use spray_nic::BalancerKind;
use spray_nic::keys::{Keys, PrivateKey, PublicKey};

use crate::error::Errno;
use crate::say::{self, Variable};

/// All variables.
pub const VARIABLES: [Variable; 6] = [
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
    Variable { name: c"key", help: c"File with a key of `spray keygen`; all frames are sealed then (default: none)" },
    Variable {
        name: c"trust",
        help: c"Public keys of the peers, with commas between; by default they have the same key as this side",
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
    /// When the key cannot be read, which is told.
    pub fn keys(&self) -> Result<Option<Keys>, Errno> {
        let Some(file) = &self.key else { return Ok(None) };
        let own = PrivateKey::read(Path::new(file)).map_err(|why| {
            say::warn(why);
            Errno(libc::EACCES)
        });
        own.map(|own| Some(Keys::new(own, self.trust.clone())))
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
        let trust = variable("TRUST").unwrap_or_default();
        let trust = trust.split(',').filter(|key| !key.is_empty()).map(str::parse).collect::<Result<_, _>>();
        Ok(Self {
            interface: variable("INTERFACE").filter(|name| !name.is_empty()),
            balancer: balancer.transpose()?,
            max_message: number("MAX_MESSAGE", 16 << 20, 1 << 30)? as usize,
            peers: number("PEERS", 64, 32_768)? as u32,
            key: variable("KEY").filter(|file| !file.is_empty()),
            trust: trust.map_err(|error| format!("FI_SPRAY_TRUST: {error}"))?,
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
        };
        assert_eq!(of("", ""), Ok(default.clone()));
        assert_eq!(of("INTERFACE", ""), Ok(default.clone()));
        assert_eq!(of("INTERFACE", "eth0"), Ok(Settings { interface: Some("eth0".into()), ..default.clone() }));
        assert_eq!(of("BALANCER", "ecmp"), Ok(Settings { balancer: Some(BalancerKind::Ecmp), ..default.clone() }));
        assert_eq!(of("PEERS", "1000"), Ok(Settings { peers: 1000, ..default }));
        for (name, value) in
            [("BALANCER", "best"), ("PEERS", "0"), ("MAX_MESSAGE", "1g"), ("MAX_MESSAGE", "-1"), ("TRUST", "me")]
        {
            assert!(of(name, value).unwrap_err().contains(name));
        }
    }
}
