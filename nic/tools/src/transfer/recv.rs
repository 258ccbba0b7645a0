//! `spray recv`.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use spray_nic::device::Device;
use spray_nic::{ConnectionId, Endpoint, EndpointConfig, EndpointEvent, Shard, Time};

use super::arrivals::{Arrivals, Tally};
use super::format::{Answer, hex, shown};
use super::gbps;
use super::homes::{UNNAMED, check_unnamed};
use super::incoming::Incoming;
use super::meter::Meter;
use super::opener::Opener;
use super::out::{ONE_TRANSFER, Out};
use super::partial::remove_stale;
use super::patience::{Limits, Patience};
use super::refusal::Refusal;
use crate::args;
use crate::failure::{Failure, Outcome};
use crate::places::{self, HALF_OPEN, Party};
use crate::progress::{Progress, now};
use crate::say::manner;
use crate::session::{End, PathOptions, Session, Step, Taken};
use crate::stop::Stop;
use crate::{note, say};

/// How long others are told, after the one transfer has arrived, that theirs is not taken.
const FAREWELL: Duration = Duration::from_secs(1);

/// Transfers at once in a thread.
//= docs/specs/endpoint.md#END-27 16 transfers at once
const TRANSFERS: usize = 16;
/// Connections that are over and whose senders are being told so: of one address, and those of which nothing was taken.
//= docs/specs/endpoint.md#END-27 3 of an address
const ENDED_OF_ADDRESS: usize = 3;
const REFUSED: usize = 8;
/// Connections that the endpoint has room for: those that transfer, those that have, those that are refused, and those that are not open yet.
const CONNECTIONS: u32 = (2 * TRANSFERS + REFUSED + HALF_OPEN) as u32;
/// Of how many files of a transfer the user is told why they were refused.
const TOLD: u32 = 64;
/// How often senders are looked at that keep the receiver waiting.
const CHECK_PS: u64 = 100_000_000_000;
/// Receives one transfer, or with `--keep` one after the other until Ctrl-C.
///
/// # Errors
/// 2 when it could not start, 1 when the transfer failed, 130 after Ctrl-C.
pub fn recv(arguments: &args::Recv) -> Outcome {
    let out = match &arguments.out {
        Some(named) => Out::new(named, arguments.keep)?,
        None => check_unnamed().and_then(|()| Out::new(UNNAMED.as_ref(), arguments.keep))?,
    };
    if out.is_stdout() && manner().json {
        return Err(Failure::refused("--json and --out -: each takes the standard output; allowed: one of them"));
    }
    let path = PathOptions::new(&arguments.overrides)?;
    let has_room = |config: &mut EndpointConfig| config.max_connections = CONNECTIONS;
    // One transfer comes by one connection.
    let most = if arguments.keep { Shard::MOST } else { 1 };
    let own = arguments.interface.steered.from;
    let mut session = Session::open(&arguments.interface, own, &path, most, has_room)?;
    if arguments.keep {
        session.outlast_outages();
    }
    let stop = Stop::on_signals()?;
    let stale = if out.is_stdout() { 0 } else { remove_stale(&out.folder().path) };
    if stale > 0 {
        note!("spray: removed {stale} unfinished files of killed receivers from {}", out.folder().path.display());
    }
    session.confine(&out.reach())?;
    let limits = Limits::new(arguments.interface.timeout);
    let receiver = |shard| -> Outcome<Receiving> {
        let out = out.clone().waking(session.waker(shard));
        let receiving = Receiving::new(out, arguments.keep, limits, Progress::on_stderr())?;
        Ok(Receiving { interface: Some(session.taken()), ..receiving })
    };
    let mut receivers = (0..session.shards()).map(receiver).collect::<Outcome<Vec<_>>>()?;
    let whose = if arguments.interface.trust.insecure { ", for anybody (--insecure)" } else { "" };
    let (name, address) = (session.device_name(), session.config().address);
    receivers[0].progress.phase(&format!("listening on {name} as {address}{whose}; {}", out.what()));
    let steps = receivers.iter_mut().map(|receiving| |endpoint: &mut _, now| receiving.step(endpoint, now));
    let outcome = session.run_all(&stop, steps.collect());
    receivers.iter_mut().for_each(|receiving| receiving.progress.clear());
    session.end();
    receivers.into_iter().fold(outcome, |outcome, receiving| receiving.end(outcome))
}

