//! `spray send`.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use bytes::Bytes;
use spray_nic::device::Device;
use spray_nic::endpoint::{ConnectionError, ConnectionStats};
use spray_nic::{ConnectionId, Endpoint, EndpointEvent, MessageId, Peer};

use super::format::{Sum, Verdict, encode_sum};
use super::outgoing::{Outgoing, Part};
use super::report::{Measured, Report};
use super::session::{Path, Session, Step};
use super::{gbps, megabytes, network};
use crate::args;
use crate::failure::{Failure, Outcome};
use crate::progress::{Progress, now};
use crate::say::say;
use crate::stop::Stop;

/// Pieces that wait in the connection: enough to keep it busy, few enough to stay in the caches.
const QUEUED_PIECES: u64 = 8;
/// How much longer than the timeout the receiver may take to put the file on its disk.
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
    let outgoing = Outgoing::open(&arguments.file)?;
    let mut session = Session::open(&arguments.interface, Some(arguments.to), &path)?;
    let peer = peer(&session, arguments)?;
    let stop = Stop::on_signals()?;
    let mut progress = Progress::new();
    progress.phase("connecting");
    let mut sending = Sending::new(outgoing, peer, Duration::from_secs(arguments.interface.timeout + 1));
    let outcome = session.run(&stop, |endpoint, now_ps| {
        progress.update(|| sending.progress());
        sending.step(endpoint, now_ps)
    });
    progress.clear();
    if outcome.is_err() {
        session.abort(sending.connection);
    }
    outcome?;
    let report = sending.report(session.flow.payload_bytes, session.freezes);
    if arguments.json {
        say!("{}", report.json()?)
    } else {
        say!("{report}")
    }
    Ok(())
}

fn peer(session: &Session, arguments: &args::Send) -> Outcome<Peer> {
    let mac = match arguments.peer_mac {
        Some(mac) => mac.0,
        None => network::neighbour(&session.interface, &arguments.interface.interface, session.address, arguments.to)?,
    };
    Ok(Peer { address: arguments.to, mac })
}

/// A file on its way.
pub(super) struct Sending {
    outgoing: Outgoing,
    peer: Peer,
    /// How long the receiver's verdict may take once everything is delivered.
    patience: Duration,
    connection: Option<ConnectionId>,
    /// The description is delivered: pieces may follow, and none can overtake it.
    announced: bool,
    /// Pieces that were handed to the connection.
    queued: u64,
    /// The SHA-256 of what was sent, once it was handed to the connection too: after the last piece.
    sum: Option<Sum>,
    /// Messages that the receiver has.
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
    /// `timeout` is how long the receiver may take for its verdict on an empty file.
    pub(super) fn new(outgoing: Outgoing, peer: Peer, timeout: Duration) -> Self {
        let patience = timeout + Duration::from_secs(outgoing.description.bytes / VERDICT_BYTES_PER_S);
        Self {
            outgoing,
            peer,
            patience,
            connection: None,
            announced: false,
            queued: 0,
            sum: None,
            delivered: 0,
            delivered_bytes: 0,
            started: now(),
            delivered_at: now(),
            counted: ConnectionStats::default(),
            closing: None,
        }
    }

