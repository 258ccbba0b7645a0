//! `spray recv`.

use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::path::{Path as FilePath, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use spray_nic::device::Device;
use spray_nic::{ConnectionId, Endpoint, EndpointEvent, MessageId};

use super::format::{Verdict, hex};
use super::incoming::{Incoming, Kept, Refusal};
use super::partial::{folder_of, remove_stale};
use super::session::{Path, Session, Step};
use super::{gbps, megabytes};
use crate::args;
use crate::failure::{Failure, Outcome};
use crate::progress::{Progress, now};
use crate::say::{note, say};
use crate::stop::Stop;

/// How long others are told, after the one file has arrived, that theirs is not taken.
const FAREWELL: Duration = Duration::from_secs(1);

/// Receives one file, or with `--keep` one after the other until Ctrl-C.
///
/// # Errors
/// 2 when it could not start, 1 when the transfer failed, 130 after Ctrl-C.
pub fn recv(arguments: &args::Recv) -> Outcome {
    let folder = check_out(&arguments.out)?;
    let mut session = Session::open(&arguments.interface, arguments.interface.from, &Path::new(&arguments.overrides)?)?;
    let stop = Stop::on_signals()?;
    let stale = remove_stale(folder);
    if stale > 0 {
        note!("spray: removed {stale} unfinished files of killed runs from {}", folder.display());
    }
    let mut receiving = Receiving::new(&arguments.out, arguments.keep, Progress::new());
    receiving.progress.phase(&format!("listening on {} as {}", arguments.interface.interface, session.address));
    let outcome = session.run(&stop, |endpoint, _now_ps| receiving.step(endpoint));
    session.abort(receiving.transfers.keys().copied());
    receiving.end(outcome)
}

/// The folder that files are written in.
fn check_out(out: &FilePath) -> Outcome<&FilePath> {
    let folder = if out.is_dir() { out } else { folder_of(out) };
    if folder.is_dir() {
        return Ok(folder);
    }
    Err(Failure::refused(format!("cannot write {}: the folder {} does not exist", out.display(), folder.display())))
}

/// A connection, and what became of its file.
struct Transfer {
    peer: IpAddr,
    state: State,
}

enum State {
    /// Nothing has come yet.
    Silent,
    Arriving(Incoming),
    /// The file has its name and the sender is being told.
    Kept,
    /// The sender is being told why not.
    Refused,
}

/// The receiver.
pub(super) struct Receiving<'a> {
    out: &'a FilePath,
    keep: bool,
    transfers: HashMap<ConnectionId, Transfer>,
    /// Files that were whole when their connection ended.
    orphans: Vec<Incoming>,
    /// Files begun: a number for each.
    begun: u32,
    /// Files that have their name.
    kept: Vec<PathBuf>,
    /// Since when there is a file and nobody left who waits for a confirmation.
    done_since: Option<Instant>,
    progress: Progress,
}

impl<'a> Receiving<'a> {
    pub(super) fn new(out: &'a FilePath, keep: bool, progress: Progress) -> Self {
        let (transfers, orphans, kept) = (HashMap::new(), Vec::new(), Vec::new());
        Self { out, keep, transfers, orphans, begun: 0, kept, done_since: None, progress }
    }

    /// Does what the last poll of the endpoint, and the disk, have made possible.
    pub(super) fn step<D: Device>(&mut self, endpoint: &mut Endpoint<D>) -> Step {
        let mut ended = false;
        while let Some(event) = endpoint.poll_event() {
            ended |= self.on_event(event, endpoint);
        }
        ended |= self.poll_files(endpoint);
        let transfers = &self.transfers;
        self.progress.update(|| state(transfers));
        if self.keep { ControlFlow::Continue(()) } else { self.check_end(ended, endpoint) }
    }

