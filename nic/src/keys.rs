//! Static keys, by which endpoints authenticate each other.
//!
//! The holder of a key may connect to endpoints that list its public half. Endpoints that share one
//! key need no list.

use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use subtle::ConstantTimeEq;
use thiserror::Error;
use zeroize::Zeroizing;

use crate::x25519::X25519;

const BYTES: usize = 32;
/// Size limit of a key file: the key and comments.
const MOST_FILE_BYTES: u64 = 4096;

/// A private key (X25519). Clones share one allocation, which is zeroed with the last one;
/// comparisons take constant time.
#[derive(Clone)]
pub struct PrivateKey(Arc<Zeroizing<[u8; BYTES]>>);

/// A public key, which identifies the holder of the private one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; BYTES]);

/// The text is not a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a key is 64 hexadecimal digits")]
pub struct KeyError;

/// Why a key file cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// The file cannot be read.
    #[error("cannot read the key {}: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Other users can read the file.
    #[error("others can read the key {} (mode {mode:03o}): `chmod 600 {}`", path.display(), path.display())]
    Permissions {
        /// Path of the file.
        path: PathBuf,
        /// Permissions of the file.
        mode: u32,
    },
    /// Another user owns the file, and can read and replace the key.
    #[error("the key {} belongs to user {owner}: `chown {user} {}`", path.display(), path.display())]
    Owner {
        /// Path of the file.
        path: PathBuf,
        /// Owner of the file.
        owner: u32,
        /// Effective user of this process.
        user: u32,
    },
    /// The file contains something else.
    #[error("{} is not a key file: `spray keygen FILE` creates one", .0.display())]
    NotAKey(PathBuf),
}

impl PrivateKey {
    /// Reads a key file of `spray keygen`. It must be readable by its owner only: this user, root,
    /// or the user behind `sudo`.
    ///
    /// # Errors
    /// The cause, and how to resolve it.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        let cannot = |source| KeyFileError::Read { path: path.into(), source };
        let file = File::open(path).map_err(cannot)?;
        let metadata = file.metadata().map_err(cannot)?;
        let (owner, user) = (metadata.uid(), crate::sys::user());
        if ![0, user].contains(&owner) && (user != 0 || sudo_user() != Some(owner)) {
            return Err(KeyFileError::Owner { path: path.into(), owner, user });
        }
        let mode = metadata.mode() & 0o777;
        let others = if is_credential(path, std::env::var_os("CREDENTIALS_DIRECTORY")) { 0o037 } else { 0o077 };
        if mode & others != 0 {
            return Err(KeyFileError::Permissions { path: path.into(), mode });
        }
        // Allocated at full size: growing would leave copies behind.
        let mut text = Zeroizing::new(String::with_capacity(MOST_FILE_BYTES as usize + 1));
        file.take(MOST_FILE_BYTES).read_to_string(&mut text).map_err(cannot)?;
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let key = lines.next().and_then(|line| line.parse().ok()).filter(|_| lines.next().is_none());
        key.ok_or_else(|| KeyFileError::NotAKey(path.into()))
    }

    /// Generates a key from the operating system's random numbers.
    ///
    /// # Errors
    /// There are none.
    pub fn generate() -> Result<Self, getrandom::Error> {
        Self::written(|bytes| getrandom::fill(bytes))
    }

    /// Creates a key that `write` writes in place, without copies.
    fn written<E>(write: impl FnOnce(&mut [u8; BYTES]) -> Result<(), E>) -> Result<Self, E> {
        let mut bytes = Arc::new(Zeroizing::new([0; BYTES]));
        write(Arc::get_mut(&mut bytes).expect("not shared yet"))?;
        Ok(Self(bytes))
    }

    /// Returns the public key.
    pub fn public(&self) -> PublicKey {
        PublicKey(X25519::new(&self.0).public())
    }

    /// Returns the shared secret with a peer, or `None` if the peer's key has low order.
    fn shared(&self, peer: &PublicKey) -> Option<Zeroizing<[u8; BYTES]>> {
        let shared = X25519::shared(&self.0, peer.0);
        (*shared != [0; BYTES]).then_some(shared)
    }

    /// Returns the key as 64 hexadecimal digits.
    pub fn reveal(&self) -> Zeroizing<String> {
        Zeroizing::new(hex(self.bytes()))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_slice()
    }
}

/// Returns whether a file is in this service's credentials folder: systemd grants the user access
/// by an ACL, for which the group's mode bits are the mask.
fn is_credential(path: &Path, folder: Option<OsString>) -> bool {
    folder.is_some_and(|folder| path.parent() == Some(Path::new(&folder)))
}

