//! A run: concurrent transfers and events, and the checks after each episode.
#![expect(clippy::disallowed_methods, reason = "events happen to real processes at real times")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use spray_core::rng::{self, Rng};
use spray_test_support::Folder;

use crate::bpf_objects::BpfObjects;
use crate::chaos::machine::Machine;
use crate::chaos::network::Network;
use crate::chaos::port::PORTS;
use crate::chaos::transfers::{Logged, Transfer, names};
use crate::chaos::{Episode, Event, Kind};
use crate::running::{PATIENCE, wait_until};
use crate::{namespaces_of, spray};

/// The timeout of both commands, in seconds.
const TIMEOUT: &str = "3";
/// The maximum memory of a sender, and of a receiver with two transfers, including rings and
/// programs.
const MOST_MEMORY_KIB: u64 = 128 << 10;
/// After this number of failed transfers in an episode no further one is started, because all are
/// repeated.
const MOST_FAILED: usize = 3;
/// The valid exit codes of a process: completed, failed, rejected, interrupted.
const CODES: [i32; 4] = [0, 1, 2, 130];

/// The figures of a run.
#[derive(Debug, Default)]
pub struct Figures {
    /// Events by kind, and how many of these failed because another event had removed the object
    /// that they change.
    pub events: BTreeMap<Kind, [u64; 2]>,
    /// Transfers that the sender reported as delivered, those that it reported as failed, and those
    /// of killed senders.
    pub transfers: [u64; 3],
    /// The number of transfers not reported as delivered that had arrived completely.
    pub arrived_unreported: u64,
    /// The maximum memory of a sender and of a receiver, in KiB.
    pub memory_kib: [u64; 2],
    /// The memory of the last receiver after each of its episodes, in KiB.
    pub idle_kib: Vec<u64>,
    /// The number of receivers that were started.
    pub receivers: u64,
    /// The errors of senders and receivers, and their numbers.
    pub errors: BTreeMap<String, u64>,
    /// The number of BPF programs, maps and links that processes held.
    pub held: [usize; 3],
}

/// A network, a receiver, and senders at both interfaces of the other host.
pub struct Run {
    network: Network,
    machine: Machine,
    folder: Folder,
    key: String,
    inbox: PathBuf,
    receiver: Option<Logged>,
    /// The numbers of descriptors and threads of the receiver before its first transfer.
    idle: [usize; 2],
    senders: [Option<(Logged, Transfer)>; 2],
    /// Ended transfers of this episode that were not reported as delivered.
    undelivered: Vec<(usize, Transfer)>,
    /// The output of the last sender that failed.
    last_output: String,
    rng: Rng,
    begun: u64,
    bpf_objects: BpfObjects,
    figures: Figures,
}

impl Run {
    /// Creates the network and the files, and starts the receiver.
    pub fn new(seed: u64) -> Self {
        let (bpf_objects, folder, network) = (BpfObjects::before(), Folder::new(), Network::new());
        let machine = Machine::new(&folder);
        let (key, inbox) = (folder.join("key"), machine.inbox());
        assert!(spray().args(["keygen", &key]).output().unwrap().status.success());
        let (rng, figures) = (rng::stream(seed, 1), Figures::default());
        let (senders, undelivered, receiver) = (Default::default(), Vec::new(), None);
        let (idle, begun, last_output) = ([0; 2], 0, String::new());
        let mut run = Self {
            network,
            machine,
            folder,
            key,
            inbox,
            receiver,
            idle,
            senders,
            undelivered,
            last_output,
            rng,
            begun,
            bpf_objects,
            figures,
        };
        run.receive();
        run
    }

    /// Runs the events of an episode while both interfaces send; then repairs everything, and
    /// checks the invariants.
    pub fn episode(&mut self, episode: &Episode) {
        let begins = episode.events.iter().map(|event| (event.after_ms, true, event));
        let ends = episode.events.iter().map(|event| (event.after_ms + event.for_ms, false, event));
        let mut steps: Vec<_> = begins.chain(ends).collect();
        self.machine.may_kill = false;
        steps.sort_by_key(|&(at, begins, _)| (at, begins));
        let begun = Instant::now();
        for (at, begins, event) in steps {
            while begun.elapsed() < Duration::from_millis(at) {
                self.start_transfers();
                std::thread::sleep(Duration::from_millis(10));
            }
            if begins { self.begin(event) } else { self.end(event) }
        }
        self.repair();
        self.settle();
        self.assert_delivered_in_the_end();
        self.assert_receiver_is_as_it_was();
    }