struct Transfer {
    peer: IpAddr,
    arrivals: Arrivals,
    patience: Patience,
    /// Every entry has its verdict, or the whole transfer is refused: the sender is being told.
    over: bool,
}

/// The receiver, or one of its threads.
pub(super) struct Receiving {
    out: Out,
    keep: bool,
    limits: Limits,
    transfers: HashMap<ConnectionId, Transfer>,
    /// Those whose connection has ended, and whose last files are going to the disk.
    orphans: Vec<(IpAddr, Arrivals)>,
    /// Transfers begun: a number for each.
    begun: u32,
    /// Without `keep`: how the transfer ended that something was taken of.
    taken: Option<Outcome>,
    /// Some files came by a transfer that broke off.
    partly: bool,
    /// Since when there is one and nobody left who waits for its verdicts.
    done_since: Option<Instant>,
    /// When senders are next looked at that keep the receiver waiting.
    check_at: Time,
    progress: Progress,
    meter: Meter,
    /// What `--json` says of it.
    interface: Option<Taken>,
    /// It ends after all transfers, which have jobs for it.
    opener: Opener,
}

impl Receiving {
    pub(super) fn new(out: Out, keep: bool, limits: Limits, progress: Progress) -> Outcome<Self> {
        let failed = |error| Failure::failed(format!("cannot start a thread for the folder: {error}"));
        let opener = Opener::start(out.clone()).map_err(failed)?;
        Ok(Self {
            out,
            keep,
            limits,
            transfers: HashMap::new(),
            orphans: Vec::new(),
            begun: 0,
            taken: None,
            partly: false,
            done_since: None,
            check_at: Time::ZERO,
            progress,
            meter: Meter::new(),
            interface: None,
            opener,
        })
    }

