//! Record of the objects in the repository: hashes of sources and objects, versions of tools.

use crate::sh::{self, Outcome};

/// The programs and the paths of their objects, in the packages that embed them.
pub const OBJECTS: [(&str, &str); 5] = [
    ("switch", "ebpf/objects/switch.o"),
    ("clock", "ebpf/objects/clock.o"),
    ("host", "ebpf/objects/host.o"),
    ("router", "ebpf/objects/router.o"),
    ("steer", "nic/bpf/steer.o"),
];
/// Atomics need version 3 of the instruction set (Linux 5.12). Header fields are not aligned:
/// loading them byte by byte would exceed the stack limit.
pub const FLAGS: [&str; 5] = [
    "-Clinker=bpf-linker",
    "-Clink-arg=--btf",
    "-Clink-arg=--cpu-features=+allows-misaligned-mem-access",
    "-Cdebuginfo=2",
    "-Ctarget-cpu=v3",
];
/// The toolchain, then the flags, then a line per file.
const FILE: &str = "ebpf/objects/made-from.txt";
const FLAGS_LINE: &str = "flags ";

pub fn write(toolchain: &str, sources: &[String]) -> Outcome {
    let files = sources.iter().map(String::as_str).chain(OBJECTS.map(|(_, object)| object));
    let mut text = format!("{toolchain}{FLAGS_LINE}{}\n", FLAGS.join(" "));
    for file in files {
        text += &format!("{:016x} {file}\n", hash_of(file)?);
    }
    sh::write(&sh::root().join(FILE), text)
}

/// Returns the recorded versions of the tools, one per line.
pub fn toolchain() -> Outcome<String> {
    Ok(read()?.lines().take_while(|line| !line.starts_with(FLAGS_LINE)).map(|line| format!("{line}\n")).collect())
}

fn read() -> Outcome<String> {
    sh::read_text(&sh::root().join(FILE))
}

fn hash_of(file: &str) -> Outcome<u64> {
    Ok(hash(compiled(&sh::read(&sh::root().join(file))?)))
}

/// Returns the part of a file before its tests, which clippy (`items_after_test_module`) keeps
/// last.
fn compiled(bytes: &[u8]) -> &[u8] {
    const TESTS: &[u8] = b"\n#[cfg(test)]\nmod tests {";
    let tests = bytes.windows(TESTS.len()).position(|window| window == TESTS);
    &bytes[..tests.unwrap_or(bytes.len())]
}

/// FNV-1a: detects changes, but not manipulation.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what has changed since the record was written: files, or the flags.
    fn changed(record: &str) -> Vec<&str> {
        let lines = record.lines().skip_while(|line| !line.starts_with(FLAGS_LINE));
        let is_same = |line: &&str| match line.strip_prefix(FLAGS_LINE) {
            Some(flags) => flags == FLAGS.join(" "),
            None => line
                .split_once(' ')
                .is_some_and(|(recorded, file)| hash_of(file).is_ok_and(|hash| format!("{hash:016x}") == recorded)),
        };
        lines.filter(|line| !is_same(line)).collect()
    }

    #[test]
    fn the_objects_in_the_repository_are_built_from_these_sources() {
        let record = read().unwrap_or_else(|failure| panic!("{}", failure.message));
        for part in
            OBJECTS.map(|(_, object)| object).iter().chain(&["ebpf/src/switch.rs", "switch-emu/pipeline/src/lib.rs"])
        {
            assert!(record.contains(part), "{FILE} lacks {part}");
        }
        let changed = changed(&record);
        assert!(
            changed.is_empty(),
            "these have changed since the XDP objects were built: run `cargo xtask build-ebpf`\n{}",
            changed.join("\n")
        );
    }

    #[test]
    fn a_changed_source_object_or_flag_is_noticed() {
        let record = read().unwrap_or_else(|failure| panic!("{}", failure.message));
        let other = record.replace(" ebpf/objects/", "0 ebpf/objects/").replace("-Ctarget-cpu=v3", "-Ctarget-cpu=v2");
        assert_eq!(changed(&other).len(), 5, "{:?}", changed(&other));
        assert_eq!(changed("flags \n0000000000000000 ebpf/none.rs\n").len(), 2);
    }

    #[test]
    fn tests_within_a_source_are_ignored_and_every_other_byte_counts() {
        let code = b"fn f() {}\n";
        let with =
            |tests: &str| hash(compiled(&[code, "\n#[cfg(test)]\nmod tests {".as_bytes(), tests.as_bytes()].concat()));
        assert_eq!(with("1}"), with("2}"));
        assert_ne!(hash(compiled(b"fn f() {}\n")), hash(compiled(b"fn g() {}\n")));
        // Test vectors of the hash's specification.
        assert_eq!((hash(b""), hash(b"foobar")), (0xcbf2_9ce4_8422_2325, 0x8594_4171_f739_67e8));
    }
}