fn sudo_user() -> Option<u32> {
    std::env::var("SUDO_UID").ok()?.parse().ok()
}

impl PartialEq for PrivateKey {
    fn eq(&self, other: &Self) -> bool {
        self.bytes().ct_eq(other.bytes()).into()
    }
}

impl Eq for PrivateKey {}

impl PublicKey {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl FromStr for PrivateKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::written(|bytes| unhex(text, bytes))
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let mut bytes = [0; BYTES];
        unhex(text, &mut bytes).map(|()| Self(bytes))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

/// Does not reveal the key.
impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey(of {})", self.public())
    }
}

/// A peer's key and the static shared secret, which is `None` for an unusable key of low order.
pub(crate) type Shared = (PublicKey, Option<Zeroizing<[u8; BYTES]>>);

/// An endpoint's private key, and the public keys of its peers.
#[derive(Debug, Clone)]
pub struct Keys {
    pub(crate) own: PrivateKey,
    /// Keys valid from any address that is not in `at`.
    anywhere: Vec<PublicKey>,
    at: Vec<(IpAddr, PublicKey)>,
    pre_shared: Option<PrivateKey>,
    /// Computed once for all clones.
    secrets: Arc<OnceLock<Vec<Shared>>>,
}

impl Keys {
    /// Creates the keys of an endpoint that holds `own`, accepts connections of the holders of
    /// `peers`, and connects to that of the first. If empty, the peers hold the same key.
    #[must_use]
    pub fn new(own: PrivateKey, mut peers: Vec<PublicKey>) -> Self {
        if peers.is_empty() {
            peers.push(own.public());
        }
        Self { own, anywhere: peers, at: Vec::new(), pre_shared: None, secrets: Arc::default() }
    }

    /// Binds a key to `address`: no other key is valid there, nor this one elsewhere.
    //= docs/specs/endpoint.md#END-33 a key for an address
    #[must_use]
    pub fn with_peer_at(mut self, address: IpAddr, key: PublicKey) -> Self {
        self.anywhere.retain(|other| *other != key);
        self.at.push((address, key));
        self.secrets = Arc::default();
        self
    }

    /// Requires this secret of peers too, which protects recorded traffic if X25519 is broken.
    //= docs/specs/endpoint.md#END-33 a second secret of both sides
    #[must_use]
    pub fn with_pre_shared(mut self, secret: PrivateKey) -> Self {
        self.pre_shared = Some(secret);
        self
    }

    /// Returns the pre-shared secret, or zeros.
    pub(crate) fn pre_shared(&self) -> &[u8; BYTES] {
        self.pre_shared.as_ref().map_or(&[0; BYTES], |secret| &secret.0)
    }

    /// Returns the key of the peer at an address to connect to.
    pub(crate) fn of(&self, address: IpAddr) -> Option<&PublicKey> {
        let bound = self.at.iter().find(|(of, _)| *of == address).map(|(_, key)| key);
        bound.or_else(|| self.anywhere.first())
    }

    pub(crate) fn trusts(&self, address: IpAddr, key: &PublicKey) -> bool {
        let mut bound = self.at.iter().filter(|(of, _)| *of == address).map(|(_, key)| key);
        match bound.clone().next() {
            Some(_) => bound.any(|bound| bound == key),
            None => self.anywhere.contains(key),
        }
    }

    /// Returns all peers' keys with the static shared secrets, computed by the first call.
    pub(crate) fn secrets(&self) -> &[Shared] {
        let peers = || self.anywhere.iter().chain(self.at.iter().map(|(_, key)| key));
        self.secrets.get_or_init(|| peers().map(|peer| (*peer, self.own.shared(peer))).collect())
    }

