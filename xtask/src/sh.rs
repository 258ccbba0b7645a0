//! Running of other programs: every command is shown before it runs, and named if it fails.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Debug)]
pub struct Failure {
    pub message: String,
    /// The exit code: 1 if something ran and failed, 2 if nothing was started.
    pub code: u8,
}

pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// Something ran and failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 1 }
    }

    pub fn of_file(path: &Path, error: &std::io::Error) -> Self {
        Self::failed(format!("{}: {error}", path.display()))
    }

    /// Bad usage, a missing right or a missing program.
    pub fn unable(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 2 }
    }
}

#[path = "../../tests/support/src/root.rs"]
mod root;

pub fn find_root() -> Outcome<PathBuf> {
    root::find().map_err(Failure::unable)
}

/// As [`find_root`], which `main` has called before.
pub fn root() -> PathBuf {
    find_root().expect("found by main")
}

pub fn read(file: &Path) -> Outcome<Vec<u8>> {
    std::fs::read(file).map_err(|error| Failure::of_file(file, &error))
}

pub fn read_text(file: &Path) -> Outcome<String> {
    std::fs::read_to_string(file).map_err(|error| Failure::of_file(file, &error))
}

/// Writes a file, and creates its folders.
pub fn write(file: &Path, content: impl AsRef<[u8]>) -> Outcome {
    let folder = file.parent().map_or(Ok(()), std::fs::create_dir_all);
    folder.and_then(|()| std::fs::write(file, content)).map_err(|error| Failure::of_file(file, &error))
}

/// Replaces the text between `<!-- NAME -->` and `<!-- end -->` in a document, and prints it.
pub fn fill(document: &str, name: &str, text: &str) -> Outcome {
    let file = root().join(document);
    let old = read_text(&file)?;
    let begin = format!("<!-- {name} -->\n");
    let parts = old.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once("<!-- end -->")?.1)));
    let Some((before, after)) = parts else {
        return Err(Failure::failed(format!("{document} has no section `{}`", begin.trim())));
    };
    write(&file, format!("{before}{begin}{text}<!-- end -->{after}"))?;
    println!("{text}\n{}", file.display());
    Ok(())
}

/// The profile of the demo, the tests and the linters; see the workspace's manifest.
pub const QUICK: &str = "quick";

pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Returns a command for the cargo of a rustup nightly, in the root.
pub fn nightly_cargo() -> Command {
    let mut cargo = Command::new("rustup");
    cargo.args(["run", "nightly", "cargo"]).current_dir(root());
    for name in ["RUSTC", "CARGO", "RUSTUP_TOOLCHAIN"] {
        cargo.env_remove(name);
    }
    cargo
}

pub fn run(command: &mut Command) -> Outcome {
    let shown = announce(command);
    let status = command.status().map_err(|error| not_started(&shown, &error))?;
    if status.success() {
        return Ok(());
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Err(Failure { message: format!("`{shown}` failed ({status})"), code })
}

/// Runs a command, showing its output and passing each line to `each`; returns its success.
pub fn run_lines(command: &mut Command, mut each: impl FnMut(&str)) -> Outcome<bool> {
    read_lines(command, |line| {
        println!("{line}");
        each(line);
    })
}

/// As [`run_lines`], without showing the output.
pub fn read_lines(command: &mut Command, mut each: impl FnMut(&str)) -> Outcome<bool> {
    let shown = announce(command);
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| not_started(&shown, &error))?;
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            each(&line);
        }
    }
    let status = child.wait().map_err(|error| not_started(&shown, &error))?;
    Ok(status.success())
}

/// Returns the output of a quiet command if it succeeded.
pub fn capture(program: impl AsRef<OsStr>, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// Returns whether a rustup nightly can build `core`.
pub fn has_nightly() -> bool {
    let sysroot = capture("rustup", &["run", "nightly", "rustc", "--print", "sysroot"]).map(PathBuf::from);
    sysroot.is_some_and(|sysroot| sysroot.join("lib/rustlib/src/rust/library/core").is_dir())
}

/// Returns the major and minor version of a Rust compiler, if there is one.
pub fn rustc_version(program: &str) -> Option<(u32, u32)> {
    parse_version(&capture(program, &["--version"])?)
}

/// Parses `rustc 1.95.0 (59807616e 2026-04-14)` as `(1, 95)`.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.strip_prefix("rustc ")?.split('.').map_while(|part| part.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

pub fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    uids.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
}

fn announce(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    let shown = words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ");
    eprintln!("$ {shown}");
    shown
}

fn not_started(shown: &str, error: &std::io::Error) -> Failure {
    Failure::unable(format!("`{shown}` could not be run: {error}"))
}

#[cfg(test)]
mod tests {
    use super::parse_version;

    #[test]
    fn versions_are_read_and_compared() {
        assert_eq!(parse_version("rustc 1.95.0 (59807616e 2026-04-14)"), Some((1, 95)));
        assert_eq!(parse_version("rustc 1.97.0-nightly (e50aa6fba 2026-05-19)"), Some((1, 97)));
        assert_eq!(parse_version("clang 22"), None);
        assert!(parse_version("rustc 1.100.0").unwrap() > (1, 88));
    }
}