    /// The end of the command, which may find that a file got its name in the last moment.
    fn end(mut self, outcome: Outcome) -> Outcome {
        self.progress.clear();
        let arriving = std::mem::take(&mut self.transfers).into_values().filter_map(|transfer| match transfer.state {
            State::Arriving(incoming) => Some(incoming),
            State::Silent | State::Kept | State::Refused => None,
        });
        let rest: Vec<Incoming> = arriving.chain(std::mem::take(&mut self.orphans)).collect();
        for incoming in rest {
            let (bytes, started) = (incoming.description.bytes, incoming.started);
            if let Some(kept) = incoming.abandon() {
                self.on_kept(kept, bytes, started);
            }
        }
        if self.keep || self.kept.is_empty() { outcome } else { Ok(()) }
    }

    /// Takes an event. Returns whether a transfer has ended.
    fn on_event<D: Device>(&mut self, event: EndpointEvent, endpoint: &mut Endpoint<D>) -> bool {
        match event {
            EndpointEvent::Accepted { connection, peer, .. } => {
                self.progress.phase(&format!("connected: {}", peer.address));
                self.transfers.insert(connection, Transfer { peer: peer.address, state: State::Silent });
            }
            EndpointEvent::Received { connection, message, data, .. } => {
                if let Err(refusal) = self.on_message(connection, message, &data) {
                    self.refuse(connection, &refusal, endpoint);
                }
                endpoint.recycle(data);
            }
            EndpointEvent::Closed { connection, .. } => {
                return self.on_end(connection, "the sender closed the connection");
            }
            EndpointEvent::Failed { connection, error, .. } => return self.on_end(connection, &error.to_string()),
            _ => {}
        }
        false
    }

    /// The first message describes the file, the others are its pieces and their SHA-256.
    fn on_message(&mut self, connection: ConnectionId, message: MessageId, data: &Bytes) -> Result<(), Refusal> {
        let Some(transfer) = self.transfers.get_mut(&connection) else { return Ok(()) };
        match &mut transfer.state {
            State::Silent if message == MessageId(0) => {
                self.begun += 1;
                transfer.state = State::Arriving(Incoming::begin(data, self.out, self.begun)?);
                Ok(())
            }
            State::Silent => Err(Refusal("the file's first piece came before its description".into())),
            State::Arriving(incoming) => incoming.place(message.0, data),
            // What was under way when it was refused.
            State::Kept | State::Refused => Ok(()),
        }
    }

    /// Takes the end of a connection. Returns whether that ended its transfer too: a whole file is finished without its sender.
    fn on_end(&mut self, connection: ConnectionId, why: &str) -> bool {
        let Some(Transfer { peer, state }) = self.transfers.remove(&connection) else { return false };
        let lost = match state {
            State::Kept | State::Refused => return true,
            State::Arriving(incoming) if incoming.is_whole() => {
                self.orphans.push(incoming);
                return false;
            }
            State::Arriving(incoming) => {
                let (bytes, all) = (incoming.arrived_bytes, incoming.description.bytes);
                let name = incoming.description.name.display();
                format!("{bytes} of {all} bytes of {name} had arrived, and were removed")
            }
            State::Silent => "it had described no file".into(),
        };
        self.progress.clear();
        note!("spray: the transfer from {peer} failed: {why}; {lost}");
        true
    }

    /// Takes files that have got their name, or will not get it. Returns whether a transfer has ended.
    fn poll_files<D: Device>(&mut self, endpoint: &mut Endpoint<D>) -> bool {
        let ending = |transfer: &mut Transfer| match &mut transfer.state {
            State::Arriving(incoming) => {
                incoming.ending().map(|ending| (ending, incoming.description.bytes, incoming.started))
            }
            State::Silent | State::Kept | State::Refused => None,
        };
        let endings: Vec<_> =
            self.transfers.iter_mut().filter_map(|(&id, transfer)| Some((id, ending(transfer)?))).collect();
        for (connection, (ending, bytes, started)) in endings {
            match ending {
                Ok(kept) => {
                    self.answer(connection, State::Kept, &Verdict::Verified(kept.sum), endpoint);
                    self.on_kept(kept, bytes, started);
                }
                Err(refusal) => self.refuse(connection, &refusal, endpoint),
            }
        }
        let mut ended = false;
        for at in (0..self.orphans.len()).rev() {
            let Some(ending) = self.orphans[at].ending() else { continue };
            let incoming = self.orphans.swap_remove(at);
            ended = true;
            match ending {
                Ok(kept) => self.on_kept(kept, incoming.description.bytes, incoming.started),
                Err(Refusal(reason)) => note!("spray: refused: {reason}"),
            }
        }
        ended
    }

