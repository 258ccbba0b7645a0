//! Restrictions of a confined process. Each test runs this test program with the name of one test
//! in a separate process.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use caps::{CapSet, Capability};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, RenameFlags, openat, renameat2};
use nix::mount::MsFlags;
use nix::sys::socket::{AddressFamily, SockFlag, SockType};
use nix::sys::stat::Mode;
use spray_nic::Ports;
use spray_nic::xdp::{ProgramError, SteerProgram, load as load_object};
use spray_test_support::{Folder, make_executable, text};

use super::*;

/// The environment variable that names the folder of a confined process. Without it, the ignored
/// tests do nothing.
const FOLDER: &str = "SPRAY_TEST_CONFINED_TO";

/// Runs the test `name` in a separate process, with this folder and another one, `outside`.
fn run(name: &str, folder: &Folder) {
    for made in ["in/deep", "outside"] {
        fs::create_dir_all(folder.path().join(made)).unwrap();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let test = format!("confine::tests::{name}");
    command.args(["--exact", &test, "--ignored", "--nocapture", "--test-threads=1"]).env(FOLDER, folder.path());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let printed = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}

fn confined_folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

#[test]
//= docs/specs/endpoint.md#END-29 the folder that its user chose
fn a_confined_writer_can_only_write_in_its_folder() {
    run("writer", &Folder::new());
}

#[test]
//= docs/specs/endpoint.md#END-29 all files but those that its user named
fn a_confined_reader_can_only_read_the_named_paths() {
    let folder = Folder::new();
    for (name, content) in [("file", "file"), ("outside/file", "secret"), ("in/deep/file", "deep")] {
        fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
        fs::write(folder.path().join(name), content).unwrap();
    }
    run("reader", &folder);
}

#[test]
//= docs/specs/endpoint.md#END-29 It keeps one capability
fn files_of_another_user_need_one_capability() {
    if !spray_test_support::has_root() {
        return;
    }
    for (name, mode) in [("writer_for_another_user", 0o755), ("reader_for_another_user", 0o700)] {
        let folder = Folder::new();
        let theirs = folder.path().join("in");
        fs::create_dir(&theirs).unwrap();
        fs::write(theirs.join("file"), "theirs").unwrap();
        fs::set_permissions(&theirs, fs::Permissions::from_mode(mode)).unwrap();
        for path in [&theirs, &theirs.join("file")] {
            std::os::unix::fs::chown(path, Some(12345), Some(12345)).unwrap();
        }
        run(name, &folder);
    }
}

/// Of `bpf`, the command is filtered and the attributes are not.
#[test]
//= docs/specs/endpoint.md#END-29 those for new sockets, processes and programs
fn of_bpf_five_commands_are_left_and_none_loads_or_finds_a_program() {
    const LOOKUP_UPDATE_INFO_LINK_DETACH: [u64; 5] = [1, 2, 15, 28, 34];
    for writes in [false, true] {
        let filter = calls::allowed(writes).unwrap();
        let is_allowed = |command: &u64| verdict(&filter, libc::SYS_bpf, *command) == ALLOW;
        let allowed: Vec<u64> = (0..1 << 12).chain([u64::from(u32::MAX)]).filter(is_allowed).collect();
        assert_eq!(allowed, LOOKUP_UPDATE_INFO_LINK_DETACH);
        assert_eq!(verdict(&filter, libc::SYS_bpf, 5), REFUSE | libc::EPERM as u32, "BPF_PROG_LOAD");
    }
}

/// With all capabilities, so that only the filter of system calls refuses.
#[test]
//= docs/specs/endpoint.md#END-29 those for new sockets, processes and programs
fn a_confined_process_loads_no_program_and_attaches_only_what_it_has_loaded() {
    if spray_test_support::has_root() {
        run("user_of_a_program", &Folder::new());
    }
}

/// Only root has privileges to give up.
#[test]
//= docs/specs/endpoint.md#END-29 A process that cannot drop its capabilities does not start
fn an_old_kernel_leaves_no_capabilities() {
    if !spray_test_support::has_root() {
        return;
    }
    for name in ["without_landlock", "without_filters", "without_capabilities"] {
        run(name, &Folder::new());
    }
    let folder = Folder::new();
    fs::create_dir(folder.path().join("in")).unwrap();
    std::os::unix::fs::chown(folder.path().join("in"), Some(12345), Some(12345)).unwrap();
    run("without_landlock_for_another_user", &folder);
}

/// Simulates a kernel without these system calls.
fn lack<const N: usize>(calls: [libc::c_long; N]) {
    let missing = seccompiler::SeccompAction::Errno(libc::ENOSYS as u32);
    let rules = calls.map(|call| (call, Vec::new())).into();
    let filter = calls::compile(rules, seccompiler::SeccompAction::Allow, missing).unwrap();
    seccompiler::apply_filter_all_threads(&filter).unwrap();
}

/// Results of a filter of system calls.
const ALLOW: u32 = 0x7fff_0000;
const REFUSE: u32 = 0x0005_0000;

/// Runs a filter as the kernel does, on a system call with this first argument.
fn verdict(filter: &[seccompiler::sock_filter], call: libc::c_long, argument: u64) -> u32 {
    let arch: u32 = match std::env::consts::ARCH {
        "x86_64" => 0xc000_003e,
        "aarch64" => 0xc000_00b7,
        _ => 0xc000_00f3,
    };
    let mut data = [0; 64];
    data[..4].copy_from_slice(&(call as u32).to_ne_bytes());
    data[4..8].copy_from_slice(&arch.to_ne_bytes());
    data[16..24].copy_from_slice(&argument.to_ne_bytes());
    let (mut at, mut value) = (0, 0);
    loop {
        let step = &filter[at];
        let jump = |is_so: bool| usize::from(if is_so { step.jt } else { step.jf });
        at += 1 + match step.code {
            // A word of the data, and a bitwise and.
            0x20 => {
                value = u32::from_ne_bytes(*data[step.k as usize..].first_chunk().unwrap());
                0
            }
            0x54 => {
                value &= step.k;
                0
            }
            // Jumps: always, and if equal, greater, or not less.
            0x05 => step.k as usize,
            0x15 => jump(value == step.k),
            0x25 => jump(value > step.k),
            0x35 => jump(value >= step.k),
            0x06 => return step.k,
            other => panic!("instruction {other:#x}"),
        };
    }
}

/// No capability is left but one for files, and no way to gain others.
fn assert_powerless(kept: &[Capability], status: &mut File) {
    let mut status_text = String::new();
    status.read_to_string(&mut status_text).unwrap();
    let kept: u64 = kept.iter().map(Capability::bitmask).sum();
    for (name, bits) in [("CapEff", kept), ("CapPrm", kept), ("CapInh", 0), ("CapBnd", 0), ("CapAmb", 0)] {
        // Only root can drop the bounding set.
        let is_so = status_text.contains(&format!("{name}:\t{bits:016x}\n"));
        assert!(is_so || name == "CapBnd" && !nix::unistd::geteuid().is_root(), "{name}, {bits}: {status_text}");
    }
    assert!(status_text.contains("NoNewPrivs:\t1\n") && status_text.contains("Seccomp:\t2\n"), "{status_text}");
    assert!(caps::set(None, CapSet::Effective, &caps::all()).is_err());
    for family in [AddressFamily::Inet, AddressFamily::Netlink, AddressFamily::Unix, AddressFamily::Packet] {
        let socket = nix::sys::socket::socket(family, SockType::Raw, SockFlag::empty(), None);
        assert_eq!(socket.unwrap_err(), Errno::EPERM, "{family:?}");
    }
    let mount = nix::mount::mount(Some("none"), "/tmp", Some("tmpfs"), MsFlags::empty(), None::<&Path>);
    assert_eq!(mount, Err(Errno::EPERM));
    assert_eq!(nix::sys::signal::kill(nix::unistd::getppid(), None), Err(Errno::EPERM));
    assert_eq!(nix::unistd::execv(c"/bin/true", &[c"true"]).unwrap_err(), Errno::EPERM);
    assert!(Command::new("/bin/true").status().is_err());
    assert_eq!(nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER), Err(Errno::EPERM));
    assert_eq!(nix::unistd::setuid(1.into()), Err(Errno::EPERM));
    assert_eq!(nix::unistd::chroot("/"), Err(Errno::EPERM));
    assert_eq!(make_executable(), Err(Errno::EPERM));
    for path in ["/etc/passwd", "/proc/1/environ", "/proc/self/mem", "/dev/null", "/"] {
        assert_eq!(open(Path::new(path), OFlag::O_RDONLY), Err(Errno::EACCES), "{path}");
    }
}

