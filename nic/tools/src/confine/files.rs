//! The files that a process reaches (Landlock).

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, make_bitflags,
};

use crate::failure::{Failure, Outcome};

/// The files that a command still has to reach.
#[derive(Clone, Debug)]
pub enum Reach<'a> {
    /// What its user named, with all that is in these folders, to read; and each file in them that will be read.
    Read { named: Vec<&'a Path>, files: Vec<&'a Path> },
    /// A folder, with all that is in it, to write.
    Write(&'a Path),
    /// None: what it writes is open.
    Open,
}

impl Reach<'_> {
    /// Whether files are written.
    pub fn writes(&self) -> bool {
        matches!(self, Self::Write(_) | Self::Open)
    }
}

/// How far the kernel bounds the files that this thread reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    Fully,
    /// It may empty files elsewhere.
    Partly,
    Not,
}

/// Below the folder that is written in. No file can be executed, and no device, pipe, socket or symbolic link made.
const WRITES: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    ReadFile | ReadDir | WriteFile | Truncate | MakeReg | MakeDir | RemoveFile | Refer
});

/// Bounds this thread, and those that it starts, to these files.
pub fn bound(reach: &Reach<'_>) -> Outcome<Bound> {
    let (paths, access) = match reach {
        Reach::Read { named, .. } => (named.clone(), AccessFs::ReadFile | AccessFs::ReadDir),
        Reach::Write(folder) => (vec![*folder], WRITES),
        Reach::Open => (Vec::new(), WRITES),
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
        // Its first version lets no file go from one folder to another, as every file does that gets its name.
        .set_compatibility(CompatLevel::SoftRequirement)
        .handle_access(AccessFs::Refer)?
        // With neither ports nor scopes that are allowed, no TCP socket is bound or connected, and no other process gets signals.
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
