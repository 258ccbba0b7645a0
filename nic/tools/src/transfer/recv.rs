use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use spray_nic::device::Device;
use spray_nic::{ConnectionId, Endpoint, EndpointConfig, EndpointEvent, Shard, Time};

use super::arrivals::{Arrivals, Tally};
use super::format::{Answer, hex, shown};
use super::gbps;
use super::homes::{DEFAULT, check_default};
use super::incoming::Incoming;
use super::meter::Meter;
use super::opener::Opener;
use super::out::{ONE_TRANSFER, Out};
use super::partial::remove_stale;
use super::refusal::Refusal;
use super::timeouts::{Limits, Timeouts};
use crate::args;
use crate::failure::{Failure, Outcome};
use crate::places::{self, HALF_OPEN, Party};
use crate::progress::{Progress, now};
use crate::say::output_options;
use crate::session::{DeviceInfo, End, PathOptions, Session, Step};
use crate::stop::Stop;
use crate::{note, say};

/// How long further senders are refused after the only transfer has completed.
const FAREWELL: Duration = Duration::from_secs(1);

/// Concurrent transfers of a thread.
//= docs/specs/endpoint.md#END-27 16 transfers at once
const TRANSFERS: usize = 16;
/// Limits of finished connections: of one address, and of those without any stored entry.
//= docs/specs/endpoint.md#END-27 3 of an address
const ENDED_OF_ADDRESS: usize = 3;
const REFUSED: usize = 8;
/// Active, finished, refused and half-open connections.
const CONNECTIONS: u32 = (2 * TRANSFERS + REFUSED + HALF_OPEN) as u32;
/// Limit of refused files that are reported to the user, by transfer.
const REPORTED: u32 = 64;
/// In picoseconds.
const CHECK_PS: u64 = 100_000_000_000;
/// Receives one transfer, or any number with `--keep`.
///
/// # Errors
/// 2 if it could not start, 1 if the transfer failed, 130 after Ctrl-C.
pub fn recv(arguments: &args::Recv) -> Outcome {
    let out = match &arguments.out {
        Some(named) => Out::new(named, arguments.keep)?,
        None => check_default().and_then(|()| Out::new(DEFAULT.as_ref(), arguments.keep))?,
    };
    if out.is_stdout() && output_options().json {
        return Err(Failure::refused("--json and --out -: each takes the standard output; allowed: one of them"));
    }
    let path = PathOptions::new(&arguments.overrides)?;
    let has_room = |config: &mut EndpointConfig| config.max_connections = CONNECTIONS;
    // One transfer uses one connection.
    let most = if arguments.keep { Shard::MOST } else { 1 };
    let own = arguments.interface.steered.from;
    let mut session = Session::open(&arguments.interface, own, &path, most, has_room)?;
    if arguments.keep {
        session.outlast_outages();
    }
    let stop = Stop::on_signals()?;
    let stale = if out.is_stdout() { 0 } else { remove_stale(&out.folder.path) };
    if stale > 0 {
        note!("spray: removed {stale} unfinished files of killed receivers from {}", out.folder.path.display());
    }
    session.confine(&out.reach())?;
    let limits = Limits::new(arguments.interface.timeout);
    let receiver = |shard| -> Outcome<Receiving> {
        let mut out = out.clone();
        out.waker = session.waker(shard);
        let receiving = Receiving::new(out, arguments.keep, limits, Progress::on_stderr())?;
        Ok(Receiving { interface: Some(session.device_info()), ..receiving })
    };
    let mut receivers = (0..session.shards()).map(receiver).collect::<Outcome<Vec<_>>>()?;
    let whose = if arguments.interface.trust.insecure { ", for anybody (--insecure)" } else { "" };
    let (name, address) = (session.name.clone(), session.first().endpoint.config().address);
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
    timeouts: Timeouts,
    over: bool,
}