/// Asserts that threads, time and open descriptors still work.
fn assert_works() {
    let thread =
        std::thread::Builder::new().name("named".into()).spawn(|| std::thread::sleep(Duration::from_millis(1)));
    thread.unwrap().join().unwrap();
    assert!(!vec![7_u8; 64 << 20].is_empty() && std::collections::HashSet::from([1]).contains(&1));
    let copy = std::io::stderr();
    writeln!(copy.lock(), "it still speaks").unwrap();
}

fn open(path: &Path, flags: OFlag) -> Result<(), Errno> {
    openat(AT_FDCWD, path, flags, Mode::from_bits_truncate(0o644)).map(drop)
}

const CREATE: OFlag = OFlag::O_CREAT.union(OFlag::O_RDWR);

#[test]
#[ignore = "run in a process of its own"]
fn writer() {
    let Some(folder) = confined_folder() else { return };
    let mut status = File::open("/proc/thread-self/status").unwrap();
    let into = folder.join("in");
    fs::write(folder.join("outside/there"), "there").unwrap();
    confine(&Reach::Write(&into)).unwrap();
    assert_powerless(&[], &mut status);
    assert_works();
    open(&into.join("x"), CREATE).unwrap();
    fs::File::options().write(true).open(into.join("x")).unwrap().write_all(b"x").unwrap();
    // A received file is completed this way.
    renameat2(AT_FDCWD, &into.join("x"), AT_FDCWD, &into.join("deep/y"), RenameFlags::RENAME_NOREPLACE).unwrap();
    assert_eq!(fs::read(into.join("deep/y")).unwrap(), b"x");
    nix::unistd::unlinkat(AT_FDCWD, &into.join("deep/y"), nix::unistd::UnlinkatFlags::NoRemoveDir).unwrap();
    nix::sys::stat::mkdirat(AT_FDCWD, &into.join("made"), Mode::S_IRWXU).unwrap();
    let outside = folder.join("outside");
    for path in [outside.join("new"), outside.join("there"), folder.join("new")] {
        assert_eq!(open(&path, CREATE), Err(Errno::EACCES), "{path:?}");
    }
    open(&into.join("x"), CREATE).unwrap();
    let moved = renameat2(AT_FDCWD, &into.join("x"), AT_FDCWD, &outside.join("x"), RenameFlags::RENAME_NOREPLACE);
    assert!(matches!(moved, Err(Errno::EACCES | Errno::EXDEV)), "{moved:?}");
    // No file may be executed, run with another user's rights, or point elsewhere.
    let special = Mode::from_bits_truncate(0o4755);
    assert_eq!(openat(AT_FDCWD, &into.join("special"), CREATE, special).map(drop), Err(Errno::EPERM));
    let file = File::open(into.join("x")).unwrap();
    assert_eq!(nix::sys::stat::fchmod(&file, special), Err(Errno::EPERM));
    nix::sys::stat::fchmod(&file, Mode::S_IRWXU).unwrap();
    assert_eq!(nix::unistd::symlinkat("/etc", AT_FDCWD, &into.join("link")), Err(Errno::EPERM));
    assert_eq!(nix::unistd::mkfifo(&into.join("pipe"), Mode::S_IRWXU), Err(Errno::EPERM));
}

