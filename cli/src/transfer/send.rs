//! `spray send`.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path as FilePath;
use std::time::{Duration, Instant};

use bytes::Bytes;
use spray_nic::endpoint::ConnectionStats;
use spray_nic::{ConnectionId, EndpointEvent, MessageId, Peer};

use super::format::{Description, PIECE_BYTES, decode_verdict, hex, sha256};
use super::session::{Local, Path, Session, Step};
use super::{gbps, megabytes, network};
use crate::args;
use crate::failure::{Failure, Outcome};
use crate::progress::{Progress, now};
use crate::say::say;
use crate::stop::Stop;

/// Pieces that wait in the connection: enough to keep it busy, few enough to stay in the caches.
const QUEUED_PIECES: u64 = 8;
/// How much longer than the timeout the receiver may take for its SHA-256: it reads the whole file once more.
const VERDICT_BYTES_PER_S: u64 = 50_000_000;
/// How long closing may take: the file has arrived by then.
const CLOSING: Duration = Duration::from_secs(1);

/// Sends a file and waits until the receiver has confirmed its SHA-256.
///
/// # Errors
/// 2 when it could not start, 1 when the transfer failed, 130 after Ctrl-C.
pub fn send(arguments: &args::Send) -> Outcome {
    let path = Path {
        gbps: arguments.gbps,
        rtt_us: arguments.rtt_us,
        trimming: arguments.trimming,
        ..Path::new(&arguments.overrides)?
    };
    let (file, description) = describe(&arguments.file)?;
    let mut session = Session::open(&arguments.interface, Some(arguments.to), &path)?;
    let peer = peer(&session, arguments)?;
    let stop = Stop::on_signals()?;
    let mut progress = Progress::new();
    progress.phase("connecting");
    let patience = Duration::from_secs(arguments.interface.timeout + 1 + description.bytes / VERDICT_BYTES_PER_S);
    let mut sending = Sending {
        file,
        description,
        peer,
        patience,
        connection: None,
        announced: false,
        queued: 0,
        delivered: 0,
        delivered_bytes: 0,
        started: now(),
        delivered_at: now(),
        counted: ConnectionStats::default(),
        closing: None,
    };
    let outcome = session.run(&stop, |endpoint, now_ps| sending.step(endpoint, now_ps, &mut progress));
    progress.clear();
    if outcome.is_err() {
        session.abort(sending.connection);
    }
    outcome.map(|()| sending.report(&session))
}

fn describe(path: &FilePath) -> Outcome<(File, Description)> {
    let unreadable = |error: io::Error| Failure::refused(format!("cannot read {}: {error}", path.display()));
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(Failure::refused(format!("{} is not a file", path.display())));
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("file").to_string();
    let sha256 = sha256(&file).map_err(unreadable)?;
    Ok((file, Description { name, bytes: metadata.len(), sha256 }))
}

fn peer(session: &Session, arguments: &args::Send) -> Outcome<Peer> {
    let mac = match arguments.peer_mac {
        Some(mac) => mac.0,
        None => network::neighbour(&session.interface, &arguments.interface.interface, session.address, arguments.to)?,
    };
    Ok(Peer { address: arguments.to, mac })
}

/// A file on its way.
struct Sending {
    file: File,
    description: Description,
    peer: Peer,
    /// How long the receiver's SHA-256 may take once everything is delivered.
    patience: Duration,
    connection: Option<ConnectionId>,
    /// Set once the description is sent, which comes before the pieces.
    announced: bool,
    queued: u64,
    delivered: u64,
    delivered_bytes: u64,
    started: Instant,
    delivered_at: Instant,
    /// The connection's counters at the last delivery. The connection takes its counters with it when it ends.
    counted: ConnectionStats,
    /// When the right SHA-256 came and the connection began to close.
    closing: Option<Instant>,
}

impl Sending {
    fn step(&mut self, endpoint: &mut Local, now_ps: u64, progress: &mut Progress) -> Step {
        let connection = match self.connection {
            Some(connection) => connection,
            None => match endpoint.connect(now_ps, self.peer, None) {
                Ok(connection) => *self.connection.insert(connection),
                Err(error) => return ControlFlow::Break(Err(Failure::refused(error))),
            },
        };
        while let Some(event) = endpoint.poll_event() {
            self.on_event(&event, endpoint, connection)?;
        }
        if self.closing.is_some_and(|since| now() > since + CLOSING) {
            return ControlFlow::Break(Ok(()));
        }
        if let Err(failure) = self.fill(endpoint, connection) {
            return ControlFlow::Break(Err(failure));
        }
        progress.update(|| self.progress());
        self.check_patience()
    }

