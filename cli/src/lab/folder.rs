#[cfg(feature = "xdp")]
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

#[cfg(feature = "xdp")]
use spray_experiments::results::PART;
#[cfg(feature = "xdp")]
use spray_tools::failure::Failure;
use spray_tools::failure::Outcome;

pub use crate::folder::make;

pub fn location(asked: Option<&Path>, name: &str) -> PathBuf {
    asked.map_or_else(|| Path::new("results").join(format!("{name}-{}", stamp())), Path::to_path_buf)
}

/// A lock on a results folder until this value is dropped or the process ends.
#[derive(Debug)]
pub struct FolderLock {
    /// A lock on the folder itself, which needs no file in it.
    #[cfg(feature = "xdp")]
    _lock: nix::fcntl::Flock<fs::File>,
}

/// The part of a results folder that a command locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockScope {
    All,
    /// Some of the runs, concurrently with processes that write the others.
    Part,
}

/// Creates and locks the results folder. `LockScope::All` also removes leftovers of killed runs.
#[cfg(feature = "xdp")]
pub fn lock(folder: &Path, scope: LockScope) -> Outcome<FolderLock> {
    use nix::errno::Errno;
    use nix::fcntl::{Flock, FlockArg};
    make(folder)?;
    let failed = |error| Failure::refused(format!("cannot lock the results folder {}: {error}", folder.display()));
    let how = match scope {
        LockScope::All => FlockArg::LockExclusiveNonblock,
        LockScope::Part => FlockArg::LockSharedNonblock,
    };
    let lock = Flock::lock(fs::File::open(folder).map_err(failed)?, how).map_err(|(file, error)| match error {
        Errno::EWOULDBLOCK => Failure::refused(format!(
            "{} scope into {}; allowed: another folder with --out, or the same command when it has ended",
            lock_owner(&file),
            folder.display()
        )),
        error => failed(error.into()),
    })?;
    if scope == LockScope::All {
        remove_parts(folder);
    }
    Ok(FolderLock { _lock: lock })
}

/// Creates the folder without a lock, which needs the feature `xdp`.
#[cfg(not(feature = "xdp"))]
pub fn lock(folder: &Path, _: LockScope) -> Outcome<FolderLock> {
    make(folder).map(|()| FolderLock {})
}

/// Finds the owner in lines such as `1: FLOCK ADVISORY WRITE 1234 fe:00:5678 0 EOF`: PID and inode.
#[cfg(feature = "xdp")]
fn lock_owner(file: &fs::File) -> String {
    use std::os::unix::fs::MetadataExt;
    let unknown = || String::from("a process on another machine or in another container");
    let (Ok(data), Ok(locks)) = (file.metadata(), fs::read_to_string("/proc/locks")) else { return unknown() };
    let inode = format!(":{}", data.ino());
    let pid = locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_it = words.get(1) == Some(&"FLOCK") && words.get(5).is_some_and(|file| file.ends_with(&inode));
        is_it.then(|| words[4].parse::<u32>().ok())?.filter(|pid| *pid > 0)
    });
    let Some(pid) = pid else { return unknown() };
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    format!("process {pid} (`{}`)", String::from_utf8_lossy(&command).trim_end_matches('\0').replace('\0', " "))
}

#[cfg(feature = "xdp")]
fn remove_parts(folder: &Path) {
    let is_part = |path: &Path| path.to_string_lossy().ends_with(PART) && path.join("scenario.toml").is_file();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| is_part(path)).for_each(|path| drop(fs::remove_dir_all(path)));
}

/// Returns the time as `2026-11-20T08:10:36Z`.
#[expect(clippy::disallowed_methods, reason = "the date of the results")]
pub fn date() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// Returns the time as `20261120-081036-217`, UTC, unique within a second.
#[expect(clippy::disallowed_methods, reason = "the date of the results")]
fn stamp() -> String {
    let now = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
    now.replace(['-', ':', 'Z'], "").replace(['T', '.'], "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "xdp")]
    #[test]
    fn a_folder_is_locked_by_one_run_or_by_parts_and_remains_are_removed() {
        let own = spray_test_support::Folder::new();
        let (folder, part) = (own.path(), own.path().join("healthy-ops-seed1.part"));
        let other = folder.join("mine.part");
        let fill = || {
            fs::create_dir_all(&part).and_then(|()| fs::write(part.join("scenario.toml"), "")).unwrap();
            fs::create_dir_all(&other).unwrap();
        };
        fill();
        let held = lock(folder, LockScope::All).unwrap();
        assert!(!part.exists() && other.exists(), "one belongs to a run");
        let refused = lock(folder, LockScope::All).unwrap_err().to_string();
        assert!(refused.starts_with(&format!("process {} (`", std::process::id())), "{refused}");
        assert!(refused.contains(&folder.display().to_string()) && refused.contains("--out"), "{refused}");
        assert!(lock(folder, LockScope::Part).is_err());
        drop(held);
        let parts = [(); 2].map(|()| lock(folder, LockScope::Part).unwrap());
        fill();
        assert!(lock(folder, LockScope::All).is_err());
        assert!(part.exists(), "it may be under way");
        drop(parts);
        lock(folder, LockScope::All).unwrap();
        assert!(!part.exists());
    }

    #[test]
    fn a_stamp_is_date_time_and_milliseconds() {
        let stamp = stamp();
        let parts: Vec<&str> = stamp.split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 6, 3], "{stamp}");
        assert!(parts.concat().bytes().all(|digit| digit.is_ascii_digit()), "{stamp}");
    }
}
