//! Programs that are unpacked without installation: a newer QEMU, and its missing dependencies.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::packages::{self, Lists};
use crate::sh::{self, Failure, Outcome};

/// Library folders in Debian's packages; release 12 uses both.
const LIBRARIES: [&str; 2] = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];

/// Unpacked programs, or those of the machine.
#[derive(Debug, Default)]
pub struct Tools {
    folder: Option<PathBuf>,
}

impl Tools {
    /// Unpacks packages of `suite`, with dependencies that the machine lacks, into `into`.
    pub fn fetch(lists: &Lists, suite: &str, packages: &[&str], into: &Path) -> Outcome<Self> {
        let archives = packages::files(&lists.download_missing(suite, packages)?);
        let folder = super::fresh(into)?;
        for file in archives.iter().filter(|file| file.extension().is_some_and(|extension| extension == "deb")) {
            sh::run(Command::new("dpkg-deb").arg("-x").args([file, &folder]))?;
        }
        Ok(Self { folder: Some(folder) })
    }

    /// Returns the path of a program, or its name if it is not found.
    pub fn program(&self, name: &str) -> PathBuf {
        let unpacked = self
            .folder
            .iter()
            .flat_map(|folder| ["usr/bin", "usr/sbin", "sbin"].map(|bin| folder.join(bin).join(name)));
        let installed = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"].map(|bin| Path::new(bin).join(name));
        unpacked.chain(installed).find(|path| path.exists()).unwrap_or_else(|| name.into())
    }

    /// Sets the paths of unpacked libraries and QEMU modules.
    pub fn prepare(&self, command: &mut Command) {
        if let Some(folder) = &self.folder {
            let [libraries, further] = LIBRARIES.map(|libraries| folder.join(libraries));
            let all = format!("{}:{}", libraries.display(), further.display());
            command.env("QEMU_MODULE_DIR", libraries.join("qemu")).env("LD_LIBRARY_PATH", all);
        }
    }

    pub fn arguments(&self) -> Vec<PathBuf> {
        let folders = self.folder.iter().flat_map(|folder| {
            ["usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu"].map(|data| folder.join(data))
        });
        folders.filter(|folder| folder.exists()).flat_map(|folder| ["-L".into(), folder]).collect()
    }

    /// Returns the shared libraries of a program: their paths, and where programs look for them.
    pub fn libraries_of(&self, program: &Path) -> Outcome<Vec<(PathBuf, String)>> {
        let mut ldd = Command::new("ldd");
        self.prepare(ldd.arg(program));
        let output = ldd.output().map_err(|error| Failure::unable(format!("`ldd` could not be run: {error}")))?;
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        let paths = output.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
        Ok(paths.map(|path| (path.into(), self.installed(path))).collect())
    }

    /// Returns the path of an unpacked file after installation, without the first slash.
    fn installed(&self, path: &str) -> String {
        let inside = self.folder.as_ref().and_then(|folder| Path::new(path).strip_prefix(folder).ok());
        inside.map_or(path, |inside| inside.to_str().unwrap_or(path)).trim_start_matches('/').into()
    }
}
