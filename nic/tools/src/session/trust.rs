//! Keys of a command and its peers.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use spray_nic::keys::{Keys, PrivateKey};

use crate::args;
use crate::failure::{Failure, Outcome};
use crate::say;

/// Creates a key file and prints its public key.
pub fn keygen(arguments: &args::Keygen) -> Outcome {
    let path = arguments.file.display();
    let key = PrivateKey::generate().map_err(Failure::failed)?;
    let public = key.public();
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&arguments.file);
    let mut file = made.map_err(|error| Failure::refused(format!("cannot make the key's file {path}: {error}")))?;
    let written = write!(file, "# spray, private key of {public}: keep it to yourself\n{}\n", key.reveal().as_str());
    let written = written.and_then(|()| file.sync_all());
    written.map_err(|error| Failure::failed(format!("cannot write the key's file {path}: {error}")))?;
    say!("{public}");
    say::object(&serde_json::json!({ "public_key": public.to_string() }))
}

/// `None` for `--insecure`. Fails with 2 if there is neither key nor `--insecure`, or a file is
/// unreadable, invalid or readable by others.
pub fn keys(arguments: &args::Trust) -> Outcome<Option<Keys>> {
    if arguments.insecure {
        return Ok(None);
    }
    let Some(path) = &arguments.key else {
        return Err(Failure::refused(
            "no key: create one with `spray keygen FILE` and give it to all sides with --key FILE (or --trust the others' \
             public keys), or use --insecure, by which any host on the network may send and read",
        ));
    };
    let read = |path| PrivateKey::read(path).map_err(Failure::refused);
    let own = read(path)?;
    let keys = Keys::new(own, arguments.trusted.iter().map(|trusted| trusted.key).collect());
    let bound = arguments.trusted.iter().filter_map(|trusted| Some((trusted.address?, trusted.key)));
    let keys = bound.fold(keys, |keys, (address, key)| keys.with_peer_at(address, key));
    Ok(Some(match &arguments.psk {
        Some(path) => keys.with_pre_shared(read(path)?),
        None => keys,
    }))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::path::PathBuf;

    use spray_test_support::Folder;

    use super::*;

    fn trust(key: Option<PathBuf>, insecure: bool) -> args::Trust {
        args::Trust { key, trusted: Vec::new(), psk: None, insecure }
    }

    #[test]
    fn a_key_file_is_created_once_and_private() {
        let folder = Folder::new();
        let file = folder.path().join("key");
        keygen(&args::Keygen { file: file.clone() }).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        let before = fs::read(&file).unwrap();
        assert!(keygen(&args::Keygen { file: file.clone() }).unwrap_err().to_string().contains("exists"));
        assert_eq!(fs::read(&file).unwrap(), before);
        let key = PrivateKey::read(&file).unwrap();
        assert!(before.starts_with(format!("# spray, private key of {}", key.public()).as_bytes()));
        assert!(keys(&trust(Some(file), false)).unwrap().is_some());
    }

    #[test]
    fn without_a_key_insecure_must_be_given() {
        assert!(keys(&trust(None, false)).unwrap_err().to_string().contains("--insecure"));
        assert!(keys(&trust(None, true)).unwrap().is_none());
    }
}