    /// Does what the last poll of the endpoint, and the disk, have made possible.
    pub(super) fn step<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time) -> Step {
        let mut ended = false;
        while let Some(event) = endpoint.next_event() {
            ended |= self.on_event(event, endpoint, now);
        }
        ended |= self.poll_files(endpoint);
        if now >= self.check_at {
            self.check_at = now.after(CHECK_PS);
            self.check_patience(endpoint, now);
        }
        if self.transfers.values().any(|transfer| transfer.arrivals.arriving().next().is_some()) {
            let (transfers, meter) = (&self.transfers, &mut self.meter);
            self.progress.update(|| state(transfers, meter));
        }
        if self.keep { Ok(()) } else { self.check_end(ended, endpoint) }
    }

    /// The end of the command, which may find that a file got its name in the last moment.
    fn end(mut self, outcome: Outcome) -> Outcome {
        self.progress.clear();
        let open = std::mem::take(&mut self.transfers).into_values().filter(|transfer| !transfer.over);
        let open = open.map(|Transfer { peer, arrivals, .. }| (peer, arrivals));
        let rest: Vec<_> = open.chain(std::mem::take(&mut self.orphans)).collect();
        for (peer, mut arrivals) in rest {
            report_lost(&arrivals.abandon());
            match arrivals.is_complete() {
                true => self.on_complete(peer, &arrivals.tally),
                false => self.on_broken(peer, &arrivals, "the receiver was stopped"),
            }
        }
        match self.taken {
            Some(taken) if !self.keep => taken,
            _ => outcome,
        }
    }

    fn on_event<D: Device>(&mut self, event: EndpointEvent, endpoint: &mut Endpoint<D>, now: Time) -> bool {
        match event {
            EndpointEvent::Accepted { connection, peer, .. } => {
                self.progress.phase(&format!("connected: {}", peer.address));
                self.accept(connection, peer.address, endpoint, now);
            }
            EndpointEvent::Received { connection, data, .. } => self.on_message(connection, data, endpoint, now),
            EndpointEvent::Closed { connection, .. } => {
                return self.on_end(connection, "the sender closed the connection");
            }
            EndpointEvent::Failed { connection, error, .. } => return self.on_end(connection, &error.to_string()),
            _ => {}
        }
        false
    }

    fn on_message<D: Device>(&mut self, connection: ConnectionId, data: Bytes, endpoint: &mut Endpoint<D>, now: Time) {
        let mut answers = Vec::new();
        let taken = match self.transfers.get_mut(&connection) {
            Some(transfer) if !transfer.over => {
                transfer.patience.on_message(now);
                transfer.arrivals.on_message(data, &mut answers)
            }
            _ => {
                endpoint.consumed(connection, data.len() as u64);
                Ok(())
            }
        };
        self.answer(connection, &answers, endpoint);
        if let Err(refusal) = taken {
            self.refuse(connection, &refusal, endpoint);
        }
    }

    /// Takes the end of a connection. Returns whether that ended its transfer too: whole files are finished without their sender.
    fn on_end(&mut self, connection: ConnectionId, why: &str) -> bool {
        let Some(transfer) = self.transfers.remove(&connection) else { return false };
        if transfer.over { transfer.patience.has_spoken } else { self.on_gone(transfer, why) }
    }

    /// Takes a connection that has opened, for which others may have to go.
    fn accept<D: Device>(&mut self, new: ConnectionId, peer: IpAddr, endpoint: &mut Endpoint<D>, now: Time) {
        let (arrivals, patience) = (Arrivals::new(self.begun, &self.opener), Patience::new(self.limits, now));
        self.begun += 1;
        let refused = self.make_room(new, peer, endpoint, now);
        self.transfers.insert(new, Transfer { peer, arrivals, patience, over: false });
        refused.inspect(|refusal| self.refuse(new, refusal, endpoint));
        self.limit_ended(peer, endpoint);
    }

    /// Makes room for the transfer of `new`, for which another may have to end; returns why there is none otherwise.
    fn make_room<D: Device>(
        &mut self,
        new: ConnectionId,
        peer: IpAddr,
        endpoint: &mut Endpoint<D>,
        now: Time,
    ) -> Option<Refusal> {
        // Those whose senders have left have threads and files, too.
        let under_way = self.transfers.values().filter(|transfer| !transfer.over).count() + self.orphans.len();
        if under_way < TRANSFERS {
            return None;
        }
        let taken = self.transfers.iter().filter(|(_, transfer)| !transfer.over).map(|(&id, transfer)| places::Taken {
            id,
            party: Party::of(endpoint, id, transfer.peer),
            pace: transfer.patience.pace,
            overdue_ps: transfer.patience.overdue_ps(now),
        });
        match places::gives_way(&taken.collect::<Vec<_>>(), &Party::of(endpoint, new, peer)) {
            Some(id) => {
                self.give_up(id, &Refusal::new("it gave way to another sender"), endpoint);
                None
            }
            None => Some(Refusal(format!("the receiver takes from {TRANSFERS} senders at once: try later"))),
        }
    }

    /// Forgets the oldest connections that are over, of which there may be only so many: of this address, of those that were refused, and
    /// of those whose senders wait for verdicts.
    //= docs/specs/endpoint.md#END-27 the oldest is evicted
    fn limit_ended<D: Device>(&mut self, peer: IpAddr, endpoint: &mut Endpoint<D>) {
        type Kind<'a> = &'a dyn Fn(&Transfer) -> bool;
        let is_refused = |it: &Transfer| it.arrivals.tally.kept() == 0;
        let kinds: [(usize, Kind<'_>); 3] =
            [(ENDED_OF_ADDRESS, &|it| it.peer == peer), (REFUSED, &is_refused), (TRANSFERS, &|it| !is_refused(it))];
        for (most, is_of) in kinds {
            let ended = self.transfers.iter().filter(|(_, it)| it.over && is_of(it));
            let mut ended: Vec<_> = ended.map(|(&id, it)| (it.arrivals.transfer(), id)).collect();
            ended.sort_unstable_by_key(|&(begun, _)| std::cmp::Reverse(begun));
            for (_, id) in ended.split_off(most.min(ended.len())) {
                endpoint.abort(id);
                self.transfers.remove(&id);
            }
        }
    }

    /// Ends the transfers whose sender keeps the receiver waiting for too long.
    fn check_patience<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time) {
        let mut tired = Vec::new();
        for (&connection, transfer) in self.transfers.iter_mut().filter(|(_, transfer)| !transfer.over) {
            let bytes = endpoint.connection_stats(connection).map_or(0, |stats| stats.receiver.bytes);
            let checked = transfer.patience.check(bytes, transfer.arrivals.awaited(), now);
            tired.extend(checked.err().map(|refusal| (connection, refusal)));
        }
        for (connection, refusal) in tired {
            self.give_up(connection, &refusal, endpoint);
        }
    }

    /// Ends a transfer and sends its sender the reason. Complete files stay, as when it breaks off.
    fn give_up<D: Device>(&mut self, connection: ConnectionId, refusal: &Refusal, endpoint: &mut Endpoint<D>) {
        let Some(transfer) = self.transfers.remove(&connection) else { return };
        let Transfer { peer, patience, .. } = transfer;
        let arrivals = Arrivals::new(transfer.arrivals.transfer(), &self.opener);
        let ended = Transfer { peer, patience, arrivals, over: true };
        let answer = Answer::Ended { reason: refusal.0.clone() };
        // If the connection is gone, there is nobody to tell.
        let _ = endpoint.send(connection, answer.encode().into());
        endpoint.close(connection);
        self.on_gone(transfer, &refusal.0);
        self.transfers.insert(connection, ended);
    }

    /// Takes the end of a transfer that is not over, with the meaning of [`Receiving::on_end`].
    fn on_gone(&mut self, transfer: Transfer, why: &str) -> bool {
        let Transfer { peer, mut arrivals, .. } = transfer;
        self.progress.clear();
        let lost = arrivals.leave();
        report_lost(&lost);
        arrivals.give_up(lost);
        if arrivals.is_busy() || arrivals.is_complete() {
            self.orphans.push((peer, arrivals));
            return false;
        }
        self.on_broken(peer, &arrivals, why);
        true
    }

    fn on_broken(&mut self, peer: IpAddr, arrivals: &Arrivals, why: &str) {
        self.out.release(arrivals.transfer());
        self.partly |= arrivals.tally.kept() > 0;
        self.progress.clear();
        let kept = match arrivals.tally.kept() {
            0 => "none of its files is whole".into(),
            kept => format!("{kept} files and folders of it are here"),
        };
        note!("spray: the transfer from {peer} failed: {why}; {kept}");
    }

    /// Takes files that have got their name, or will not get it. Returns whether a transfer has ended.
    fn poll_files<D: Device>(&mut self, endpoint: &mut Endpoint<D>) -> bool {
        for connection in self.transfers.keys().copied().collect::<Vec<_>>() {
            let mut answers = Vec::new();
            let Some(transfer) = self.transfers.get_mut(&connection) else { continue };
            while let Some(message) = transfer.arrivals.finished() {
                //= docs/specs/endpoint.md#END-28 count as consumed
                endpoint.consumed(connection, message.len() as u64);
            }
            transfer.arrivals.poll(&mut answers);
            if transfer.over {
                continue;
            }
            let peer = transfer.peer;
            transfer.over = transfer.arrivals.is_complete();
            let over = transfer.over.then(|| transfer.arrivals.tally.clone());
            self.answer(connection, &answers, endpoint);
            if let Some(tally) = over {
                // The connection ends when the sender has the verdicts, in bounded time whatever the sender does.
                endpoint.close(connection);
                self.on_complete(peer, &tally);
            }
        }
        let mut ended = false;
        for at in (0..self.orphans.len()).rev() {
            self.orphans[at].1.poll(&mut Vec::new());
            if self.orphans[at].1.is_busy() {
                continue;
            }
            let (peer, arrivals) = self.orphans.swap_remove(at);
            ended = true;
            match arrivals.is_complete() {
                true => self.on_complete(peer, &arrivals.tally),
                false => self.on_broken(peer, &arrivals, "the sender has left"),
            }
        }
        ended
    }

    fn on_complete(&mut self, peer: IpAddr, tally: &Tally) {
        self.progress.clear();
        if tally.kept() == 0 {
            return;
        }
        let seconds = now().duration_since(tally.started).as_secs_f64();
        let told = summary(tally, &self.out, seconds);
        if self.out.is_stdout() {
            note!("{told}");
        } else {
            say!("{told}");
        }
        let shown = say::object(&self.object(peer, tally, seconds));
        let outcome = match tally.refused {
            0 => shown,
            refused => Err(Failure::failed(format!("{refused} of the transfer's files and folders were refused"))),
        };
        self.taken.get_or_insert(outcome);
    }

    fn object(&self, peer: IpAddr, tally: &Tally, seconds: f64) -> serde_json::Value {
        let one = tally.last.as_ref().filter(|_| tally.kept() == 1);
        let path = one.map_or_else(|| self.out.folder().path.clone(), |kept| kept.path.clone());
        serde_json::json!({
            "from": peer,
            "path": path.to_string_lossy(),
            "files": tally.files,
            "folders": tally.folders,
            "refused": tally.refused,
            "bytes": tally.bytes,
            "seconds": seconds,
            "goodput_gbps": gbps(tally.bytes, seconds),
            "sha256": one.map(|kept| hex(&kept.sum)),
            "interface": self.interface,
        })
    }

    /// Sends the answers, and shows refusals to the user.
    fn answer<D: Device>(&mut self, connection: ConnectionId, answers: &[Answer], endpoint: &mut Endpoint<D>) {
        let refused = self.transfers.get(&connection).map_or(0, |transfer| transfer.arrivals.tally.refused);
        for answer in answers {
            match answer {
                Answer::Refused { .. } if refused > TOLD => {}
                Answer::Refused { reason, .. } | Answer::Ended { reason } => {
                    self.progress.clear();
                    note!("spray: refused: {reason}");
                }
                _ => {}
            }
            // If the connection is gone, there is nobody to tell.
            let _ = endpoint.send(connection, answer.encode().into());
        }
    }

    /// Tells the sender why nothing more is taken of it, and ends the connection once it knows.
    fn refuse<D: Device>(&mut self, connection: ConnectionId, refusal: &Refusal, endpoint: &mut Endpoint<D>) {
        self.answer(connection, &[Answer::Ended { reason: refusal.0.clone() }], endpoint);
        if let Some(transfer) = self.transfers.get_mut(&connection) {
            transfer.over = true;
            transfer.arrivals.discard();
            self.out.release(transfer.arrivals.transfer());
        }
        endpoint.close(connection);
    }

    /// Without `--keep`: ends with the first transfer that something was taken of, or when one ended without and no other is under way.
    fn check_end<D: Device>(&mut self, ended: bool, endpoint: &mut Endpoint<D>) -> Step {
        if self.taken.is_none() {
            let is_over = ended && self.transfers.is_empty() && self.orphans.is_empty();
            let what = if self.partly { "the transfer is not whole" } else { "nothing was received" };
            return if is_over { Err(Failure::failed(what).into()) } else { Ok(()) };
        }
        let others = self.transfers.iter().filter(|(_, transfer)| !transfer.over).map(|(&id, _)| id);
        let reason = Refusal::new(ONE_TRANSFER);
        for other in others.collect::<Vec<_>>() {
            self.refuse(other, &reason, endpoint);
        }
        let is_told = |transfer: &Transfer| transfer.arrivals.tally.kept() == 0;
        if !self.transfers.values().all(is_told) {
            return Ok(());
        }
        let since = *self.done_since.get_or_insert_with(now);
        let is_over = self.transfers.is_empty() || now() > since + FAREWELL;
        self.taken.take_if(|_| is_over).map_or(Ok(()), |taken| Err(End(taken)))
    }
}