    fn on_kept(&mut self, kept: Kept, bytes: u64, started: Instant) {
        let seconds = now().duration_since(started).as_secs_f64();
        let rate = gbps(bytes, seconds);
        self.progress.clear();
        say!("received {bytes} bytes into {} in {seconds:.3} s: {rate:.2} Gb/s goodput", kept.path.display());
        say!("SHA-256 {}, as the sender's", hex(&kept.sum));
        self.kept.push(kept.path);
    }

    /// Tells the sender why, and ends the connection once it knows.
    fn refuse<D: Device>(&mut self, connection: ConnectionId, refusal: &Refusal, endpoint: &mut Endpoint<D>) {
        self.progress.clear();
        note!("spray: refused: {}", refusal.0);
        self.answer(connection, State::Refused, &Verdict::Refused(refusal.0.clone()), endpoint);
    }

    /// Sends the verdict. The connection ends when the sender has it, in bounded time whatever the sender does.
    fn answer<D: Device>(
        &mut self,
        connection: ConnectionId,
        state: State,
        verdict: &Verdict,
        endpoint: &mut Endpoint<D>,
    ) {
        if let Some(transfer) = self.transfers.get_mut(&connection) {
            transfer.state = state;
        }
        // If the connection is gone, there is nobody to tell.
        let _ = endpoint.send(connection, verdict.encode().into());
        endpoint.close(connection);
    }

    /// Without `--keep`: ends with the first file, or when a transfer ended without one and no other is under way.
    fn check_end<D: Device>(&mut self, ended: bool, endpoint: &mut Endpoint<D>) -> Step {
        if self.kept.is_empty() {
            let is_over = ended && self.transfers.is_empty() && self.orphans.is_empty();
            return if is_over {
                ControlFlow::Break(Err(Failure::failed("nothing was received")))
            } else {
                ControlFlow::Continue(())
            };
        }
        let is_other = |transfer: &Transfer| matches!(transfer.state, State::Silent | State::Arriving(_));
        let others = self.transfers.iter().filter(|(_, transfer)| is_other(transfer)).map(|(&id, _)| id);
        let reason =
            Refusal("the receiver has got another file and takes only one (`spray recv --keep` takes more)".into());
        for other in others.collect::<Vec<_>>() {
            self.refuse(other, &reason, endpoint);
        }
        if self.transfers.values().any(|transfer| matches!(transfer.state, State::Kept)) {
            return ControlFlow::Continue(());
        }
        let since = *self.done_since.get_or_insert_with(now);
        let is_over = self.transfers.is_empty() || now() > since + FAREWELL;
        if is_over { ControlFlow::Break(Ok(())) } else { ControlFlow::Continue(()) }
    }
}

fn state(transfers: &HashMap<ConnectionId, Transfer>) -> String {
    let arriving = transfers.values().find_map(|transfer| match &transfer.state {
        State::Arriving(incoming) => Some(incoming),
        State::Silent | State::Kept | State::Refused => None,
    });
    let Some(file) = arriving else { return "waiting".into() };
    let rate = gbps(file.arrived_bytes, now().duration_since(file.started).as_secs_f64());
    let (done, total) = (megabytes(file.arrived_bytes), megabytes(file.description.bytes));
    format!("{}: {done} of {total}, {rate:.2} Gb/s", file.description.name.display())
}