    /// Returns a peer's key of low order, if there is one.
    pub(crate) fn unusable(&self) -> Option<PublicKey> {
        self.secrets().iter().find(|(_, secret)| secret.is_none()).map(|(peer, _)| *peer)
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    bytes.iter().for_each(|byte| write!(text, "{byte:02x}").expect("a string takes all"));
    text
}

fn unhex(text: &str, bytes: &mut [u8; BYTES]) -> Result<(), KeyError> {
    let digits = text.as_bytes();
    if digits.len() != 2 * BYTES || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(KeyError);
    }
    let digit = |at: usize| (digits[at] as char).to_digit(16).unwrap_or_default() as u8;
    bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = digit(2 * at) << 4 | digit(2 * at + 1));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use spray_test_support::Folder;

    use super::*;

    /// A key pair from OpenSSL.
    #[test]
    fn the_public_key_agrees_with_openssl() {
        let key: PrivateKey = "1810d6a504251c89b858dc2dc859ace9169f5b60cd9e36c9aa8b4d76cb02f243".parse().unwrap();
        let public = "3860838b6935ac2120ee847b4a2e6cd0ecae8f5c3e33c7de0734a4522a029f5a";
        assert_eq!(key.public().to_string(), public);
    }

    #[test]
    fn keys_round_trip_as_text() {
        let key = PrivateKey::generate().unwrap();
        assert_eq!(key.reveal().parse(), Ok(key.clone()));
        assert_eq!(key.public().to_string().parse(), Ok(key.public()));
        assert_ne!(key, PrivateKey::generate().unwrap());
        for bad in ["", "0", &"g".repeat(64), &"0".repeat(63), &"ä".repeat(32)] {
            assert_eq!(bad.parse::<PublicKey>(), Err(KeyError), "{bad}");
        }
    }

    #[test]
    fn a_point_of_small_order_is_not_a_key() {
        let own = PrivateKey::generate().unwrap();
        let one = format!("01{}", "0".repeat(62));
        for bad in ["0".repeat(64), one] {
            let bad: PublicKey = bad.parse().unwrap();
            assert_eq!(Keys::new(own.clone(), vec![own.public(), bad]).unusable(), Some(bad));
        }
        assert_eq!(Keys::new(own, vec![]).unusable(), None);
    }

    //= docs/specs/endpoint.md#END-33 a key for an address
    #[test]
    fn a_key_of_an_address_is_valid_only_there() {
        let [own, one, two, any] = [(); 4].map(|()| PrivateKey::generate().unwrap());
        let at = |host: u8| IpAddr::from([10, 0, 0, host]);
        let keys = Keys::new(own, vec![any.public(), one.public()]);
        let keys = keys.with_peer_at(at(1), one.public()).with_peer_at(at(2), two.public());
        let trusted = |key: &PrivateKey| [1, 2, 3].map(|host| keys.trusts(at(host), &key.public()));
        assert_eq!(trusted(&one), [true, false, false]);
        assert_eq!(trusted(&two), [false, true, false]);
        assert_eq!(trusted(&any), [false, false, true]);
        assert_eq!([1, 2, 3].map(|host| keys.of(at(host)).copied()), [&one, &two, &any].map(|key| Some(key.public())));
        let alone = Keys::new(one.clone(), vec![two.public()]).with_peer_at(at(2), two.public());
        assert_eq!((alone.of(at(1)), alone.trusts(at(1), &two.public())), (None, false), "nobody is known there");
    }

    #[test]
    fn a_private_key_is_never_printed() {
        let key = PrivateKey::generate().unwrap();
        assert!(!format!("{key:?} {:?}", Keys::new(key.clone(), vec![])).contains(key.reveal().as_str()));
    }

    #[test]
    fn a_key_of_another_user_is_refused() {
        if !spray_test_support::has_root() {
            return;
        }
        let folder = Folder::new();
        let file = folder.file("key", "5".repeat(64));
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        assert!(PrivateKey::read(Path::new(&file)).is_ok());
        std::os::unix::fs::chown(&file, Some(54_321), None).unwrap();
        let error = PrivateKey::read(Path::new(&file)).unwrap_err().to_string();
        assert!(error.contains("belongs to user 54321: `chown 0 ") && error.contains(&file), "{error}");
    }

    #[test]
    fn a_credential_of_a_service_may_have_an_access_list() {
        let is = |path: &str, folder: Option<&str>| is_credential(Path::new(path), folder.map(Into::into));
        assert!(is("/run/credentials/a.service/key", Some("/run/credentials/a.service")));
        assert!(!is("/run/credentials/b.service/key", Some("/run/credentials/a.service")));
        assert!(!is("/run/credentials/a.service/key", None) && !is("key", Some("/run")));
    }

    #[test]
    fn files_without_a_key_are_refused() {
        let folder = Folder::new();
        let hex = "5".repeat(64);
        for (text, mode, expected) in [
            (hex.clone(), 0o640, "chmod 600"),
            (hex.clone(), 0o604, "others can read"),
            (String::new(), 0o600, "is not a key file"),
            (format!("{hex}\n{hex}"), 0o600, "is not a key file"),
            (format!("{hex}5"), 0o600, "is not a key file"),
            (format!("#{}\n{hex}", "x".repeat(5000)), 0o600, "is not a key file"),
        ] {
            let file = folder.file("key", &text);
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            let error = PrivateKey::read(Path::new(&file)).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains(&file), "{error}");
        }
        assert!(PrivateKey::read(Path::new("/nowhere/key")).unwrap_err().to_string().contains("/nowhere/key"));
    }
}