fn report_lost(lost: &[Incoming]) {
    for file in lost {
        let name = shown(&file.description.path);
        let all = file.description.bytes().map_or(String::new(), |all| format!(" of {all}"));
        note!("spray: {}{all} bytes of {name} had arrived, and were removed", file.arrived_bytes);
    }
}

fn summary(tally: &Tally, out: &Out, seconds: f64) -> String {
    let (bytes, rate) = (tally.bytes, gbps(tally.bytes, seconds));
    let line =
        |what: String, path: String| format!("received {what} into {path} in {seconds:.3} s: {rate:.2} Gb/s goodput");
    match &tally.last {
        Some(kept) if tally.kept() == 1 => {
            let told = line(format!("{bytes} bytes"), shown(&kept.path));
            format!("{told}\nSHA-256 {}, as the sender's", hex(&kept.sum))
        }
        _ => {
            let what = format!("{} files and {} folders, {bytes} bytes,", tally.files, tally.folders);
            let told = line(what, out.folder().path.display().to_string());
            format!("{told}\neach file has the sender's SHA-256")
        }
    }
}

/// What is under way: one file, or all of them together.
fn state(transfers: &HashMap<ConnectionId, Transfer>, meter: &mut Meter) -> String {
    let files: Vec<&Incoming> = transfers.values().flat_map(|transfer| transfer.arrivals.arriving()).collect();
    let name = match &files[..] {
        [file] => shown(&file.description.path),
        files => format!("{} files", files.len()),
    };
    let done = files.iter().map(|file| file.arrived_bytes).sum();
    // What a sender says of its files is not to be trusted with a sum.
    let total = files.iter().try_fold(0_u64, |sum, file| Some(sum.saturating_add(file.description.bytes()?)));
    meter.line(&name, done, total, now())
}

