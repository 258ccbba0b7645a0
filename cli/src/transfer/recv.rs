//! `spray recv`.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path as FilePath;

use bytes::Bytes;
use spray_nic::{ConnectionId, EndpointEvent, MessageId};

use super::format::{encode_verdict, hex};
use super::incoming::{Incoming, Refusal};
use super::session::{Local, Path, Session, Step};
use super::{gbps, megabytes};
use crate::args;
use crate::failure::{Failure, Outcome};
use crate::progress::{Progress, now};
use crate::say::{note, say};
use crate::stop::Stop;

/// Receives one file, or with `--keep` one after the other until Ctrl-C.
///
/// # Errors
/// 2 when it could not start, 1 when the transfer failed, 130 after Ctrl-C.
pub fn recv(arguments: &args::Recv) -> Outcome {
    check_out(&arguments.out)?;
    let mut session = Session::open(&arguments.interface, arguments.interface.from, &Path::new(&arguments.overrides)?)?;
    let stop = Stop::on_signals()?;
    let mut progress = Progress::new();
    progress.phase(&format!("listening on {} as {}", arguments.interface.interface, session.address));
    let mut receiving = Receiving {
        out: &arguments.out,
        keep: arguments.keep,
        files: HashMap::new(),
        begun: 0,
        wrong: false,
        progress,
    };
    let outcome = session.run(&stop, |endpoint, _now_ps| receiving.step(endpoint));
    receiving.progress.clear();
    session.abort(receiving.files.keys().copied());
    outcome
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
    /// A file arrived whole, but its SHA-256 is wrong.
    wrong: bool,
    progress: Progress,
}

impl Receiving<'_> {
    fn step(&mut self, endpoint: &mut Local) -> Step {
        while let Some(event) = endpoint.poll_event() {
            self.on_event(event, endpoint)?;
        }
        let files = &self.files;
        self.progress.update(|| state(files));
        ControlFlow::Continue(())
    }

    fn on_event(&mut self, event: EndpointEvent, endpoint: &mut Local) -> Step {
        match event {
            EndpointEvent::Accepted { connection, peer, .. } => {
                self.progress.phase(&format!("connected: {}", peer.address));
                self.files.insert(connection, None);
            }
            EndpointEvent::Received { connection, message, data, .. } => {
                if let Err(refusal) = self.on_message(connection, message, &data, endpoint) {
                    return self.refuse(connection, &refusal, endpoint);
                }
            }
            EndpointEvent::Closed { connection, .. } if self.files.remove(&connection).is_some() => {
                let wrong = std::mem::take(&mut self.wrong);
                return self.end(if wrong { Err(Failure::failed("nothing was received")) } else { Ok(()) });
            }
            EndpointEvent::Failed { connection, error, .. } if self.files.remove(&connection).is_some() => {
                self.progress.clear();
                note!("spray: the transfer failed: {error}");
                return self.end(Err(Failure::failed("the file is not complete and was removed")));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    /// The first message describes the file, the others are its pieces.
    fn on_message(
        &mut self,
        connection: ConnectionId,
        message: MessageId,
        data: &Bytes,
        endpoint: &mut Local,
    ) -> Result<(), Refusal> {
        let Some(slot) = self.files.get_mut(&connection) else { return Ok(()) };
        let whole = match slot {
            None => {
                self.begun += 1;
                slot.insert(Incoming::begin(data, self.out, self.begun)?).is_whole()
            }
            Some(incoming) => incoming.place(message.0, data)?,
        };
        if let Some(incoming) = slot.as_mut().filter(|_| whole) {
            self.progress.clear();
            let hash = finish(incoming)?;
            self.wrong |= hash != incoming.description.sha256;
            // If the connection is gone, the sender notices that by itself.
            let _ = endpoint.send(connection, Bytes::from(encode_verdict(&hash)));
        }
        Ok(())
    }

    fn refuse(&mut self, connection: ConnectionId, refusal: &Refusal, endpoint: &mut Local) -> Step {
        self.progress.clear();
        note!("spray: refused: {}", refusal.0);
        endpoint.abort(connection);
        self.files.remove(&connection);
        self.end(Err(Failure::failed("nothing was received")))
    }

    fn end(&self, outcome: Outcome) -> Step {
        if self.keep { ControlFlow::Continue(()) } else { ControlFlow::Break(outcome) }
    }
}

fn state(files: &HashMap<ConnectionId, Option<Incoming>>) -> String {
    let Some(file) = files.values().flatten().next() else { return "waiting".into() };
    let rate = gbps(file.arrived_bytes, now().duration_since(file.started).as_secs_f64());
    let (done, total) = (megabytes(file.arrived_bytes), megabytes(file.description.bytes));
    format!("{}: {done} of {total}, {rate:.2} Gb/s", file.description.name)
}

/// Says what arrived and returns its SHA-256.
fn finish(incoming: &mut Incoming) -> Result<[u8; 32], Refusal> {
    let (bytes, seconds) = (incoming.description.bytes, now().duration_since(incoming.started).as_secs_f64());
    let (hash, path) = incoming.finish().map_err(|error| Refusal(format!("cannot finish the file: {error}")))?;
    match path {
        Some(path) => {
            let rate = gbps(bytes, seconds);
            say!("received {bytes} bytes into {} in {seconds:.3} s: {rate:.2} Gb/s goodput", path.display());
            say!("SHA-256 {}, as the sender's", hex(&hash));
        }
        None => note!("spray: what arrived has SHA-256 {}, not the sender's; it was removed", hex(&hash)),
    }
    Ok(hash)
}
