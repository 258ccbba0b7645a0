//! `spray send`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path as FilePath;
use std::time::Duration;

use bytes::Bytes;
use spray_nic::{ConnectionId, EndpointEvent, MessageId, Peer};

use super::format::{Description, PIECE_BYTES, decode_verdict, hex, sha256};
use super::session::{Path, Session};
use super::{gbps, megabytes, network};
use crate::args;
use crate::failure::{Failure, Outcome};
use crate::progress::{Progress, now};
use crate::stop::Stop;

/// Pieces that wait in the connection: enough that it never runs dry, few enough to stay in the caches.
const QUEUED_PIECES: u64 = 8;
/// How long the receiver may take over its last word, on top of the timeout: it reads the whole file once more.
const VERDICT_BYTES_PER_S: u64 = 50_000_000;

/// Sends a file and waits until the receiver has confirmed its SHA-256.
///
/// # Errors
/// 2 when it could not start, 1 when the transfer failed, 130 after Ctrl-C.
pub fn send(arguments: &args::Send) -> Outcome {
    let (file, description) = describe(&arguments.file)?;
    let path = Path {
        balancer: arguments.balancer,
        evs: arguments.evs,
        gbps: arguments.gbps,
        rtt_us: arguments.rtt_us,
        trimming: arguments.trimming,
    };
    let mut session = Session::open(&arguments.interface, Some(arguments.to), &path)?;
    let peer = peer(&session, arguments)?;
    let stop = Stop::on_signals()?;
    let now_ps = session.now_ps();
    let connection = session.endpoint.connect(now_ps, peer, None).map_err(Failure::refused)?;
    let mut sending = Sending::new(file, description, connection);
    let done = sending.run(&mut session, &stop, arguments.interface.timeout);
    if done.is_err() {
        session.endpoint.abort(connection);
        session.poll();
    }
    done.map(|()| sending.report(&session))
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
    connection: ConnectionId,
    /// The message that describes the file, once sent; pieces wait for it to be delivered.
    announced: Option<MessageId>,
    queued: u64,
    delivered: u64,
    delivered_bytes: u64,
    verdict: Option<[u8; 32]>,
    closed: bool,
    started: std::time::Instant,
    took: Duration,
    counted: spray_nic::endpoint::ConnectionStats,
}

impl Sending {
    fn new(file: File, description: Description, connection: ConnectionId) -> Self {
        Self {
            file,
            description,
            connection,
            announced: None,
            queued: 0,
            delivered: 0,
            delivered_bytes: 0,
            verdict: None,
            closed: false,
            started: now(),
            took: Duration::ZERO,
            counted: Default::default(),
        }
    }

    fn run(&mut self, session: &mut Session, stop: &Stop, timeout: u64) -> Outcome {
        let mut progress = Progress::new();
        progress.phase("connecting");
        let mut deadline = None;
        while self.verdict.is_none() {
            if stop.is_set() {
                return Err(Failure::interrupted());
            }
            for event in session.poll() {
                self.on_event(event, session)?;
            }
            session.check_device()?;
            self.fill(session)?;
            progress.update(|| self.progress());
            if self.delivered == self.description.pieces() && self.announced.is_some() {
                let patience = Duration::from_secs(timeout + 1 + self.description.bytes / VERDICT_BYTES_PER_S);
                let deadline = *deadline.get_or_insert_with(|| now() + patience);
                if now() > deadline {
                    return Err(Failure::failed(
                        "everything was delivered, but the receiver did not confirm the SHA-256",
                    ));
                }
            }
        }
        self.close(session)
    }

    fn on_event(&mut self, event: EndpointEvent, session: &mut Session) -> Outcome {
        match event {
            EndpointEvent::Connected { .. } => {
                self.started = now();
                let description = Bytes::from(self.description.encode());
                let sent = session.endpoint.send(self.connection, description).map_err(Failure::failed)?;
                self.announced = Some(sent);
            }
            EndpointEvent::Delivered { message, .. } => self.on_delivered(message, session),
            EndpointEvent::Received { data, .. } => self.verdict = self.verdict.or_else(|| decode_verdict(&data)),
            EndpointEvent::Closed { .. } => self.closed = true,
            EndpointEvent::Failed { error, .. } => {
                return Err(Failure::failed(format!("the transfer failed: {error}")));
            }
            _ => {}
        }
        if self.closed && self.verdict.is_none() {
            return Err(Failure::failed("the receiver closed the connection before it had confirmed the file"));
        }
        Ok(())
    }

    fn on_delivered(&mut self, message: MessageId, session: &Session) {
        // Message 0 is the description, message i + 1 is piece i.
        if let Some(piece) = u64::from(message.0).checked_sub(1) {
            self.delivered += 1;
            self.delivered_bytes += self.description.piece_bytes(piece);
        }
        self.took = now().duration_since(self.started);
        self.counted = session.endpoint.connection_stats(self.connection).unwrap_or_default();
    }

    /// Keeps a few pieces waiting in the connection.
    fn fill(&mut self, session: &mut Session) -> Outcome {
        while self.announced.is_some()
            && self.queued < self.description.pieces()
            && self.queued < self.delivered + QUEUED_PIECES
        {
            let mut piece = vec![0; self.description.piece_bytes(self.queued) as usize];
            self.file
                .read_exact_at(&mut piece, self.queued * PIECE_BYTES)
                .map_err(|error| Failure::failed(format!("the file could not be read to its end: {error}")))?;
            session.endpoint.send(self.connection, piece.into()).map_err(Failure::failed)?;
            self.queued += 1;
        }
        Ok(())
    }

    fn progress(&self) -> String {
        let (done, total) = (self.delivered_bytes, self.description.bytes);
        let rate = gbps(done, now().duration_since(self.started).as_secs_f64());
        format!("{}: {} of {}, {rate:.2} Gb/s", self.description.name, megabytes(done), megabytes(total))
    }

    /// Closes, but does not insist: the file has arrived.
    fn close(&mut self, session: &mut Session) -> Outcome {
        session.endpoint.close(self.connection);
        let deadline = now() + Duration::from_secs(1);
        while !self.closed && now() < deadline {
            self.closed = session
                .poll()
                .iter()
                .any(|event| matches!(event, EndpointEvent::Closed { .. } | EndpointEvent::Failed { .. }));
        }
        match self.verdict {
            Some(sha256) if sha256 == self.description.sha256 => Ok(()),
            _ => Err(Failure::failed("what the receiver wrote has another SHA-256 than what was sent")),
        }
    }

    fn report(&self, session: &Session) {
        let (seconds, sender) = (self.took.as_secs_f64(), &self.counted.sender);
        println!(
            "sent {} bytes of {} in {seconds:.3} s: {:.2} Gb/s goodput, {} byte payloads",
            self.description.bytes,
            self.description.name,
            gbps(self.description.bytes, seconds),
            session.flow.payload_bytes,
        );
        println!("{} packets, {} of them sent again", sender.packets_sent, sender.retransmits);
        println!("SHA-256 {}, confirmed by the receiver", hex(&self.description.sha256));
    }
}
