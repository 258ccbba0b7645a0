use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use spray_nic::device::Device;
use spray_nic::endpoint::{ConnectionError, ConnectionStats};
use spray_nic::{ConnectionId, Endpoint, EndpointEvent, MessageId, Peer, Time};

use super::format::{Answer, Description, EntryKind, HEADER, Message, Sum, WINDOW, shown};
use super::meter::Meter;
use super::outgoing::{Command, Item, Outgoing};
use super::report::{FileReport, Measured, Report};
use super::tree::Tree;
use crate::args;
use crate::failure::{Failure, Outcome};
use crate::progress::{Progress, now};
use crate::session::{End, PathOptions, Session, Step};
use crate::stop::Stop;
use crate::{note, say};

/// Keeps the connection busy, and fits the caches.
const QUEUED: u64 = 8;
/// Assumed minimum rate of the receiver's disk.
const VERDICT_BYTES_PER_S: u64 = 50_000_000;
/// In picoseconds.
const CHECK_PS: u64 = 100_000_000_000;
/// Limit of a pause while the receiver grants nothing.
const PAUSE: Duration = Duration::from_secs(300);
const CLOSING: Duration = Duration::from_secs(1);

/// Sends files and folders, and waits until the receiver has verified the SHA-256 of each file.
///
/// # Errors
/// 2 if it could not start, 1 if the transfer failed or something was refused, 130 after Ctrl-C.
pub fn send(arguments: &args::Send) -> Outcome {
    let path = PathOptions { trimming: arguments.trimming, ..PathOptions::new(&arguments.overrides)? };
    if arguments.interface.trust.trusted.len() > 1 {
        return Err(Failure::refused("several --trust: a sender connects to one receiver, and takes its key alone"));
    }
    let tree = Tree::of(&arguments.paths)?;
    let mut session = Session::open(&arguments.interface, Some(arguments.to), &path, 1, |_| {})?;
    let peer = session.peer(arguments.to)?;
    let stop = Stop::on_signals()?;
    session.confine(&tree.reach())?;
    tree.skipped.iter().for_each(|(name, what)| note!("spray: skipped {name}: {what}"));
    let mut progress = Progress::on_stderr();
    progress.phase("connecting");
    let outgoing = Outgoing::start(tree.entries.clone(), session.waker(0)).map_err(Failure::failed)?;
    let mut sending = Sending::new(tree, outgoing, peer, Duration::from_secs(arguments.interface.timeout + 1));
    let outcome = session.run(&stop, |endpoint, now| {
        progress.update(|| sending.progress());
        sending.step(endpoint, now)
    });
    progress.clear();
    let strays = session.strays();
    if sending.entries > 1 {
        sending.failed().for_each(|(path, why)| note!("spray: not sent: {path}: {why}"));
    }
    match outcome {
        Ok(()) => session.close(CLOSING),
        Err(failure) => {
            session.end();
            return Err(failure);
        }
    }
    let outcome = sending.outcome();
    let report = sending.report(&session, strays);
    say::object(&report.json())?;
    if report.has_files() {
        say!("{report}");
    }
    outcome
}

struct Pending {
    description: Description,
    stage: Stage,
    delivered: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Described,
    Reading,
    Sent(Sum),
    Withdrawn,
}

pub(super) struct Sending {
    outgoing: Outgoing,
    peer: Peer,
    /// Of answers, besides the time of the receiver's disk.
    timeout: Duration,
    connection: Option<ConnectionId>,
    connected: bool,
    name: String,
    /// An estimate before they are opened.
    entries: usize,
    bytes: u64,
    asked: usize,
    ended: bool,
    pending: HashMap<u32, Pending>,
    /// With entry and payload bytes.
    queued: HashMap<MessageId, (u32, u64)>,
    /// Excludes files that were refused.
    pub(super) delivered_bytes: u64,
    refused_bytes: u64,
    started: Instant,
    delivered_at: Instant,
    active_at: Instant,
    /// Payload bytes at the last check, and when they last grew or nothing was queued.
    acked: (u64, Time),
    check_at: Time,
    /// Kept here, since they are gone when the connection ends.
    counted: ConnectionStats,
    files: Vec<FileReport>,
    folders: u32,
    skipped: usize,
    meter: Meter,
}