    /// Ends all processes, and checks that nothing is left.
    pub fn finish(mut self) -> Figures {
        let receiver = self.receiver.as_mut().expect("the receiver of a repaired network");
        Machine::signal(receiver, nix::sys::signal::Signal::SIGINT);
        assert_eq!(receiver.process.end().code(), Some(130), "{}", receiver.stderr());
        self.bpf_objects.note(std::process::id());
        let Self { network, machine, bpf_objects, mut figures, .. } = self;
        drop((network, machine));
        bpf_objects.assert_gone();
        assert_eq!(namespaces_of(std::process::id()), [""; 0]);
        figures.held = bpf_objects.counts();
        assert!(figures.held.iter().all(|&held| held > 0), "nothing was recorded");
        figures
    }

    fn begin(&mut self, event: &Event) {
        let counts = self.figures.events.entry(event.kind).or_default();
        counts[0] += 1;
        if let Err(error) = self.network.begin(event) {
            counts[1] += 1;
            return eprintln!("not done: {:?}: {error}", event.kind);
        }
        let sender = self.senders[event.port % 2].as_mut().map(|(sender, _)| sender);
        self.machine.begin(event, self.receiver.as_mut(), sender);
    }

    fn end(&mut self, event: &Event) {
        let sender = self.senders[event.port % 2].as_mut().map(|(sender, _)| sender);
        self.machine.end(event, self.receiver.as_mut(), sender);
        if let Err(error) = self.network.end(event) {
            eprintln!("not undone yet: {:?}: {error}", event.kind);
        }
        if event.ends_receiver() {
            self.receive();
        }
    }

    /// Reverts all events; restarts the receiver if necessary.
    fn repair(&mut self) {
        let senders = self.senders.iter_mut().flatten().map(|(sender, _)| sender);
        self.machine.repair(self.receiver.iter_mut().chain(senders));
        self.network.repair_all();
        self.receive();
        let receiver = self.receiver.as_mut().expect("a started receiver");
        assert!(receiver.process.is_running(), "no receiver starts in a repaired network: {}", receiver.stderr());
    }

    /// Starts the receiver unless one is running at the destination address; one that was started
    /// without this interface has another address.
    fn receive(&mut self) {
        if let Some(mut receiver) = self.receiver.take() {
            let listens = receiver.stderr().contains(&format!(" as {}\n", PORTS[2].address));
            if listens && receiver.process.is_running() {
                self.receiver = Some(receiver);
                return;
            }
            Machine::signal(&mut receiver, nix::sys::signal::Signal::SIGINT);
            self.check_exit(&mut receiver);
        }
        let mut command = spray();
        command.args(["recv", "--keep", "--out"]).arg(&self.inbox);
        self.figures.receivers += 1;
        self.figures.idle_kib.clear();
        let mut receiver = self.start(2, &mut command, format!("receiver{}", self.figures.receivers));
        receiver.until("listening on ");
        self.idle = idle(&receiver);
        self.receiver = Some(receiver);
    }

    /// Starts a command at an interface.
    fn start(&mut self, port: usize, command: &mut std::process::Command, log: String) -> Logged {
        command.args(["--interface", PORTS[port].interface, "--key", &self.key, "--timeout", TIMEOUT]);
        let (side, routers) = (PORTS[port].side, &self.network.routers);
        let log = self.folder.path().join(log);
        Logged::start(command, log, |command| {
            crate::running::Running(routers.run_in(side, || command.spawn()).unwrap().unwrap())
        })
    }

    fn send(&mut self, lane: usize, transfer: Transfer) {
        let mut command = transfer.command();
        command.args(["--to", PORTS[2].address]);
        let sender = self.start(lane, &mut command, format!("sender{}", self.begun));
        self.senders[lane] = Some((sender, transfer));
    }

    /// Checks the processes, and starts the next transfer where one has ended.
    fn start_transfers(&mut self) {
        self.watch();
        for lane in 0..2 {
            let failed = self.undelivered.iter().filter(|(of, _)| *of == lane).count();
            if self.senders[lane].is_none() && failed < MOST_FAILED {
                self.begun += 1;
                let transfer = Transfer::new(self.folder.path(), format!("transfer{}", self.begun), &mut self.rng);
                self.send(lane, transfer);
            }
        }
    }

    /// Records memory and BPF objects, and handles the senders that have ended.
    fn watch(&mut self) {
        for lane in 0..2 {
            let Some((mut sender, transfer)) = self.senders[lane].take() else { continue };
            self.figures.memory_kib[0] = self.figures.memory_kib[0].max(sender.process.kib("VmHWM:"));
            self.bpf_objects.note(sender.pid());
            match sender.process.is_running() {
                true => self.senders[lane] = Some((sender, transfer)),
                false => self.sent(lane, &mut sender, transfer),
            }
        }
        if let Some(receiver) = &self.receiver {
            self.figures.memory_kib[1] = self.figures.memory_kib[1].max(receiver.process.kib("VmHWM:"));
            self.bpf_objects.note(receiver.pid());
        }
        let most = self.figures.memory_kib;
        assert!(most.iter().all(|&kib| kib <= MOST_MEMORY_KIB), "sender and receiver have {most:?} KiB");
    }

