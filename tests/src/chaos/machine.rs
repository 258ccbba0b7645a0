//! Faults of the machine: processes, processors, memory, the disk.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use spray_test_support::{Folder, detach_programs};

use crate::chaos::port::PORTS;
use crate::chaos::transfers::Logged;
use crate::chaos::{Event, Kind};
use crate::running::Running;

/// Bytes of memory that the receiver may allocate in addition.
const MORE_MEMORY: u64 = 24 << 20;
/// The size of the disk in MiB.
const DISK_MIB: u32 = 200;

/// A disk and a cgroup for the receiver, and processes that load the processors.
pub struct Machine {
    disk: PathBuf,
    group: Option<Group>,
    busy: Vec<Running>,
    /// Whether an event of this episode may have killed a process.
    pub may_kill: bool,
}

impl Machine {
    pub fn new(folder: &Folder) -> Self {
        let disk = folder.path().join("disk");
        fs::create_dir(&disk).unwrap();
        let size = format!("size={DISK_MIB}m");
        mount(Some("chaos"), &disk, Some("tmpfs"), MsFlags::empty(), Some(&*size)).unwrap();
        let machine = Self { disk, group: Group::new(), busy: Vec::new(), may_kill: false };
        fs::create_dir(machine.inbox()).unwrap();
        machine
    }

    /// Returns the folder to which the receiver writes.
    pub fn inbox(&self) -> PathBuf {
        self.disk.join("in")
    }

    /// Sends a signal to a process if it is running.
    pub fn signal(process: &mut Logged, signal: Signal) {
        // A process that has ended is a zombie until its parent waits for it, so its number is not
        // reused.
        if process.process.is_running() {
            kill(Pid::from_raw(process.pid() as i32), signal).unwrap();
        }
    }

    /// Starts an event of the machine; ignores others.
    pub fn begin(&mut self, event: &Event, mut receiver: Option<&mut Logged>, sender: Option<&mut Logged>) {
        use Signal::{SIGCONT, SIGINT, SIGKILL, SIGSTOP};
        let (process, signal) = match event.kind {
            Kind::ReceiverKilled => (receiver, SIGKILL),
            Kind::ReceiverInterrupted => (receiver, SIGINT),
            Kind::ReceiverStopped => (receiver, SIGSTOP),
            Kind::SenderKilled => (sender, SIGKILL),
            Kind::SenderInterrupted => (sender, SIGINT),
            Kind::SenderStopped => (sender, SIGSTOP),
            Kind::ProgramOff if PORTS[event.port].side == 0 => return detach(sender),
            Kind::ProgramOff => {
                detach(receiver.as_deref_mut());
                (receiver, SIGCONT)
            }
            Kind::InterfaceRemoved if PORTS[event.port].side == 1 => (receiver, SIGCONT),
            Kind::ProcessorsBusy => return self.load_processors(),
            Kind::MemoryTight => return self.limit_memory(receiver),
            Kind::DiskFull => return self.fill(),
            _ => return,
        };
        // An early SIGINT ends a process before its handler is installed.
        self.may_kill |= matches!(signal, SIGKILL | SIGINT);
        let Some(process) = process else { return };
        Self::signal(process, signal);
        if event.ends_receiver() {
            // The process must end before its successor starts.
            Self::signal(process, SIGCONT);
            process.process.end();
        }
    }

    /// Reverts an event of the machine.
    pub fn end(&mut self, event: &Event, receiver: Option<&mut Logged>, sender: Option<&mut Logged>) {
        let resume =
            |process: Option<&mut Logged>| process.into_iter().for_each(|it| Self::signal(it, Signal::SIGCONT));
        match event.kind {
            Kind::ReceiverStopped => resume(receiver),
            Kind::SenderStopped => resume(sender),
            Kind::ProcessorsBusy => self.busy.clear(),
            Kind::MemoryTight => self.group.iter().for_each(|group| group.limit(None)),
            Kind::DiskFull => drop(fs::remove_file(self.filler())),
            _ => {}
        }
    }

    /// Reverts all events.
    pub fn repair<'a>(&mut self, processes: impl Iterator<Item = &'a mut Logged>) {
        processes.for_each(|process| Self::signal(process, Signal::SIGCONT));
        self.busy.clear();
        self.group.iter().for_each(|group| group.limit(None));
        let _ = fs::remove_file(self.filler());
    }

    fn filler(&self) -> PathBuf {
        self.disk.join("filler")
    }

    /// Fills the disk completely.
    fn fill(&self) {
        let mut filler = fs::File::create(self.filler()).unwrap();
        let chunk = vec![1; 64 << 10];
        while filler.write(&chunk).is_ok_and(|written| written > 0) {}
    }

    fn load_processors(&mut self) {
        for _ in 0..4 {
            let mut command = Command::new("sh");
            command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
            self.busy.push(Running(command.spawn().unwrap()));
        }
    }

    fn limit_memory(&mut self, receiver: Option<&mut Logged>) {
        let (Some(group), Some(receiver)) = (&self.group, receiver) else { return };
        if receiver.process.is_running() {
            self.may_kill = true;
            group.take(receiver.pid());
            group.limit(Some(MORE_MEMORY));
        }
    }
}

/// Detaches the programs of a process if it is running.
fn detach(process: Option<&mut Logged>) {
    if let Some(process) = process
        && process.process.is_running()
    {
        // The process may end in between.
        let _ = detach_programs(process.pid());
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = umount2(&self.disk, MntFlags::MNT_DETACH);
    }
}

/// A cgroup with a memory limit.
struct Group {
    folder: PathBuf,
    limit: &'static str,
}

impl Group {
    /// Returns `None` if the machine does not allow one.
    fn new() -> Option<Self> {
        let name = format!("spray-chaos-{}", std::process::id());
        let hierarchies = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        let made = hierarchies.into_iter().find_map(|(place, limit)| {
            let folder = Path::new(place).join(&name);
            fs::create_dir(&folder).ok()?;
            let group = Self { folder, limit };
            group.folder.join(limit).exists().then_some(group)
        });
        if made.is_none() {
            eprintln!("no group with a limit of memory can be made here");
        }
        made
    }

    fn take(&self, process: u32) {
        // The process may end in between.
        let _ = fs::write(self.folder.join("cgroup.procs"), process.to_string());
    }

    /// Limits the memory to `bytes`, or removes the limit.
    fn limit(&self, bytes: Option<u64>) {
        let most = if self.limit == "memory.max" { "max" } else { "-1" };
        let text = bytes.map_or(most.into(), |bytes| bytes.to_string());
        // Fails if the group already uses more.
        let _ = fs::write(self.folder.join(self.limit), text);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}