    fn on_event(&mut self, event: &EndpointEvent, endpoint: &mut Local, connection: ConnectionId) -> Step {
        match event {
            EndpointEvent::Connected { .. } => {
                self.started = now();
                self.announced = true;
                if let Err(error) = endpoint.send(connection, Bytes::from(self.description.encode())) {
                    return ControlFlow::Break(Err(Failure::failed(error)));
                }
            }
            EndpointEvent::Delivered { message, .. } => self.on_delivered(*message, endpoint, connection),
            EndpointEvent::Received { data, .. } => return self.on_verdict(decode_verdict(data), endpoint, connection),
            EndpointEvent::Closed { .. } | EndpointEvent::Failed { .. } if self.closing.is_some() => {
                return ControlFlow::Break(Ok(()));
            }
            EndpointEvent::Closed { .. } => {
                let message = "the receiver closed the connection before it had confirmed the file";
                return ControlFlow::Break(Err(Failure::failed(message)));
            }
            EndpointEvent::Failed { error, .. } => {
                return ControlFlow::Break(Err(Failure::failed(format!("the transfer failed: {error}"))));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn on_delivered(&mut self, message: MessageId, endpoint: &Local, connection: ConnectionId) {
        // Message 0 is the description, message i + 1 is piece i.
        if let Some(piece) = u64::from(message.0).checked_sub(1) {
            self.delivered += 1;
            self.delivered_bytes += self.description.piece_bytes(piece);
        }
        self.delivered_at = now();
        self.counted = endpoint.connection_stats(connection).unwrap_or_default();
    }

    fn on_verdict(&mut self, verdict: Option<[u8; 32]>, endpoint: &mut Local, connection: ConnectionId) -> Step {
        if verdict != Some(self.description.sha256) {
            let message = "what the receiver wrote has another SHA-256 than what was sent";
            return ControlFlow::Break(Err(Failure::failed(message)));
        }
        self.closing = Some(now());
        endpoint.close(connection);
        ControlFlow::Continue(())
    }

    /// Keeps a few pieces waiting in the connection.
    fn fill(&mut self, endpoint: &mut Local, connection: ConnectionId) -> Outcome {
        while self.announced && self.queued < self.description.pieces() && self.queued < self.delivered + QUEUED_PIECES
        {
            let mut piece = vec![0; self.description.piece_bytes(self.queued) as usize];
            self.file
                .read_exact_at(&mut piece, self.queued * PIECE_BYTES)
                .map_err(|error| Failure::failed(format!("the file could not be read to its end: {error}")))?;
            endpoint.send(connection, piece.into()).map_err(Failure::failed)?;
            self.queued += 1;
        }
        Ok(())
    }

    fn check_patience(&self) -> Step {
        let is_delivered = self.announced && self.delivered == self.description.pieces();
        if is_delivered && self.closing.is_none() && now() > self.delivered_at + self.patience {
            let message = "everything was delivered, but the receiver did not confirm the SHA-256";
            return ControlFlow::Break(Err(Failure::failed(message)));
        }
        ControlFlow::Continue(())
    }

    fn progress(&self) -> String {
        let (done, total) = (self.delivered_bytes, self.description.bytes);
        let rate = gbps(done, now().duration_since(self.started).as_secs_f64());
        format!("{}: {} of {}, {rate:.2} Gb/s", self.description.name, megabytes(done), megabytes(total))
    }

    fn report(&self, session: &Session) {
        let seconds = self.delivered_at.duration_since(self.started).as_secs_f64();
        say!(
            "sent {} bytes of {} in {seconds:.3} s: {:.2} Gb/s goodput, {} byte payloads",
            self.description.bytes,
            self.description.name,
            gbps(self.description.bytes, seconds),
            session.flow.payload_bytes,
        );
        say!("{} packets, {} of them sent again", self.counted.sender.packets_sent, self.counted.sender.retransmits);
        say!("SHA-256 {}, confirmed by the receiver", hex(&self.description.sha256));
    }
}