impl Sending {
    pub(super) fn new(tree: Tree, outgoing: Outgoing, peer: Peer, timeout: Duration) -> Self {
        let name = match &tree.entries[..] {
            [first, rest @ ..] if rest.iter().all(|entry| !entry.named) => shown(&first.path),
            entries => format!("{} paths", entries.iter().filter(|entry| entry.named).count()),
        };
        let (entries, bytes, skipped) = (tree.entries.len() + tree.failed.len(), tree.bytes(), tree.skipped.len());
        let now = now();
        Self {
            outgoing,
            peer,
            timeout,
            connection: None,
            connected: false,
            name,
            entries,
            bytes,
            asked: 0,
            ended: false,
            pending: HashMap::new(),
            queued: HashMap::new(),
            delivered_bytes: 0,
            refused_bytes: 0,
            started: now,
            delivered_at: now,
            active_at: now,
            acked: (0, Time::ZERO),
            check_at: Time::ZERO,
            counted: ConnectionStats::default(),
            files: tree.failed.into_iter().map(|(path, why)| FileReport::failed(path, 0, why)).collect(),
            folders: 0,
            skipped,
            meter: Meter::default(),
        }
    }

    /// Ends when every entry has a verdict, with the connection open.
    pub(super) fn step<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time) -> Step {
        let connection = match self.connection {
            Some(connection) => connection,
            None => *self.connection.insert(endpoint.connect(now, self.peer, None).map_err(Failure::refused)?),
        };
        while let Some(event) = endpoint.poll_event() {
            self.on_event(&event, endpoint)?;
        }
        self.fill(endpoint, connection)?;
        if self.ended && self.pending.is_empty() && self.queued.is_empty() {
            return Err(End(Ok(())));
        }
        self.check_taking(endpoint, connection, now)?;
        Ok(self.check_timeouts()?)
    }

    pub(super) fn outcome(&self) -> Outcome {
        let why = match self.failed().collect::<Vec<_>>()[..] {
            [] => return Ok(()),
            [(_, why)] if self.entries == 1 => format!("the file was not sent: {why}"),
            ref failed => format!("{} of {} files and folders were not sent", failed.len(), self.entries),
        };
        Err(Failure::failed(why))
    }

    fn failed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(FileReport::failure)
    }

    fn on_event<D: Device>(&mut self, event: &EndpointEvent, endpoint: &Endpoint<D>) -> Step {
        match event {
            EndpointEvent::Connected { .. } => {
                self.connected = true;
                (self.started, self.active_at) = (now(), now());
            }
            EndpointEvent::Delivered { connection, message, .. } => {
                let (number, bytes) = self.queued.remove(message).unwrap_or_default();
                let pending = self.pending.get_mut(&number);
                if let Some(pending) = pending.filter(|pending| pending.stage != Stage::Withdrawn) {
                    pending.delivered += bytes;
                    self.delivered_bytes += bytes;
                }
                (self.delivered_at, self.active_at) = (now(), now());
                self.counted = endpoint.connection_stats(*connection).unwrap_or_default();
            }
            EndpointEvent::Received { data, .. } => {
                self.active_at = now();
                self.on_answer(Answer::decode(data))?;
            }
            // It closes after the last verdict; data of a refused file may be outstanding.
            EndpointEvent::Closed { .. } | EndpointEvent::Failed { error: ConnectionError::PeerClosed, .. }
                if self.ended && self.pending.is_empty() =>
            {
                return Err(End(Ok(())));
            }
            EndpointEvent::Closed { .. } => {
                let message = "the receiver closed the connection before it had confirmed everything";
                return Err(Failure::failed(message).into());
            }
            EndpointEvent::Failed { error, .. } => return Err(self.failure(*error).into()),
            _ => {}
        }
        Ok(())
    }

    fn on_answer(&mut self, answer: Option<Answer>) -> Outcome {
        const STRANGE: &str = "the receiver's answer is not understood; does it run the same version of spray?";
        let number = match answer {
            Some(Answer::Ended { reason }) => return Err(Failure::failed(format!("the receiver refused: {reason}"))),
            Some(
                Answer::Ready { number, .. }
                | Answer::Verified { number, .. }
                | Answer::Made { number }
                | Answer::Refused { number, .. },
            ) => number,
            None => return Err(Failure::failed(STRANGE)),
        };
        let Some(pending) = self.pending.get_mut(&number) else { return Err(Failure::failed(STRANGE)) };
        match (answer, pending.stage, pending.description.kind) {
            (Some(Answer::Ready { .. }), Stage::Described, EntryKind::File { .. }) => {
                pending.stage = Stage::Reading;
                self.outgoing.command(Command::Read(number));
            }
            (Some(Answer::Made { .. }), Stage::Described, EntryKind::Folder) => {
                self.folders += 1;
                self.pending.remove(&number);
            }
            (Some(Answer::Verified { sum, .. }), Stage::Sent(ours), _) => {
                let path = shown(&pending.description.path);
                if sum != ours {
                    let message = format!("what the receiver wrote of {path} has another SHA-256 than what was sent");
                    return Err(Failure::failed(message));
                }
                let bytes = pending.description.bytes();
                // The last acknowledgements may come after the verdict.
                self.delivered_bytes += bytes - pending.delivered;
                self.files.push(FileReport::verified(path, bytes, sum));
                self.pending.remove(&number);
            }
            // Its failure has been recorded.
            (Some(Answer::Refused { .. }), Stage::Withdrawn, _) => {
                self.pending.remove(&number);
            }
            (Some(Answer::Refused { reason, .. }), ..) => {
                self.outgoing.drop_file(number);
                self.fail(number, format!("the receiver refused it: {reason}"));
                self.pending.remove(&number);
            }
            _ => return Err(Failure::failed(STRANGE)),
        }
        Ok(())
    }

    fn fail(&mut self, number: u32, why: String) {
        let Some(pending) = self.pending.get_mut(&number) else { return };
        let (path, bytes) = (shown(&pending.description.path), pending.description.bytes());
        self.refused_bytes += bytes;
        self.delivered_bytes -= std::mem::take(&mut pending.delivered);
        self.files.push(FileReport::failed(path, bytes, why));
    }

    fn fill<D: Device>(&mut self, endpoint: &mut Endpoint<D>, connection: ConnectionId) -> Outcome {
        if !self.connected {
            return Ok(());
        }
        while !self.ended && self.pending.len() + self.asked < WINDOW {
            self.asked += 1;
            self.outgoing.command(Command::Open);
        }
        while (self.queued.len() as u64) < QUEUED {
            let Some(part) = self.outgoing.next() else { break };
            let Some((message, file)) = self.message(part) else { continue };
            let id = endpoint.send(connection, message).map_err(Failure::failed)?;
            self.queued.insert(id, file);
        }
        Ok(())
    }

    /// With its entry and payload bytes.
    fn message(&mut self, item: Item) -> Option<(Bytes, (u32, u64))> {
        match item {
            Item::Entry(number, description) => {
                self.asked -= 1;
                let message = Message::Entry(number, description.clone()).encode();
                self.pending.insert(number, Pending { description, stage: Stage::Described, delivered: 0 });
                Some((message.into(), (number, 0)))
            }
            Item::Failed(path, why) => {
                self.files.push(FileReport::failed(path, 0, why));
                None
            }
            Item::End(entries) => {
                self.asked -= 1;
                let first = !std::mem::replace(&mut self.ended, true);
                first.then(|| (Message::End(entries).encode().into(), (entries, 0)))
            }
            Item::Broken(number, why) => {
                self.fail(number, why);
                self.pending.get_mut(&number)?.stage = Stage::Withdrawn;
                Some((Message::Withdrawn(number).encode().into(), (number, 0)))
            }
            Item::Piece { number, message } => {
                let bytes = (message.len() - HEADER) as u64;
                // The entry may have been refused meanwhile.
                self.pending.contains_key(&number).then_some((message, (number, bytes)))
            }
            Item::Sum { number, sum } => {
                self.pending.get_mut(&number)?.stage = Stage::Sent(sum);
                Some((Message::Sum { number, sum }.encode().into(), (number, 0)))
            }
        }
    }

    /// Fails if the receiver takes none of the queued data for too long.
    //= docs/specs/endpoint.md#END-26 none of it is acknowledged within the timeout
    fn check_taking<D: Device>(&mut self, endpoint: &Endpoint<D>, connection: ConnectionId, now: Time) -> Outcome {
        if now < self.check_at {
            return Ok(());
        }
        self.check_at = now.after(CHECK_PS);
        let stats = endpoint.connection_stats(connection).unwrap_or_default();
        let acked = stats.sender.bytes_acked;
        // With nothing in flight, the receiver's disk or the reader of its output is slow.
        let limit = if stats.in_flight_bytes == 0 { PAUSE } else { self.timeout };
        let (before, since) = self.acked;
        if self.queued.is_empty() || acked > before {
            self.acked = (acked, now);
        } else if u128::from(now.since(since)) > limit.as_nanos() * 1000 {
            return Err(Failure::failed("the receiver takes nothing more, though it is there"));
        }
        Ok(())
    }

    fn check_timeouts(&self) -> Outcome {
        let is_reading = self.pending.values().any(|pending| pending.stage == Stage::Reading);
        if self.pending.is_empty() || is_reading || !self.queued.is_empty() {
            return Ok(());
        }
        let bytes = self.pending.values().map(|pending| pending.description.bytes());
        let disk = Duration::from_secs(bytes.fold(0, u64::saturating_add) / VERDICT_BYTES_PER_S);
        if now() > self.active_at + self.timeout + disk {
            return Err(Failure::failed("everything was delivered, but the receiver did not confirm the SHA-256"));
        }
        Ok(())
    }

    pub(super) fn failure(&self, error: ConnectionError) -> Failure {
        use ConnectionError::{IdleTimeout, MtuBlackHole, PeerUnresponsive};
        let silent = matches!(error, PeerUnresponsive | MtuBlackHole { .. } | IdleTimeout);
        // A description is short and fits any MTU.
        let has_pieces = self.queued.values().any(|&(_, bytes)| bytes > 0);
        let hint = match error {
            _ if silent && has_pieces && self.delivered_bytes == 0 => {
                "; short packets arrived and no long one did: a link on the way may have a smaller MTU, try less --payload"
            }
            ConnectionError::ConnectTimeout => {
                "; is `spray recv` running there, does it listen on that address, and are its --key and --psk those that this side has? Strangers get \
                 no answer"
            }
            _ if silent => "; is the way there up, at both ends, and does the receiver still run?",
            ConnectionError::Aborted => "; the receiver was stopped",
            ConnectionError::Key => {
                "; both sides take the same --key, or --trust each other's public keys, or both --insecure"
            }
            _ => "",
        };
        let failed = self.files.iter().find_map(FileReport::failure);
        let failed = failed.map_or(String::new(), |(file, why)| format!("; {file}: {why}"));
        Failure::failed(format!("the transfer failed: {error}{failed}{hint}"))
    }

    fn progress(&mut self) -> String {
        if !self.connected {
            return "connecting".into();
        }
        let done = self.delivered_bytes + self.refused_bytes;
        self.meter.line(&self.name, done, self.bytes, now())
    }

    pub(super) fn report(self, session: &Session, strays: u64) -> Report {
        let measured = Measured {
            seconds: self.delivered_at.duration_since(self.started).as_secs_f64(),
            counted: self.counted,
            own_payload_bytes: session.first().endpoint.config().flow.payload_bytes,
            freezes: session.freezes(),
            interface: Some(session.device_info()),
            strays,
            sent_bytes: self.delivered_bytes,
        };
        Report::new(self.name, self.files, self.folders, self.skipped, measured)
    }
}
