//! The destination of received data: a folder or one file.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::folder::Folder;
use super::format::{Description, shown};
use super::partial::{Partial, folder_of, is_partial};
use super::refusal::Refusal;
use crate::confine::Reach;
use crate::failure::{Failure, Outcome};
use crate::session::Wake;

#[derive(Clone, Debug)]
pub struct Out {
    place: Place,
    pub folder: Arc<Folder>,
    /// Without `--keep`: the transfer that stored something first.
    taken: Option<Arc<Mutex<Option<u32>>>>,
    pub waker: Wake,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Folder,
    /// A single file, which may replace an older one.
    File(OsString),
}

pub const ONE_TRANSFER: &str = "the receiver takes only one transfer, another one's (`spray recv --keep` takes more)";
pub const ONE_FILE: &str =
    "the receiver's --out is one file, which another file of this transfer is for; an existing folder takes several";

impl Out {
    /// `path` is a folder or a file. Fails with 2 if the folder is missing, or `keep` needs
    /// one.
    pub fn new(path: &Path, keep: bool) -> Outcome<Self> {
        let (place, folder) = match path.is_dir() {
            true => (Place::Folder, path),
            false => (Place::File(path.file_name().unwrap_or_default().into()), folder_of(path)),
        };
        if keep && place != Place::Folder {
            let mend = "--keep takes many files: --out must be a folder that exists";
            return Err(Failure::refused(format!("{} is not a folder, and {mend}", path.display())));
        }
        let unusable = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                let shown = path.display();
                Failure::refused(format!("cannot write {shown}: the folder {} does not exist", folder.display()))
            }
            _ => Failure::refused(format!("cannot use the folder {}: {error}", folder.display())),
        };
        let folder = Arc::new(Folder::open(folder).map_err(unusable)?);
        Ok(Self { place, folder, taken: (!keep).then(Arc::default), waker: Wake::default() })
    }

    //= docs/specs/endpoint.md#END-29 the folder that its user chose
    pub fn reach(&self) -> Reach<'_> {
        Reach::Write(&self.folder.path)
    }

    pub fn what(&self) -> String {
        let folder = self.folder.path.display();
        match &self.place {
            Place::Folder => format!("files go into the folder {folder}"),
            Place::File(name) => {
                let path = self.folder.path.join(name);
                format!("one file is accepted, as {} (an existing folder accepts several)", path.display())
            }
        }
    }

    pub fn takes_one_file(&self) -> bool {
        self.place != Place::Folder
    }

    pub fn goal(&self, description: &Description, transfer: u32) -> Result<Goal, Refusal> {
        let claim = Claim { taken: self.taken.clone(), transfer, only_one: self.takes_one_file() };
        let (folder, name, replaces) = match &self.place {
            Place::File(name) => {
                // Checked again when the file is renamed.
                drop(claim.check()?);
                (Arc::clone(&self.folder), name.clone(), true)
            }
            Place::Folder => {
                let (parent, name) = self.place_of(&description.path)?;
                (Arc::new(parent), name.into(), false)
            }
        };
        Ok(Goal { folder, name, mode: description.mode, replaces, claim })
    }

    pub fn make(&self, description: &Description, transfer: u32) -> Result<(), Refusal> {
        if self.place != Place::Folder {
            return Err(Refusal::new("the receiver takes no folder (its --out must be a folder that exists)"));
        }
        Claim { taken: self.taken.clone(), transfer, only_one: false }.put(|| Ok(()))?;
        self.place_of(&description.path)?;
        self.folder.below(Path::new(&description.path), description.mode).map(drop).map_err(|error| unmade(&error))
    }

    /// Admits another transfer after `transfer` failed, unless its data cannot be undone.
    pub fn release(&self, transfer: u32) {
        if let (Place::Folder, Some(taken)) = (&self.place, &self.taken) {
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
    only_one: bool,
}

impl Claim {
    /// Fails if another transfer, or another file where one is allowed, was stored already.
    fn check(&self) -> Result<Option<MutexGuard<'_, Option<u32>>>, Refusal> {
        let taken = self.taken.as_ref().map(|taken| taken.lock().unwrap_or_else(PoisonError::into_inner));
        match taken.as_deref() {
            Some(Some(holder)) if *holder != self.transfer => Err(Refusal::new(ONE_TRANSFER)),
            Some(Some(_)) if self.only_one => Err(Refusal::new(ONE_FILE)),
            _ => Ok(taken),
        }
    }

    /// Runs `put` with the lock held, so that of two concurrent files the second replaces nothing.
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
    folder: Arc<Folder>,
    name: OsString,
    mode: u16,
    replaces: bool,
    claim: Claim,
}

impl Goal {
    /// Refuses a file with an existing name; checked again atomically on renaming.
    pub fn check(&self) -> Result<(), Refusal> {
        let Self { folder, name, replaces: false, .. } = self else { return Ok(()) };
        match folder.look(name) {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err(exists(name)),
            Err(error) => Err(Refusal(format!("cannot look for {}: {error}", shown(name)))),
        }
    }

    /// Completes a verified file and returns its path.
    pub fn finish(self, partial: Partial) -> Result<PathBuf, Refusal> {
        let Self { folder, name, mode, replaces, claim } = self;
        claim.put(|| match partial.give_name(&folder, &name, mode, replaces) {
            Ok(()) => Ok(folder.path.join(&name)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(exists(&name)),
            Err(error) => Err(Refusal(format!("cannot finish {}: {error}", folder.path.join(&name).display()))),
        })
    }
}

fn exists(name: &OsStr) -> Refusal {
    Refusal(format!("{} exists already", shown(name)))
}
