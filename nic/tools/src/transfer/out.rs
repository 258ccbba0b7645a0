//! The folder that received files are stored in.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::folder::Folder;
use super::format::{Description, Refusal, shown};
use super::partial::{Partial, is_partial};
use crate::confine::Reach;
use crate::failure::{Failure, Outcome};
use crate::session::Wake;

#[derive(Clone, Debug)]
pub struct Out {
    pub folder: Arc<Folder>,
    pub waker: Wake,
}

impl Out {
    /// Fails with 2 if `path` is no folder.
    pub fn new(path: &Path) -> Outcome<Self> {
        let shown = path.display();
        let unusable = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => Failure::refused(format!("the folder {shown} does not exist: create it first")),
            ErrorKind::NotADirectory => Failure::refused(format!("--out {shown} is not a folder")),
            _ => Failure::refused(format!("cannot use the folder {shown}: {error}")),
        };
        let folder = Arc::new(Folder::open(path).map_err(unusable)?);
        Ok(Self { folder, waker: Wake::default() })
    }

    //= docs/specs/endpoint.md#END-29 the folder that its user chose
    pub fn reach(&self) -> Reach<'_> {
        Reach::Write(&self.folder.path)
    }

    /// Refuses a file with an existing name; checked again atomically on renaming.
    pub fn goal(&self, description: &Description) -> Result<Goal, Refusal> {
        let (folder, name) = self.place_of(&description.path)?;
        match folder.look(name) {
            Ok(None) => {}
            Ok(Some(_)) => return Err(exists(name)),
            Err(error) => return Err(Refusal(format!("cannot look for {}: {error}", shown(name)))),
        }
        Ok(Goal { folder, name: name.into(), mode: description.mode })
    }

    pub fn make(&self, description: &Description) -> Result<(), Refusal> {
        self.place_of(&description.path)?;
        self.folder.below(Path::new(&description.path), description.mode).map(drop).map_err(|error| unmade(&error))
    }

    fn place_of<'a>(&self, path: &'a OsStr) -> Result<(Folder, &'a OsStr), Refusal> {
        let path = Path::new(path);
        let name = path.file_name().ok_or_else(|| Refusal("it has no name".into()))?;
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

/// The name of a complete file.
#[derive(Debug)]
pub struct Goal {
    folder: Folder,
    name: OsString,
    mode: u16,
}

impl Goal {
    /// Completes a verified file and returns its path.
    pub fn finish(self, partial: Partial) -> Result<PathBuf, Refusal> {
        let Self { folder, name, mode } = self;
        match partial.give_name(&folder, &name, mode) {
            Ok(()) => Ok(folder.path.join(&name)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(exists(&name)),
            Err(error) => Err(Refusal(format!("cannot finish {}: {error}", folder.path.join(&name).display()))),
        }
    }
}

fn exists(name: &OsStr) -> Refusal {
    Refusal(format!("{} exists already", shown(name)))
}
