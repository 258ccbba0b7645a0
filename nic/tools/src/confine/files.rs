//! The files that a process can access (Landlock).

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, make_bitflags,
};

use crate::failure::{Failure, Outcome};

/// The files that a command needs.
#[derive(Clone, Debug)]
pub enum Reach<'a> {
    /// Reads the named files and all below the named folders; `files` lists those to be read.
    Read { named: Vec<&'a Path>, files: Vec<&'a Path> },
    /// Writes below a folder.
    Write(&'a Path),
}

impl Reach<'_> {
    pub fn writes(&self) -> bool {
        matches!(self, Self::Write(_))
    }
}

/// How far Landlock restricts this thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    Fully,
    /// Files elsewhere can be truncated.
    Partly,
    Not,
}

/// Excludes executing, and creating devices, pipes, sockets and symbolic links.
const WRITES: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    ReadFile | ReadDir | WriteFile | Truncate | MakeReg | MakeDir | RemoveFile | Refer
});

/// Restricts this thread, and its later threads, to these files.
pub fn bound(reach: &Reach<'_>) -> Outcome<Bound> {
    let (paths, access) = match reach {
        Reach::Read { named, .. } => (named.clone(), AccessFs::ReadFile | AccessFs::ReadDir),
        Reach::Write(folder) => (vec![*folder], WRITES),
    };
    let rules = paths.into_iter().map(|path| rule(path, access)).collect::<Outcome<Vec<_>>>()?;
    restrict(rules).map_err(|error| Failure::refused(format!("cannot bound the files that spray reaches: {error}")))
}

fn rule(path: &Path, access: BitFlags<AccessFs>) -> Outcome<PathBeneath<PathFd>> {
    let open =
        PathFd::new(path).map_err(|error| Failure::refused(format!("cannot open {}: {error}", path.display())))?;
    let access = if path.is_dir() { access } else { access & AccessFs::ReadFile };
    Ok(PathBeneath::new(open, access))
}

fn restrict(rules: Vec<PathBeneath<PathFd>>) -> Result<Bound, RulesetError> {
    let status = Ruleset::default()
        // Landlock's first version forbids renaming to another folder, which completes every file.
        .set_compatibility(CompatLevel::SoftRequirement)
        .handle_access(AccessFs::Refer)?
        // Without any allowed: no TCP bind or connect, and no signals to other processes.
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V5))?
        .handle_access(AccessNet::from_all(ABI::V4))?
        .scope(Scope::from_all(ABI::V6))?
        .create()?
        .add_rules(rules.into_iter().map(Ok::<_, RulesetError>))?
        .restrict_self()?;
    Ok(match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => Bound::Not,
        (RulesetStatus::PartiallyEnforced, LandlockStatus::Available { effective_abi, .. })
            if effective_abi < ABI::V3 =>
        {
            Bound::Partly
        }
        _ => Bound::Fully,
    })
}
