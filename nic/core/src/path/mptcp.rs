//! MPTCP-like: a few subflows with a window each (REPS §4.2, "multiple queue pairs").

use alloc::boxed::Box;

use super::labels::Labels;
use super::{
    AckInfo, Admission, Balancer, Ev, Features, LossCause, LossInfo, Now, OnPath, PacketInfo, Path, Publisher, Rng,
    Scheme, SendInfo, Time, settings,
};
use crate::cc::{AnyCc, CongestionControl, ControlConfig};

settings! {
    /// The settings of [`Mptcp`].
    pub struct MptcpConfig {
        /// Subflows of a connection.
        #[schemars(range(min = 1, max = 64))]
        pub subflows: u16 = SUBFLOWS,
        /// How new bytes go to subflows.
        pub split: MptcpSplit = MptcpSplit::Equal,
    }

    /// How new bytes go to subflows.
    #[derive(Default)]
    pub enum MptcpSplit {
        /// Each subflow takes the same number of bytes, as several queue pairs would.
        #[default]
        Equal,
        /// The next subflow that has room takes them, as in MPTCP.
        Free,
    }
}

/// Maximum number of subflows: one bit each in a word.
const MAX_SUBFLOWS: u16 = 64;
/// Initial duration of staleness, in packets of the connection; it doubles each time.
const STALE_PACKETS: u64 = 64;
const MAX_STALE_DOUBLINGS: u8 = 10;
const SUBFLOWS: u16 = 8;

/// Spreads packets over subflows, each with a window of the connection's congestion control.
#[derive(Debug)]
pub struct Mptcp {
    labels: Labels,
    next: u16,
    /// The subflow that lost a packet last; `u16::MAX` if none did.
    loser: u16,
    /// The subflow that [`Balancer::admit`] chose for the next packet.
    chosen: Option<u16>,
    paced_until: Option<Time>,
    equal: bool,
    /// A bit for each subflow with packets acknowledged by the present ACK.
    settled: u64,
    stale: u64,
    packets: u64,
    /// Wire bytes that all subflows sent for the first time.
    sent: u64,
    /// Empty if the connection's own control decides.
    lanes: Box<[Lane]>,
    share: Box<OnPath<Path>>,
}

#[derive(Debug)]
struct Lane {
    cc: AnyCc,
    in_flight: u64,
    /// Wire bytes that the present ACK newly acknowledges.
    acked: u64,
    sent: u64,
    acked_at: Time,
    /// The number of the connection's packets after which it is no longer stale.
    stale_until: u64,
    /// Times it became stale since a packet of it was acknowledged.
    stale_count: u8,
}

impl Mptcp {
    fn follow(&mut self, path: &Path) {
        self.share.follow(path, |path| path.share(self.labels.count()));
    }

    /// Returns the subflow that takes a packet now, searching from the next in turn.
    fn choose(&mut self, now: Now<'_>, packet: &SendInfo) -> Option<u16> {
        if packet.in_flight_bytes == 0 {
            // A request for a grant counted as in flight, but is never acknowledged.
            self.lanes.iter_mut().for_each(|lane| lane.in_flight = 0);
        }
        self.end_stale();
        //= docs/specs/subflow.md#MPTCP-4 equal shares
        let is_equal = self.equal && !packet.retransmit && self.stale == 0;
        let share = is_equal.then(|| self.sent.saturating_add(packet.unsent_bytes));
        self.follow(now.path);
        let now = self.share.at(now.time);
        let mut label = self.next;
        let (mut second_best, mut paced) = (None, Time::NEVER);
        for _ in 0..self.labels.count() {
            let lane = &self.lanes[usize::from(label)];
            let waits = share.is_some_and(|all| lane.sent.saturating_mul(self.labels.count().into()) >= all.max(1));
            if !waits && self.stale & 1 << label == 0 && lane.has_room(&self.share, packet.bytes) {
                let at = lane.cc.poll_send(now);
                if at > now.time {
                    paced = paced.min(at);
                } else if packet.retransmit && label == self.loser {
                    second_best = Some(label);
                } else {
                    return Some(label);
                }
            }
            label = self.labels.after(label);
        }
        self.paced_until = (paced != Time::NEVER).then_some(paced);
        second_best
    }

    /// Restores subflows that were stale for long enough, or all if no other is left.
    //= docs/specs/subflow.md#MPTCP-7 stale subflows
    fn end_stale(&mut self) {
        let mut stale = self.stale;
        let is_last = stale.count_ones() == u32::from(self.labels.count());
        while stale > 0 {
            let label = stale.trailing_zeros();
            if is_last || self.lanes[label as usize].stale_until <= self.packets {
                self.stale &= !(1 << label);
            }
            stale &= stale - 1;
        }
    }
}

impl Lane {
    fn new(cc: AnyCc) -> Self {
        Self { cc, in_flight: 0, acked: 0, sent: 0, acked_at: Time::ZERO, stale_until: 0, stale_count: 0 }
    }

    /// Makes the subflow stale; the connection has sent `packets` packets.
    //= docs/specs/subflow.md#MPTCP-7 stale subflows
    fn begin_stale(&mut self, packets: u64) {
        let doublings = self.stale_count.min(MAX_STALE_DOUBLINGS);
        self.stale_count = doublings + 1;
        self.stale_until = packets + (STALE_PACKETS << doublings);
    }

    //= docs/specs/subflow.md#MPTCP-2 room on a subflow
    fn has_room(&self, path: &Path, bytes: u32) -> bool {
        let is_probed = self.stale_count > 0;
        self.in_flight == 0 || !is_probed && self.in_flight + u64::from(bytes) <= self.cc.window_bytes(path)
    }
}

