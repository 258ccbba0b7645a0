//! The folder that received files are stored in.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::folder::Folder;
use super::format::{Description, shown};
use super::partial::{Partial, is_partial};
use super::refusal::Refusal;
use crate::confine::Reach;
use crate::failure::{Failure, Outcome};
use crate::session::Wake;

#[derive(Clone, Debug)]
pub struct Out {
    pub folder: Arc<Folder>,
    /// Without `--keep`: the transfer that stored something first.
    taken: Option<Arc<Mutex<Option<u32>>>>,
    pub waker: Wake,
}

pub const ONE_TRANSFER: &str = "the receiver takes only one transfer, another one's (`spray recv --keep` takes more)";

impl Out {
    /// Fails with 2 if `path` is no folder.
    pub fn new(path: &Path, keep: bool) -> Outcome<Self> {
        let shown = path.display();
        let unusable = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => Failure::refused(format!("the folder {shown} does not exist: create it first")),
            ErrorKind::NotADirectory => Failure::refused(format!("--out {shown} is not a folder")),
            _ => Failure::refused(format!("cannot use the folder {shown}: {error}")),
        };
        let folder = Arc::new(Folder::open(path).map_err(unusable)?);
        Ok(Self { folder, taken: (!keep).then(Arc::default), waker: Wake::default() })
    }

    //= docs/specs/endpoint.md#END-29 the folder that its user chose
    pub fn reach(&self) -> Reach<'_> {
        Reach::Write(&self.folder.path)
    }

    /// Refuses a file with an existing name; checked again atomically on renaming.
    pub fn goal(&self, description: &Description, transfer: u32) -> Result<Goal, Refusal> {
        let (folder, name) = self.place_of(&description.path)?;
        match folder.look(name) {
            Ok(None) => {}
            Ok(Some(_)) => return Err(exists(name)),
            Err(error) => return Err(Refusal(format!("cannot look for {}: {error}", shown(name)))),
        }
        let claim = Claim { taken: self.taken.clone(), transfer };
        Ok(Goal { folder, name: name.into(), mode: description.mode, claim })
    }

    pub fn make(&self, description: &Description, transfer: u32) -> Result<(), Refusal> {
        Claim { taken: self.taken.clone(), transfer }.put(|| Ok(()))?;
        self.place_of(&description.path)?;
        self.folder.below(Path::new(&description.path), description.mode).map(drop).map_err(|error| unmade(&error))
    }

    /// Admits another transfer after `transfer` failed.
    pub fn release(&self, transfer: u32) {
        if let Some(taken) = &self.taken {
            let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
            *taken = taken.filter(|&holder| holder != transfer);
        }
    }

    fn place_of<'a>(&self, path: &'a OsStr) -> Result<(Folder, &'a OsStr), Refusal> {
        let path = Path::new(path);
        let name = path.file_name().ok_or_else(|| Refusal::new("it has no name"))?;
        if path.iter().any(is_partial) {
            return Err(Refusal(format!("files named {} are those that are still arriving", shown(name))));
        }
        let parent = path.parent().unwrap_or(Path::new(""));
        Ok((self.folder.below(parent, 0o777).map_err(|error| unmade(&error))?, name))
    }
}

fn unmade(error: &std::io::Error) -> Refusal {
    Refusal(format!("cannot make the folder: {error}"))
}

#[derive(Debug)]
pub struct Claim {
    taken: Option<Arc<Mutex<Option<u32>>>>,
    transfer: u32,
}

impl Claim {
    /// Fails if another transfer was stored already.
    fn check(&self) -> Result<Option<MutexGuard<'_, Option<u32>>>, Refusal> {
        let taken = self.taken.as_ref().map(|taken| taken.lock().unwrap_or_else(PoisonError::into_inner));
        match taken.as_deref() {
            Some(Some(holder)) if *holder != self.transfer => Err(Refusal::new(ONE_TRANSFER)),
            _ => Ok(taken),
        }
    }

    /// Runs `put` with the lock held, so that of two concurrent transfers only one is stored.
    fn put<T>(&self, put: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
        let taken = self.check()?;
        let done = put()?;
        taken.into_iter().for_each(|mut taken| *taken = Some(self.transfer));
        Ok(done)
    }
}

/// The name of a complete file.
#[derive(Debug)]
pub struct Goal {
    folder: Folder,
    name: OsString,
    mode: u16,
    claim: Claim,
}

impl Goal {
    /// Completes a verified file and returns its path.
    pub fn finish(self, partial: Partial) -> Result<PathBuf, Refusal> {
        let Self { folder, name, mode, claim } = self;
        claim.put(|| match partial.give_name(&folder, &name, mode) {
            Ok(()) => Ok(folder.path.join(&name)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(exists(&name)),
            Err(error) => Err(Refusal(format!("cannot finish {}: {error}", folder.path.join(&name).display()))),
        })
    }
}

fn exists(name: &OsStr) -> Refusal {
    Refusal(format!("{} exists already", shown(name)))
}