#[test]
#[ignore = "run in a process of its own"]
fn reader() {
    let Some(folder) = confined_folder() else { return };
    let mut status = File::open("/proc/thread-self/status").unwrap();
    let (file, named) = (folder.join("file"), folder.join("in"));
    let deep = named.join("deep/file");
    confine(&Reach::Read { named: vec![&file, &named], files: vec![&file, &deep] }).unwrap();
    assert_powerless(&[], &mut status);
    assert_works();
    assert_eq!((fs::read(&file).unwrap(), fs::read(&deep).unwrap()), (b"file".to_vec(), b"deep".to_vec()));
    assert_eq!(fs::read_dir(&named).unwrap().count(), 1);
    for path in [folder.join("outside/file"), folder.join("outside"), folder.clone()] {
        assert_eq!(open(&path, OFlag::O_RDONLY), Err(Errno::EACCES), "{path:?}");
    }
    for path in [file.clone(), deep, named.join("new")] {
        assert_eq!(open(&path, CREATE), Err(Errno::EACCES), "{path:?}");
    }
    assert_eq!(nix::unistd::truncate(&file, 0), Err(Errno::EPERM));
}

#[test]
#[ignore = "run in a process of its own"]
fn writer_for_another_user() {
    let Some(folder) = confined_folder() else { return };
    let mut status = File::open("/proc/thread-self/status").unwrap();
    confine(&Reach::Write(&folder.join("in"))).unwrap();
    assert_powerless(&[Capability::CAP_DAC_OVERRIDE], &mut status);
    open(&folder.join("in/new"), CREATE).unwrap();
    assert_eq!(open(&folder.join("outside/new"), CREATE), Err(Errno::EACCES));
}