impl Scheme for Mptcp {
    type Config = MptcpConfig;

    /// With 8 subflows and the 8 bytes of `dctcp`'s window in each.
    const STATE_BYTES: usize = size_of::<Ev>()
        + 2 * size_of::<u16>()
        + size_of::<u64>()
        + SUBFLOWS as usize * (size_of::<Lane>() - size_of::<AnyCc>() + size_of::<u64>());

    //= docs/specs/subflow.md#MPTCP-1 subflows
    fn make(own: &MptcpConfig, path: &Path, rng: &mut Rng) -> Self {
        let labels = Labels::new(path, own.subflows.min(MAX_SUBFLOWS), rng);
        Self {
            next: 0,
            loser: u16::MAX,
            chosen: None,
            paced_until: None,
            equal: own.split == MptcpSplit::Equal,
            settled: 0,
            stale: 0,
            packets: 0,
            sent: 0,
            lanes: Box::default(),
            share: Box::new(OnPath::new(path, |path| path.share(labels.count()))),
            labels,
        }
    }
}

impl Balancer for Mptcp {
    fn features(&self) -> Features {
        Features { delays_packets: true, packet_feedback: true, ..Features::default() }
    }

    fn next_ev(&mut self, now: Now<'_>, packet: &SendInfo, _rng: &mut Rng) -> Ev {
        let label = self.chosen.take().unwrap_or(self.next);
        self.next = self.labels.after(label);
        if let Some(lane) = self.lanes.get_mut(usize::from(label)) {
            lane.cc.on_send(self.share.at(now.time), packet.bytes);
            lane.in_flight += u64::from(packet.bytes);
            self.packets += 1;
            if !packet.retransmit {
                lane.sent = lane.sent.saturating_add(packet.bytes.into());
                self.sent = self.sent.saturating_add(packet.bytes.into());
            }
        }
        self.labels.ev(label)
    }

    //= docs/specs/subflow.md#MPTCP-5 feedback of a subflow
    fn on_ack(&mut self, now: Now<'_>, ack: &AckInfo, _publisher: &mut dyn Publisher) {
        let trigger = self.labels.label(ack.ev).map_or(0, |label| 1 << label);
        let mut lanes = core::mem::take(&mut self.settled) | trigger;
        self.follow(now.path);
        while lanes > 0 {
            if let Some(lane) = self.lanes.get_mut(lanes.trailing_zeros() as usize) {
                let part = AckInfo { bytes: lane.acked, in_flight_bytes: lane.in_flight, ..*ack };
                lane.acked = 0;
                lane.cc.on_ack(self.share.at(now.time), &part);
            }
            lanes &= lanes - 1;
        }
    }

    //= docs/specs/subflow.md#MPTCP-5 feedback of a subflow
    fn on_loss(&mut self, now: Now<'_>, loss: &LossInfo, _publisher: &mut dyn Publisher) {
        let Some(label) = self.labels.label(loss.ev) else { return };
        let Some(lane) = self.lanes.get_mut(usize::from(label)) else { return };
        lane.in_flight = lane.in_flight.saturating_sub(loss.bytes.into());
        lane.cc.on_loss(self.share.at(now.time), loss.bytes, loss.cause);
        //= docs/specs/subflow.md#MPTCP-7 stale subflows
        let is_silent = loss.cause == LossCause::Timeout && lane.acked_at <= loss.sent_at;
        if now.path.learned && is_silent && self.stale & 1 << label == 0 {
            lane.begin_stale(self.packets);
            self.stale |= 1 << label;
        }
        if !(loss.cause.is_trim() || loss.cause == LossCause::GoBackN) {
            self.loser = label;
        }
    }

    fn poll_timeout(&self, _path: &Path) -> Option<Time> {
        self.paced_until
    }

    //= docs/specs/subflow.md#MPTCP-3 order of subflows
    fn admit(&mut self, now: Now<'_>, packet: &SendInfo) -> Admission {
        if self.lanes.is_empty() {
            return Admission::Window;
        }
        self.paced_until = None;
        self.chosen = self.choose(now, packet);
        if self.chosen.is_some() { Admission::Go } else { Admission::Wait }
    }

    //= docs/specs/subflow.md#MPTCP-1 subflows
    //= docs/specs/subflow.md#MPTCP-6 without windows
    fn on_control(&mut self, control: &ControlConfig, _path: &Path) {
        let control = control.share(self.labels.count().into());
        let lanes = (0..self.labels.count()).map(|_| Lane::new(AnyCc::new(&control, &self.share)));
        self.lanes = lanes.filter(|lane| !lane.cc.uses_credit()).collect();
    }

    fn on_start(&mut self, path: &Path) {
        self.follow(path);
        self.lanes.iter_mut().for_each(|lane| lane.cc.on_start(&self.share));
    }

    //= docs/specs/subflow.md#MPTCP-5 feedback of a subflow
    fn on_packet_acked(&mut self, now: Now<'_>, packet: &PacketInfo) {
        let Some(label) = self.labels.label(packet.ev) else { return };
        let Some(lane) = self.lanes.get_mut(usize::from(label)) else { return };
        if !packet.was_lost {
            lane.in_flight = lane.in_flight.saturating_sub(packet.bytes.into());
        }
        lane.acked = lane.acked.saturating_add(packet.bytes.into());
        (lane.acked_at, lane.stale_count) = (now.time, 0);
        self.settled |= 1 << label;
        self.stale &= !(1 << label);
    }
}

#[cfg(test)]
mod tests;