    /// Does what the last poll of the endpoint has made possible.
    pub(super) fn step<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now_ps: u64) -> Step {
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
        self.check_patience()
    }

    fn on_event<D: Device>(
        &mut self,
        event: &EndpointEvent,
        endpoint: &mut Endpoint<D>,
        connection: ConnectionId,
    ) -> Step {
        match event {
            EndpointEvent::Connected { .. } => {
                self.started = now();
                if let Err(error) = endpoint.send(connection, Bytes::from(self.outgoing.description.encode())) {
                    return ControlFlow::Break(Err(Failure::failed(error)));
                }
            }
            EndpointEvent::Delivered { message, .. } => self.on_delivered(*message, endpoint, connection),
            EndpointEvent::Received { data, .. } => {
                return self.on_verdict(Verdict::decode(data), endpoint, connection);
            }
            EndpointEvent::Closed { .. } | EndpointEvent::Failed { .. } if self.closing.is_some() => {
                return ControlFlow::Break(Ok(()));
            }
            EndpointEvent::Closed { .. } => {
                let message = "the receiver closed the connection before it had confirmed the file";
                return ControlFlow::Break(Err(Failure::failed(message)));
            }
            EndpointEvent::Failed { error, .. } => return ControlFlow::Break(Err(self.failure(*error))),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn on_delivered<D: Device>(&mut self, message: MessageId, endpoint: &Endpoint<D>, connection: ConnectionId) {
        // Message 0 is the description, message i + 1 is piece i, and the last one is the SHA-256, which counts no bytes.
        match u64::from(message.0).checked_sub(1) {
            None => self.announced = true,
            Some(piece) => {
                self.delivered += 1;
                self.delivered_bytes += self.outgoing.description.piece_bytes(piece);
            }
        }
        self.delivered_at = now();
        self.counted = endpoint.connection_stats(connection).unwrap_or_default();
    }

    fn on_verdict<D: Device>(
        &mut self,
        verdict: Option<Verdict>,
        endpoint: &mut Endpoint<D>,
        connection: ConnectionId,
    ) -> Step {
        let failure = match verdict {
            Some(Verdict::Verified(sum)) if Some(sum) == self.sum => {
                self.closing = Some(now());
                endpoint.close(connection);
                return ControlFlow::Continue(());
            }
            Some(Verdict::Refused(reason)) => format!("the receiver refused the file: {reason}"),
            Some(Verdict::Verified(_)) => "what the receiver wrote has another SHA-256 than what was sent".into(),
            None => "the receiver's answer is not understood; does it run the same version of spray?".into(),
        };
        ControlFlow::Break(Err(Failure::failed(failure)))
    }

    /// Keeps a few pieces waiting in the connection, and then the SHA-256.
    fn fill<D: Device>(&mut self, endpoint: &mut Endpoint<D>, connection: ConnectionId) -> Outcome {
        while self.announced && self.sum.is_none() && self.queued < self.delivered + QUEUED_PIECES {
            let message = match self.outgoing.next()? {
                None => break,
                Some(Part::Piece(piece)) => {
                    self.queued += 1;
                    piece
                }
                Some(Part::Sum(sum)) => encode_sum(self.sum.insert(sum)).into(),
            };
            endpoint.send(connection, message).map_err(Failure::failed)?;
        }
        Ok(())
    }

    fn check_patience(&self) -> Step {
        // The pieces and their SHA-256.
        let is_delivered = self.delivered == self.outgoing.description.pieces() + 1;
        if is_delivered && self.closing.is_none() && now() > self.delivered_at + self.patience {
            let message = "everything was delivered, but the receiver did not confirm the SHA-256";
            return ControlFlow::Break(Err(Failure::failed(message)));
        }
        ControlFlow::Continue(())
    }

    /// Why the connection failed, and what it may come from.
    fn failure(&self, error: ConnectionError) -> Failure {
        let silent = matches!(error, ConnectionError::PeerUnresponsive | ConnectionError::IdleTimeout);
        // The description is short: it fits every link.
        let hint = match error {
            _ if silent && self.announced && self.queued > 0 && self.delivered == 0 => {
                "; short packets arrived and no long one did: a link on the way may have a smaller MTU, try less --payload"
            }
            ConnectionError::ConnectTimeout => "; is `spray recv` running there, and does it listen on that address?",
            ConnectionError::Aborted => "; the receiver was stopped",
            _ => "",
        };
        Failure::failed(format!("the transfer failed: {error}{hint}"))
    }

    fn progress(&self) -> String {
        if !self.announced {
            return "connecting".into();
        }
        let (done, total) = (self.delivered_bytes, self.outgoing.description.bytes);
        let rate = gbps(done, now().duration_since(self.started).as_secs_f64());
        let name = self.outgoing.description.name.display();
        format!("{name}: {} of {}, {rate:.2} Gb/s", megabytes(done), megabytes(total))
    }

    /// What was sent, and how.
    pub(super) fn report(&self, own_payload_bytes: u32, freezes: u64) -> Report {
        Report::new(
            &self.outgoing.description,
            self.sum.unwrap_or_default(),
            &Measured {
                seconds: self.delivered_at.duration_since(self.started).as_secs_f64(),
                counted: self.counted,
                own_payload_bytes,
                freezes,
            },
        )
    }
}