/// The state of one receiver thread.
pub(super) struct Receiving {
    out: Out,
    keep: bool,
    limits: Limits,
    transfers: HashMap<ConnectionId, Transfer>,
    /// Transfers after the end of their connection, while files are being completed.
    orphans: Vec<(IpAddr, Arrivals)>,
    begun: u32,
    /// Without `keep`: the outcome of the first transfer that stored something.
    taken: Option<Outcome>,
    partly: bool,
    /// Since when all senders of accepted transfers have their verdicts.
    done_since: Option<Instant>,
    check_at: Time,
    progress: Progress,
    meter: Meter,
    interface: Option<DeviceInfo>,
    /// Declared last, since it ends after all transfers.
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
            meter: Meter::default(),
            interface: None,
            opener,
        })
    }

    pub(super) fn step<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time) -> Step {
        let mut ended = false;
        while let Some(event) = endpoint.next_event() {
            ended |= self.on_event(event, endpoint, now);
        }
        ended |= self.poll_files(endpoint);
        if now >= self.check_at {
            self.check_at = now.after(CHECK_PS);
            self.check_timeouts(endpoint, now);
        }
        if self.transfers.values().any(|transfer| !transfer.arrivals.files.is_empty()) {
            let (transfers, meter) = (&self.transfers, &mut self.meter);
            self.progress.update(|| state(transfers, meter));
        }
        if self.keep { Ok(()) } else { self.check_end(ended, endpoint) }
    }

    /// Files may have completed at the last moment.
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
                transfer.timeouts.on_message(now);
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

    /// Returns whether the transfer ended, too: complete files are finished without the sender.
    fn on_end(&mut self, connection: ConnectionId, why: &str) -> bool {
        let Some(transfer) = self.transfers.remove(&connection) else { return false };
        if transfer.over { transfer.timeouts.has_sent } else { self.on_gone(transfer, why) }
    }

    fn accept<D: Device>(&mut self, new: ConnectionId, peer: IpAddr, endpoint: &mut Endpoint<D>, now: Time) {
        let (arrivals, timeouts) = (Arrivals::new(self.begun, &self.opener), Timeouts::new(self.limits, now));
        self.begun += 1;
        let refused = self.make_room(&Party::of(endpoint, new, peer), endpoint, now);
        self.transfers.insert(new, Transfer { peer, arrivals, timeouts, over: false });
        refused.inspect(|refusal| self.refuse(new, refusal, endpoint));
        self.limit_ended(peer, endpoint);
    }

    /// Preempts another transfer if necessary; returns a refusal if that is not possible.
    fn make_room<D: Device>(&mut self, new: &Party, endpoint: &mut Endpoint<D>, now: Time) -> Option<Refusal> {
        // Orphans use threads and files, too.
        let under_way = self.transfers.values().filter(|transfer| !transfer.over).count() + self.orphans.len();
        if under_way < TRANSFERS {
            return None;
        }
        let taken = self.transfers.iter().filter(|(_, transfer)| !transfer.over).map(|(&id, transfer)| places::Slot {
            id,
            party: Party::of(endpoint, id, transfer.peer),
            pace: transfer.timeouts.pace,
            overdue_ps: transfer.timeouts.overdue_ps(now),
        });
        match places::gives_way(&taken.collect::<Vec<_>>(), new) {
            Some(id) => {
                self.give_up(id, &Refusal::new("it gave way to another sender"), endpoint);
                None
            }
            None => Some(Refusal(format!("the receiver takes from {TRANSFERS} senders at once: try later"))),
        }
    }

    /// Removes the oldest finished connections: of this address, refused, and waiting for verdicts.
    //= docs/specs/endpoint.md#END-27 the oldest is evicted
    fn limit_ended<D: Device>(&mut self, peer: IpAddr, endpoint: &mut Endpoint<D>) {
        type Kind<'a> = &'a dyn Fn(&Transfer) -> bool;
        let is_refused = |it: &Transfer| it.arrivals.tally.kept() == 0;
        let kinds: [(usize, Kind<'_>); 3] =
            [(ENDED_OF_ADDRESS, &|it| it.peer == peer), (REFUSED, &is_refused), (TRANSFERS, &|it| !is_refused(it))];
        for (most, is_of) in kinds {
            let ended = self.transfers.iter().filter(|(_, it)| it.over && is_of(it));
            let mut ended: Vec<_> = ended.map(|(&id, it)| (it.arrivals.transfer, id)).collect();
            ended.sort_unstable_by_key(|&(begun, _)| std::cmp::Reverse(begun));
            for (_, id) in ended.split_off(most.min(ended.len())) {
                endpoint.abort(id);
                self.transfers.remove(&id);
            }
        }
    }

    fn check_timeouts<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time) {
        let mut tired = Vec::new();
        for (&connection, transfer) in self.transfers.iter_mut().filter(|(_, transfer)| !transfer.over) {
            let bytes = endpoint.connection_stats(connection).map_or(0, |stats| stats.receiver.bytes);
            let checked = transfer.timeouts.check(bytes, transfer.arrivals.awaited(), now);
            tired.extend(checked.err().map(|refusal| (connection, refusal)));
        }
        for (connection, refusal) in tired {
            self.give_up(connection, &refusal, endpoint);
        }
    }

    /// Complete files stay.
    fn give_up<D: Device>(&mut self, connection: ConnectionId, refusal: &Refusal, endpoint: &mut Endpoint<D>) {
        let Some(transfer) = self.transfers.remove(&connection) else { return };
        let Transfer { peer, timeouts, .. } = transfer;
        let arrivals = Arrivals::new(transfer.arrivals.transfer, &self.opener);
        let ended = Transfer { peer, timeouts, arrivals, over: true };
        let answer = Answer::Ended { reason: refusal.0.clone() };
        // The connection may be gone.
        let _ = endpoint.send(connection, answer.encode().into());
        endpoint.close(connection);
        self.on_gone(transfer, &refusal.0);
        self.transfers.insert(connection, ended);
    }

    /// Returns as [`Receiving::on_end`].
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
        self.out.release(arrivals.transfer);
        self.partly |= arrivals.tally.kept() > 0;
        self.progress.clear();
        let kept = match arrivals.tally.kept() {
            0 => "none of its files is whole".into(),
            kept => format!("{kept} files and folders of it are here"),
        };
        note!("spray: the transfer from {peer} failed: {why}; {kept}");
    }

    /// Returns whether a transfer has ended.
    fn poll_files<D: Device>(&mut self, endpoint: &mut Endpoint<D>) -> bool {
        for connection in self.transfers.keys().copied().collect::<Vec<_>>() {
            let mut answers = Vec::new();
            let Some(transfer) = self.transfers.get_mut(&connection) else { continue };
            while let Some(message) = transfer.arrivals.next_returned() {
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
                // Closes once the verdicts are delivered, within a bounded time.
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
        let text = summary(tally, &self.out, seconds);
        if self.out.is_stdout() {
            note!("{text}");
        } else {
            say!("{text}");
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
        let path = one.map_or_else(|| self.out.folder.path.clone(), |kept| kept.path.clone());
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

    fn answer<D: Device>(&mut self, connection: ConnectionId, answers: &[Answer], endpoint: &mut Endpoint<D>) {
        let refused = self.transfers.get(&connection).map_or(0, |transfer| transfer.arrivals.tally.refused);
        for answer in answers {
            match answer {
                Answer::Refused { .. } if refused > REPORTED => {}
                Answer::Refused { reason, .. } | Answer::Ended { reason } => {
                    self.progress.clear();
                    note!("spray: refused: {reason}");
                }
                _ => {}
            }
            // The connection may be gone.
            let _ = endpoint.send(connection, answer.encode().into());
        }
    }

    fn refuse<D: Device>(&mut self, connection: ConnectionId, refusal: &Refusal, endpoint: &mut Endpoint<D>) {
        self.answer(connection, &[Answer::Ended { reason: refusal.0.clone() }], endpoint);
        if let Some(transfer) = self.transfers.get_mut(&connection) {
            transfer.over = true;
            transfer.arrivals.discard();
            self.out.release(transfer.arrivals.transfer);
        }
        endpoint.close(connection);
    }

    /// Without `--keep`, ends after the first transfer that stored something, or the last failure.
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
            let text = line(format!("{bytes} bytes"), shown(&kept.path));
            format!("{text}\nSHA-256 {}, as the sender's", hex(&kept.sum))
        }
        _ => {
            let what = format!("{} files and {} folders, {bytes} bytes,", tally.files, tally.folders);
            let text = line(what, out.folder.path.display().to_string());
            format!("{text}\neach file has the sender's SHA-256")
        }
    }
}

fn state(transfers: &HashMap<ConnectionId, Transfer>, meter: &mut Meter) -> String {
    let files: Vec<&Incoming> = transfers.values().flat_map(|transfer| transfer.arrivals.files.values()).collect();
    let name = match &files[..] {
        [file] => shown(&file.description.path),
        files => format!("{} files", files.len()),
    };
    let done = files.iter().map(|file| file.arrived_bytes).sum();
    // The lengths are unverified claims of senders and may overflow.
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
        // Addresses, transfers of each, stored entries of each, and transfers that remain.
        for (addresses, each, kept, left) in [(1, 9, 0, 3), (1, 9, 1, 3), (30, 1, 0, 8), (30, 1, 1, 16), (16, 1, 1, 16)]
        {
            receiving.transfers.clear();
            for number in 0..addresses * each {
                let address = IpAddr::from([10, 0, 1, (number % addresses) as u8]);
                let id = endpoint.connect(Time::ZERO, Peer { address, mac: [4; 6] }, None).unwrap();
                let mut arrivals = Arrivals::new(number, &receiving.opener);
                arrivals.tally.files = kept;
                let timeouts = Timeouts::new(limits, Time::ZERO);
                receiving.transfers.insert(id, Transfer { peer: address, arrivals, timeouts, over: true });
                receiving.limit_ended(address, &mut endpoint);
            }
            let numbers: Vec<u32> = receiving.transfers.values().map(|it| it.arrivals.transfer).collect();
            assert_eq!(numbers.len() as u32, left, "{addresses} addresses, {each} each, {kept} kept");
            assert!(numbers.iter().all(|&number| number >= addresses * each - left), "{numbers:?}");
        }
    }
}
