//! The file system of a virtual machine: a shell, programs with their libraries, modules and a script, as a `newc`
//! archive (`Documentation/driver-api/early-userspace/buffer-format.rst` of the kernel).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::packages::Kernel;
use super::tools::Tools;
use crate::sh::{Failure, Outcome};

/// What a virtual machine has in its file system.
#[derive(Debug)]
pub struct Content<'a> {
    pub kernel: &'a Kernel,
    /// Programs by path, beside the shell's own.
    pub programs: &'a [(&'a str, PathBuf)],
    /// Where their libraries are.
    pub tools: &'a Tools,
    /// Further files by path.
    pub files: &'a [(&'a str, &'a str)],
    /// What it runs before it turns itself off.
    pub script: &'a str,
}

/// Writes the archive.
pub fn write(file: &Path, content: &Content<'_>) -> Outcome {
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].map(PathBuf::from).into_iter().find(|path| path.exists());
    let busybox =
        busybox.ok_or_else(|| Failure::unable("there is no busybox. As root: apt-get install busybox-static"))?;
    let mut archive = Archive::default();
    for folder in ["proc", "sys", "dev", "tmp", "run"] {
        archive.folder(folder);
    }
    for (path, from) in content.programs.iter().chain(&[("bin/busybox", busybox)]) {
        archive.file(path, &read(from)?, 0o755);
        for (library, path) in content.tools.libraries_of(from)? {
            archive.file(&path, &read(&library)?, 0o755);
        }
    }
    for (number, file) in content.kernel.modules.iter().enumerate() {
        archive.file(&format!("{number}.ko"), &module(file)?, 0o644);
    }
    for (path, text) in content.files {
        archive.file(path, text.as_bytes(), 0o644);
    }
    archive.file("init", format!("{BEGIN}{}echo '{END}'\npoweroff -f\n", content.script).as_bytes(), 0o755);
    fs::write(file, archive.bytes()).map_err(|error| Failure::of_file(file, &error))
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

/// What the machine prints when all is done.
pub const END: &str = "@@ end";

fn read(path: &Path) -> Outcome<Vec<u8>> {
    fs::read(path).map_err(|error| Failure::of_file(path, &error))
}

/// A module's bytes; newer kernels' are compressed.
fn module(file: &Path) -> Outcome<Vec<u8>> {
    if file.extension().is_some_and(|extension| extension == "xz") {
        let output = Command::new("xz").arg("-dc").arg(file).output();
        let output = output.map_err(|error| Failure::unable(format!("`xz` could not be run: {error}")))?;
        return Ok(output.stdout);
    }
    read(file)
}

/// Files by path; parents come before what is in them.
#[derive(Default)]
struct Archive(BTreeMap<String, (u32, Vec<u8>)>);

impl Archive {
    fn folder(&mut self, path: &str) {
        self.0.entry(path.into()).or_insert((0o040_755, Vec::new()));
    }

    fn file(&mut self, path: &str, content: &[u8], mode: u32) {
        for (at, _) in path.match_indices('/') {
            self.folder(&path[..at]);
        }
        self.0.insert(path.into(), (0o100_000 | mode, content.to_vec()));
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (number, (path, (mode, content))) in self.0.iter().enumerate() {
            entry(&mut out, number as u32 + 1, path, *mode, content);
        }
        entry(&mut out, 0, "TRAILER!!!", 0, &[]);
        out
    }
}

/// A header of eight-digit fields, the name, the content, each padded to four bytes.
fn entry(out: &mut Vec<u8>, number: u32, path: &str, mode: u32, content: &[u8]) {
    let (size, name) = (content.len() as u32, path.len() as u32 + 1);
    let fields = [number, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name, 0];
    out.extend_from_slice(b"070701");
    fields.iter().for_each(|field| out.extend_from_slice(format!("{field:08x}").as_bytes()));
    out.extend_from_slice(path.as_bytes());
    out.push(0);
    pad(out);
    out.extend_from_slice(content);
    pad(out);
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::Archive;

    #[test]
    fn an_archive_holds_parents_before_files_and_is_aligned() {
        let mut archive = Archive::default();
        archive.file("a/b/c", b"12345", 0o644);
        let bytes = archive.bytes();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
        assert!(at("a\0") < at("a/b\0") && at("a/b\0") < at("a/b/c\0") && at("a/b/c\0") < at("TRAILER!!!"));
        // Mode and length of the file.
        assert!(text.contains("000081a4") && text.contains("00000005"), "{text}");
    }
}