#[cfg(test)]
mod tests {
    use spray_core::flow::FlowConfig;
    use spray_core::path::{BalancerKind, Path};
    use spray_nic::device::{MemoryConfig, MemoryNetwork};
    use spray_nic::{EndpointConfig, Peer};
    use spray_test_support::Folder;

    use super::*;

    #[test]
    //= docs/specs/endpoint.md#END-27 3 of an address
    fn of_connections_that_are_over_the_oldest_give_way() {
        let path = Path { bdp_packets: 250, ..Path::new(1_000_000, 1_000_000_000, 3090) };
        let flow = FlowConfig::new(BalancerKind::Reps, path, 90);
        let own = "10.0.0.1".parse().unwrap();
        let config = EndpointConfig { max_connections: 200, ..EndpointConfig::new(own, [2; 6], flow) };
        let network = MemoryNetwork::new(MemoryConfig::default());
        let mut endpoint = Endpoint::new(network.attach([2; 6]), config).unwrap();
        let (folder, limits) = (Folder::new(), Limits::new(5));
        let mut receiving =
            Receiving::new(Out::new(folder.path(), true).unwrap(), true, limits, Progress::on_stderr()).unwrap();
        // So many of each address, of which something was taken or not: what is left of them all.
        for (addresses, each, kept, left) in [(1, 9, 0, 3), (1, 9, 1, 3), (30, 1, 0, 8), (30, 1, 1, 16), (16, 1, 1, 16)]
        {
            receiving.transfers.clear();
            for number in 0..addresses * each {
                let address = IpAddr::from([10, 0, 1, (number % addresses) as u8]);
                let id = endpoint.connect(Time::ZERO, Peer { address, mac: [4; 6] }, None).unwrap();
                let mut arrivals = Arrivals::new(number, &receiving.opener);
                arrivals.tally.files = kept;
                let patience = Patience::new(limits, Time::ZERO);
                receiving.transfers.insert(id, Transfer { peer: address, arrivals, patience, over: true });
                receiving.limit_ended(address, &mut endpoint);
            }
            let numbers: Vec<u32> = receiving.transfers.values().map(|it| it.arrivals.transfer()).collect();
            assert_eq!(numbers.len() as u32, left, "{addresses} addresses, {each} each, {kept} kept");
            assert!(numbers.iter().all(|&number| number >= addresses * each - left), "{numbers:?}");
        }
    }
}
