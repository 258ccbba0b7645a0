//! `spray recv`.

use std::collections::HashMap;
use std::path::Path as FilePath;

use bytes::Bytes;
use spray_nic::{ConnectionId, EndpointEvent, MessageId};

use super::format::{encode_verdict, hex};
use super::incoming::{Incoming, Refusal};
use super::session::{Path, Session};
use super::{gbps, megabytes};
use crate::args;
use crate::failure::{Failure, Outcome};
use crate::progress::{Progress, now};
use crate::stop::Stop;

/// Receives one file, or with `--keep` one after the other until Ctrl-C.
///
/// # Errors
/// 2 when it could not start, 1 when the transfer failed, 130 after Ctrl-C.
pub fn recv(arguments: &args::Recv) -> Outcome {
    check_out(&arguments.out)?;
    let mut session = Session::open(&arguments.interface, arguments.interface.from, &Path::default())?;
    let stop = Stop::on_signals()?;
    let mut receiving =
        Receiving { out: &arguments.out, keep: arguments.keep, files: HashMap::new(), begun: 0, wrong: false };
    let mut progress = Progress::new();
    progress.phase(&format!("listening on {} as {}", arguments.interface.interface, session.address));
    let end = loop {
        if stop.is_set() {
            break Err(Failure::interrupted());
        }
        if let Err(failure) = session.check_device() {
            break Err(failure);
        }
        let events = session.poll();
        match events.into_iter().try_for_each(|event| receiving.on_event(event, &mut session, &mut progress)) {
            Ok(()) => progress.update(|| receiving.progress()),
            Err(end) => break end,
        }
    };
    receiving.files.keys().for_each(|connection| session.endpoint.abort(*connection));
    session.poll();
    end
}

fn check_out(out: &FilePath) -> Outcome {
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(FilePath::new("."));
    if out.is_dir() || parent.is_dir() {
        return Ok(());
    }
    Err(Failure::refused(format!("cannot write {}: the folder {} does not exist", out.display(), parent.display())))
}

struct Receiving<'a> {
    out: &'a FilePath,
    keep: bool,
    files: HashMap<ConnectionId, Option<Incoming>>,
    begun: u32,
    /// A file arrived whole but not as it was sent.
    wrong: bool,
}

/// `Err` carries the command's end.
type Step = Result<(), Outcome>;

impl Receiving<'_> {
    fn on_event(&mut self, event: EndpointEvent, session: &mut Session, progress: &mut Progress) -> Step {
        match event {
            EndpointEvent::Accepted { connection, peer, .. } => {
                progress.phase(&format!("connected: {}", peer.address));
                self.files.insert(connection, None);
            }
            EndpointEvent::Received { connection, message, data, .. } => {
                let placed = self.on_message(connection, message, &data, session, progress);
                return placed.or_else(|refusal| self.refuse(connection, &refusal, session, progress));
            }
            EndpointEvent::Closed { connection, .. } if self.files.remove(&connection).is_some() => {
                let wrong = std::mem::take(&mut self.wrong);
                return self.end(if wrong { Err(Failure::failed("nothing was received")) } else { Ok(()) });
            }
            EndpointEvent::Failed { connection, error, .. } if self.files.remove(&connection).is_some() => {
                progress.clear();
                eprintln!("spray: the transfer failed: {error}");
                return self.end(Err(Failure::failed("the file is not complete and was removed")));
            }
            _ => {}
        }
        Ok(())
    }

    /// The first message describes the file, the others are its pieces.
    fn on_message(
        &mut self,
        connection: ConnectionId,
        message: MessageId,
        data: &Bytes,
        session: &mut Session,
        progress: &mut Progress,
    ) -> Result<(), Refusal> {
        let Some(slot) = self.files.get_mut(&connection) else { return Ok(()) };
        let whole = match slot {
            None => {
                self.begun += 1;
                slot.insert(Incoming::begin(data, self.out, self.begun)?).is_whole()
            }
            Some(incoming) => incoming.place(message.0, data)?,
        };
        match slot {
            Some(incoming) if whole => self.wrong |= !finish(incoming, connection, session, progress)?,
            _ => {}
        }
        Ok(())
    }

    fn refuse(
        &mut self,
        connection: ConnectionId,
        refusal: &Refusal,
        session: &mut Session,
        progress: &mut Progress,
    ) -> Step {
        progress.clear();
        eprintln!("spray: refused: {}", refusal.0);
        session.endpoint.abort(connection);
        self.files.remove(&connection);
        self.end(Err(Failure::failed("nothing was received")))
    }

    fn end(&self, outcome: Outcome) -> Step {
        if self.keep { Ok(()) } else { Err(outcome) }
    }

    fn progress(&self) -> String {
        let mut incoming = self.files.values().flatten();
        incoming.next().map_or_else(
            || "waiting".into(),
            |file| {
                let rate = gbps(file.arrived_bytes, now().duration_since(file.started).as_secs_f64());
                let (done, total) = (megabytes(file.arrived_bytes), megabytes(file.description.bytes));
                format!("{}: {done} of {total}, {rate:.2} Gb/s", file.description.name)
            },
        )
    }
}

/// Says what arrived, here and to the sender; returns whether it is what was sent.
fn finish(
    incoming: &mut Incoming,
    connection: ConnectionId,
    session: &mut Session,
    progress: &mut Progress,
) -> Result<bool, Refusal> {
    let seconds = now().duration_since(incoming.started).as_secs_f64();
    let (hash, path) = incoming.finish().map_err(|error| Refusal(format!("cannot finish the file: {error}")))?;
    progress.clear();
    let (bytes, right) = (incoming.description.bytes, path.is_some());
    match path {
        Some(path) => {
            println!(
                "received {bytes} bytes into {} in {seconds:.3} s: {:.2} Gb/s goodput",
                path.display(),
                gbps(bytes, seconds)
            );
            println!("SHA-256 {}, as the sender's", hex(&hash));
        }
        None => eprintln!("spray: what arrived has SHA-256 {}, not the sender's; it was removed", hex(&hash)),
    }
    // Should the connection be gone already, the sender learns that by itself.
    let _ = session.endpoint.send(connection, Bytes::from(encode_verdict(&hash)));
    Ok(right)
}
