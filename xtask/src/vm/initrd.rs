//! File system of a virtual machine: a shell, programs with libraries, modules and a script.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::packages::Kernel;
use super::tools::Tools;
use crate::sh::{self, Failure, Outcome};

#[derive(Debug)]
pub struct Content<'a> {
    pub kernel: &'a Kernel,
    /// Programs by path, in addition to the shell.
    pub programs: &'a [(&'a str, PathBuf)],
    pub tools: &'a Tools,
    pub files: &'a [(&'a str, &'a str)],
    /// Runs before the machine turns itself off.
    pub script: &'a str,
}

/// Writes the archive, by way of a temporary folder beside it.
pub fn write(file: &Path, content: &Content<'_>) -> Outcome {
    let root = super::fresh(&file.with_extension("root"))?;
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].map(PathBuf::from).into_iter().find(|path| path.exists());
    let busybox =
        busybox.ok_or_else(|| Failure::unable("there is no busybox. As root: apt-get install busybox-static"))?;
    for folder in ["proc", "sys", "dev", "tmp", "run"] {
        super::fresh(&root.join(folder))?;
    }
    for (path, from) in content.programs.iter().chain(&[("bin/busybox", busybox.clone())]) {
        put(&root.join(path), &sh::read(from)?)?;
        for (library, path) in content.tools.libraries_of(from)? {
            put(&root.join(path), &sh::read(&library)?)?;
        }
    }
    for (number, file) in content.kernel.modules.iter().enumerate() {
        put(&root.join(format!("{number}.ko")), &module(file)?)?;
    }
    for (path, text) in content.files {
        put(&root.join(path), text.as_bytes())?;
    }
    put(&root.join("init"), format!("{BEGIN}{}poweroff -f\n", content.script).as_bytes())?;
    let failed = |error| Failure::of_file(file, &error);
    let archive = File::create(file).map_err(failed)?;
    let mut pack = Command::new("sh");
    pack.args(["-c", "find . | \"$0\" cpio -o -H newc"]).arg(busybox).current_dir(&root);
    sh::run(pack.stdout(archive).stderr(Stdio::null()))?;
    fs::remove_dir_all(&root).map_err(failed)
}

fn put(path: &Path, content: &[u8]) -> Outcome {
    sh::write(path, content)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(|error| Failure::of_file(path, &error))
}

const BEGIN: &str = "#!/bin/busybox sh
/bin/busybox mkdir -p /etc
/bin/busybox --install -s /bin
export PATH=/bin:/sbin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
mount -t tmpfs none /run
for module in /?.ko /??.ko; do [ -f $module ] && insmod $module; done
ip link set lo up
";

/// Returns the content of a module, decompressed if necessary.
fn module(file: &Path) -> Outcome<Vec<u8>> {
    if file.extension().is_some_and(|extension| extension == "xz") {
        let output = Command::new("xz").arg("-dc").arg(file).output();
        let output = output.map_err(|error| Failure::unable(format!("`xz` could not be run: {error}")))?;
        return Ok(output.stdout);
    }
    sh::read(file)
}