    /// Checks a transfer after its sender has ended.
    fn sent(&mut self, lane: usize, sender: &mut Logged, transfer: Transfer) {
        match self.check_exit(sender) {
            Some(0) => {
                assert!(
                    transfer.is_in(&self.inbox),
                    "{} was reported as delivered: {}",
                    transfer.name,
                    sender.stderr()
                );
                self.figures.transfers[0] += 1;
                transfer.remove(&self.inbox);
            }
            code => {
                self.figures.transfers[if code.is_some() { 1 } else { 2 }] += 1;
                self.last_output = sender.stderr();
                self.undelivered.push((lane, transfer));
            }
        }
    }

    /// Checks a process that has ended. Returns its exit code, unless a signal ended it.
    fn check_exit(&mut self, process: &mut Logged) -> Option<i32> {
        let (status, stderr) = (process.process.end(), process.stderr());
        assert!(!stderr.contains("panicked"), "{stderr}");
        let Some(code) = status.code() else {
            assert!(self.machine.may_kill, "{status}: {stderr}");
            return None;
        };
        assert!(CODES.contains(&code), "{code}: {stderr}");
        if code != 0 {
            let error = stderr
                .lines()
                .rfind(|line| line.starts_with("spray: "))
                .unwrap_or_else(|| panic!("no error: {stderr}"));
            assert!(code == 130 || has_remedy(error), "the error has no remedy: {stderr}");
            let plain: String = error.chars().map(|char| if char.is_ascii_digit() { '#' } else { char }).collect();
            *self.figures.errors.entry(plain).or_default() += 1;
        }
        Some(code)
    }

    /// Waits until all senders have ended, and checks the received part of undelivered transfers.
    fn settle(&mut self) {
        wait_until("the senders to end", || {
            self.watch();
            self.senders.iter().all(Option::is_none)
        });
        for (_, transfer) in &self.undelivered {
            transfer.assert_nothing_partial_in(&self.inbox);
            self.figures.arrived_unreported += u64::from(transfer.is_in(&self.inbox));
        }
    }

    /// Checks that in the repaired network failed transfers are delivered when repeated, that new
    /// ones are too, and that no other file is left.
    fn assert_delivered_in_the_end(&mut self) {
        let undelivered = std::mem::take(&mut self.undelivered);
        let fresh = (0..2).map(|lane| {
            self.begun += 1;
            (lane, Transfer::new(self.folder.path(), format!("transfer{}", self.begun), &mut self.rng))
        });
        let all: Vec<_> = fresh.collect::<Vec<_>>().into_iter().chain(undelivered).collect();
        for (lane, transfer) in all {
            self.begun += 1;
            transfer.remove_arrived(&self.inbox);
            self.send(lane, transfer);
            self.settle();
            let receiver_output = || self.receiver.as_ref().map(Logged::stderr);
            assert!(
                self.undelivered.is_empty(),
                "it fails in a repaired network: {}; {:?}",
                self.last_output,
                receiver_output()
            );
        }
        assert_eq!(names(&self.inbox), BTreeSet::new(), "nothing else is left");
    }

    fn assert_receiver_is_as_it_was(&mut self) {
        let receiver = self.receiver.as_mut().expect("a running receiver");
        let [most, mut now] = [self.idle; 2];
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && (now[0] > most[0] || now[1] > most[1] || begun.elapsed() < POLL_INTERVAL) {
            std::thread::sleep(POLL_INTERVAL);
            now = counts(receiver);
        }
        assert!(receiver.process.is_running(), "it ended: {}", receiver.stderr());
        self.figures.idle_kib.push(receiver.process.kib("VmRSS:"));
        assert!(now[0] <= most[0] && now[1] <= most[1], "it has {now:?} descriptors and threads, and had {most:?}");
    }
}

/// The interval at which a receiver's resources are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Returns the numbers of descriptors and threads.
fn counts(process: &Logged) -> [usize; 2] {
    ["fd", "task"].map(|of| process.count(of))
}

/// Returns these numbers for a receiver that waits for its first transfer, after its threads have
/// started.
fn idle(receiver: &Logged) -> [usize; 2] {
    let (mut last, mut same) = ([0; 2], 0);
    while same < 10 {
        std::thread::sleep(POLL_INTERVAL);
        let now = counts(receiver);
        (last, same) = (now, if now == last { same + 1 } else { 0 });
    }
    last
}

/// Returns whether an error states more than that something failed: a command, a setting, a remedy,
/// the system's error, or that each file was reported before.
fn has_remedy(error: &str) -> bool {
    [";", "`", "--", "(os error ", "files and folders were not sent"].iter().any(|part| error.contains(part))
}