#[test]
#[ignore = "run in a process of its own"]
fn reader_for_another_user() {
    let Some(folder) = confined_folder() else { return };
    let mut status = File::open("/proc/thread-self/status").unwrap();
    let file = folder.join("in/file");
    confine(&Reach::Read { named: vec![&file], files: vec![&file] }).unwrap();
    assert_powerless(&[Capability::CAP_DAC_READ_SEARCH], &mut status);
    assert_eq!(fs::read(&file).unwrap(), b"theirs");
    assert_eq!(open(Path::new("/etc/shadow"), OFlag::O_RDONLY), Err(Errno::EACCES));
}

#[test]
#[ignore = "run in a process of its own"]
fn user_of_a_program() {
    if confined_folder().is_none() {
        return;
    }
    let load = || SteerProgram::load([2, 0, 0, 0, 0, 1], &[[10, 0, 0, 1].into()], Ports::DEFAULT);
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
    let add = "link add further0 type veth peer name further1";
    assert!(Command::new("ip").args(add.split(' ')).status().unwrap().success());
    let [loopback, further] = ["lo", "further0"].map(|name| nix::net::if_::if_nametoindex(name).unwrap());
    let mut program = load().unwrap();
    program.attach(loopback).unwrap();
    drop(load().unwrap());
    rights::no_new_privileges().unwrap();
    // Between reading an object and loading its program.
    let confine = |_: &mut _| {
        calls::allow_only(true).unwrap();
        Ok(())
    };
    let refused = load_object::<ProgramError>(SteerProgram::NAME, SteerProgram::OBJECT, confine);
    assert!(matches!(refused, Err(ProgramError::NotPermitted(_))), "{refused:?}");
    // A compromised process can divert other addresses, also on further interfaces.
    program.set_own([2, 0, 0, 0, 0, 2], &[[10, 0, 0, 2].into()], Ports::DEFAULT).unwrap();
    program.attach(further).unwrap();
    assert!(program.is_attached());
    program.detach();
    assert_eq!(nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET), Err(Errno::EPERM));
}

#[test]
#[ignore = "run in a process of its own"]
fn without_landlock() {
    let Some(folder) = confined_folder() else { return };
    lack([libc::SYS_landlock_create_ruleset]);
    confine(&Reach::Write(&folder.join("in"))).unwrap();
    open(&folder.join("outside/new"), CREATE).unwrap();
    assert_eq!(open(Path::new("/proc/1/environ"), OFlag::O_RDONLY), Err(Errno::EACCES));
    assert!(UdpSocket::bind("127.0.0.1:0").is_err());
}

#[test]
#[ignore = "run in a process of its own"]
fn without_landlock_for_another_user() {
    let Some(folder) = confined_folder() else { return };
    lack([libc::SYS_landlock_create_ruleset]);
    let error = confine(&Reach::Write(&folder.join("in"))).unwrap_err().to_string();
    assert!(error.contains("belongs to another user"), "{error}");
}

#[test]
#[ignore = "run in a process of its own"]
fn without_filters() {
    let Some(folder) = confined_folder() else { return };
    lack([libc::SYS_seccomp]);
    make_executable().unwrap();
    confine(&Reach::Write(&folder.join("in"))).unwrap();
    //= docs/specs/endpoint.md#END-29 no core dump
    assert_eq!(nix::sys::prctl::get_dumpable(), Ok(false));
    for set in [CapSet::Effective, CapSet::Permitted, CapSet::Bounding] {
        assert!(caps::read(None, set).unwrap().is_empty(), "{set:?}");
    }
    assert_eq!(open(&folder.join("outside/new"), CREATE), Err(Errno::EACCES));
}

#[test]
#[ignore = "run in a process of its own"]
fn without_capabilities() {
    let Some(folder) = confined_folder() else { return };
    lack([libc::SYS_capset]);
    assert!(confine(&Reach::Write(&folder.join("in"))).is_err());
}
