//! Features of an interface, by the kernel's names.

use std::io;

use super::{Ethtool, Request, text_of};

/// A feature of an interface, such as `rx-gro-hw`. `ethtool -k` lists some by legacy names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Feature {
    /// Name in the kernel.
    pub name: String,
    /// Whether it is on.
    pub on: bool,
    /// Whether it cannot be changed.
    pub fixed: bool,
}

impl Feature {
    /// Flow steering rules.
    pub const NTUPLE: &str = "rx-ntuple-filter";
}

const FEATURES: u32 = 4;
/// Bytes of a name, then words.
const NAME: usize = 32;
const NAME_WORDS: usize = NAME / 4;
const GET: u32 = 0x3a;
/// Words of a block of 32 features: changeable, wanted, active, and never changeable.
const BLOCK: usize = 4;

impl Ethtool {
    /// Returns its features.
    pub fn features(&self) -> io::Result<Vec<Feature>> {
        let names = self.strings(FEATURES)?;
        let blocks = names.len().div_ceil(32);
        let mut words = vec![0; 2 + BLOCK * blocks];
        words[1] = blocks as u32;
        self.ioctl_words(GET, &mut words)?;
        let bit = |at: usize, part: usize| words[2 + at / 32 * BLOCK + part] >> (at % 32) & 1 == 1;
        let of = |(at, name)| Feature { name, on: bit(at, 2), fixed: !bit(at, 0) || bit(at, 3) };
        Ok(names.into_iter().enumerate().filter(|(_, name)| !name.is_empty()).map(of).collect())
    }

    /// Returns whether a feature is on; `None` if it is unknown or fixed to off.
    pub fn feature(&self, name: &str) -> io::Result<Option<bool>> {
        let features = self.features()?;
        let found = features.iter().find(|feature| feature.name == name);
        Ok(found.filter(|feature| feature.on || !feature.fixed).map(|feature| feature.on))
    }

    /// Turns a feature on or off. Some drivers reset the link.
    ///
    /// # Errors
    /// The feature is unknown, permissions are missing, or the driver refuses.
    pub fn set_feature(&self, name: &str, on: bool) -> io::Result<()> {
        let Request(mut words) = self.feature_request(name, on)?;
        self.ioctl_words(words[0], &mut words)?;
        let now = self.features()?.iter().find(|feature| feature.name == name).is_some_and(|feature| feature.on);
        if now == on { Ok(()) } else { Err(io::Error::other(format!("the driver refuses to change {name}"))) }
    }

    /// Returns the request that turns a feature on or off, or an error if the feature is unknown.
    pub(crate) fn feature_request(&self, name: &str, on: bool) -> io::Result<Request> {
        const SET: u32 = 0x3b;
        let names = self.strings(FEATURES)?;
        let at = names.iter().position(|known| known == name);
        let at = at.ok_or_else(|| io::Error::other(format!("the kernel has no feature {name}")))?;
        let blocks = names.len().div_ceil(32);
        let mut words = vec![0; 2 + 2 * blocks];
        (words[0], words[1]) = (SET, blocks as u32);
        words[2 + at / 32 * 2] = 1 << (at % 32);
        words[3 + at / 32 * 2] = u32::from(on) << (at % 32);
        Ok(Request::of(&words))
    }

    /// Returns the driver's private flags, and whether each is on.
    pub fn private_flags(&self) -> io::Result<Vec<(String, bool)>> {
        const PRIVATE_FLAGS: u32 = 2;
        const COMMAND: u32 = 0x27;
        let names = self.strings(PRIVATE_FLAGS)?;
        let flags = self.get(COMMAND)?[1];
        Ok(names.into_iter().enumerate().map(|(at, name)| (name, flags >> (at % 32) & 1 == 1)).collect())
    }

    fn strings(&self, set: u32) -> io::Result<Vec<String>> {
        const COMMAND: u32 = 0x1b;
        let count = self.count_of(set)?;
        let mut words = vec![0; 3 + NAME_WORDS * count];
        (words[1], words[2]) = (set, count as u32);
        self.ioctl_words(COMMAND, &mut words)?;
        Ok(words[3..].chunks_exact(NAME_WORDS).map(text_of).collect())
    }

    /// Returns the length of a string set. The answer's mask omits sets that the driver lacks.
    fn count_of(&self, set: u32) -> io::Result<usize> {
        const COMMAND: u32 = 0x37;
        let mut words = [0; super::WORDS];
        let mask = (1_u64 << set).to_ne_bytes();
        (words[2], words[3]) = (word(&mask[..4]), word(&mask[4..]));
        self.ioctl_words(COMMAND, &mut words)?;
        if (words[2], words[3]) == (0, 0) {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        Ok(words[4] as usize)
    }
}

pub(super) fn word(bytes: &[u8]) -> u32 {
    u32::from_ne_bytes(bytes.try_into().expect("four bytes"))
}
