//! The file system of the virtual machine: a shell, `spray` with its libraries, modules and a script, as a `newc`
//! archive (`Documentation/driver-api/early-userspace/buffer-format.rst` of the kernel).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Kernel;
use crate::sh::{self, Failure, Outcome};

/// What the script prints before and after the parts that [`super::report`] reads.
pub const DOCTOR: &str = "@@ doctor";
pub const RUN: &str = "@@ run";
pub const ZERO_COPY: &str = "@@ zero-copy";
pub const END: &str = "@@ end";

const SCENARIO: &str = "name = \"kernels\"
[topology]
kind = \"leaf-spine\"
leaves = 2
spines = 2
hosts_per_leaf = 2
host_gbps = 100
latency_us = 1
[workload]
kind = \"cross-leaf-permutation\"
bytes = \"200 kB\"
[transport]
balancer = [\"reps\"]
";

/// Writes the archive; `script` is what runs in the machine, with `$there` a process in another network namespace, where the second NIC is.
pub fn write(file: &Path, kernel: &Kernel, program: &Path, script: &str) -> Outcome {
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].map(PathBuf::from).into_iter().find(|path| path.exists());
    let busybox =
        busybox.ok_or_else(|| Failure::unable("there is no busybox. As root: apt-get install busybox-static"))?;
    let mut archive = Archive::default();
    for folder in ["proc", "sys", "dev", "tmp", "run"] {
        archive.folder(folder);
    }
    for (name, from) in [("bin/busybox", busybox.as_path()), ("bin/spray", program)] {
        archive.file(name, &read(from)?, 0o755);
        for library in libraries(from) {
            archive.file(library.trim_start_matches('/'), &read(Path::new(&library))?, 0o755);
        }
    }
    for (number, file) in kernel.modules.iter().enumerate() {
        archive.file(&format!("{number:02}.ko"), &module(file)?, 0o644);
    }
    archive.file("scenario.toml", SCENARIO.as_bytes(), 0o644);
    archive.file("init", format!("{BEGIN}{script}\necho '{END}'\npoweroff -f\n").as_bytes(), 0o755);
    fs::write(file, archive.bytes()).map_err(|error| Failure::failed(format!("{}: {error}", file.display())))
}

/// What every machine begins with: a file system, modules, and its two NICs with an address each, the second one in a namespace of its own.
const BEGIN: &str = "#!/bin/busybox sh
/bin/busybox mkdir -p /etc
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
mount -t tmpfs none /run
for module in /*.ko; do insmod $module; done
ip link set lo up
unshare -n sleep 10000 &
there=$!
sleep 1
ip link set eth1 netns $there
on() { nsenter -t $there -n \"$@\"; }
ip address add 10.0.0.1/24 dev eth0
ip link set eth0 up
on ip address add 10.0.0.2/24 dev eth1
on ip link set eth1 up
";

/// Loads every program, runs `run`, and sends a file from one NIC to the other. Ends with how `spray send` ended.
pub fn tries(run: &str) -> String {
    format!(
        "echo '{DOCTOR}'
spray doctor
echo '{RUN}'
{{ {run}; echo \"exit $?\"; }} 2>&1 | cat
echo '{ZERO_COPY}'
on spray recv --insecure --interface eth1 --out /tmp --zero-copy 2>&1 &
sleep 3
head -c 2000000 /dev/urandom > /file
{{ spray send /file --insecure --interface eth0 --to 10.0.0.2 --zero-copy --timeout 20; echo \"exit $?\"; }} 2>&1 | cat"
    )
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    fs::read(path).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}

/// The shared libraries of a program, none if it is static.
fn libraries(program: &Path) -> Vec<String> {
    let output = sh::capture("ldd", &[&program.to_string_lossy()]).unwrap_or_default();
    let paths = output.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    paths.map(String::from).collect()
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
