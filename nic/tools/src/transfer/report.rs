//! The report at the end of `spray send`.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use spray_core::flow::{Limit, Limits, SenderStats};
use spray_core::link::PS_PER_S;
use spray_nic::endpoint::ConnectionStats;

use super::format::{Sum, hex};
use super::gbps;
use crate::session::{DeviceInfo, Freezes, strays_line};

pub struct Measured {
    /// Up to the last acknowledgement.
    pub seconds: f64,
    pub counted: ConnectionStats,
    /// The payload size that the sender's own MTU allows.
    pub own_payload_bytes: u32,
    pub freezes: Freezes,
    pub interface: Option<DeviceInfo>,
    /// Frames lost on queues without a socket.
    pub strays: u64,
    pub sent_bytes: u64,
}

#[derive(Debug, Serialize)]
pub struct FileReport {
    /// The path at the receiver, lossily converted to UTF-8.
    file: String,
    bytes: u64,
    verified: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl FileReport {
    pub fn verified(file: String, bytes: u64, sum: Sum) -> Self {
        Self { file, bytes, verified: true, sha256: Some(hex(&sum)), error: None }
    }

    pub fn failed(file: String, bytes: u64, error: String) -> Self {
        Self { file, bytes, verified: false, sha256: None, error: Some(error) }
    }

    pub fn failure(&self) -> Option<(&str, &str)> {
        self.error.as_deref().map(|error| (&*self.file, error))
    }
}

pub struct Report {
    name: String,
    files: Vec<FileReport>,
    folders: u32,
    skipped: usize,
    measured: Measured,
    limited_by: [(&'static str, f64); 6],
}

/// Shares of time. `application`: the file was not read yet. `machine`: none of the others.
fn limited_by(limits: &Limits, seconds: f64) -> [(&'static str, f64); 6] {
    let waited_s = |limit| limits.waited_ps(limit) as f64 / PS_PER_S as f64;
    let [window, pacing, receiver, application, balancer] =
        [Limit::Window, Limit::Pacing, Limit::Receiver, Limit::Application, Limit::Balancer].map(waited_s);
    let waited = window + pacing + receiver + application + balancer;
    // The sender's clock began slightly before the measured time.
    let all = seconds.max(waited).max(1e-9);
    let names = ["window", "pacing", "receiver", "application", "balancer", "machine"];
    let times = [window, pacing, receiver, application, balancer, all - waited];
    std::array::from_fn(|at| (names[at], times[at] / all))
}

impl Report {
    pub fn new(name: String, files: Vec<FileReport>, folders: u32, skipped: usize, measured: Measured) -> Self {
        let limited_by = limited_by(&measured.counted.limits, measured.seconds);
        Self { name, files, folders, skipped, measured, limited_by }
    }

    fn verified(&self) -> impl Iterator<Item = &FileReport> {
        self.files.iter().filter(|file| file.verified)
    }

    pub fn has_files(&self) -> bool {
        self.folders > 0 || self.verified().next().is_some()
    }

    fn goodput_gbps(&self) -> f64 {
        gbps(self.measured.sent_bytes, self.measured.seconds)
    }

    pub fn json(&self) -> serde_json::Value {
        let Measured { seconds, counted, own_payload_bytes, freezes, interface, strays, sent_bytes } = &self.measured;
        let (sender, verified) = (&counted.sender, self.verified().count());
        serde_json::json!({
            "files": self.files,
            "files_verified": verified,
            "failed": self.files.len() - verified,
            "folders": self.folders,
            "skipped": self.skipped,
            "bytes": self.verified().map(|file| file.bytes).sum::<u64>(),
            "sent_bytes": sent_bytes,
            "seconds": seconds,
            "goodput_gbps": self.goodput_gbps(),
            "payload_bytes": counted.payload_bytes,
            "mtu_payload_bytes": own_payload_bytes,
            "packets_sent": sender.packets_sent,
            "packets_retransmitted": sender.retransmits,
            "lost_by_timeout": sender.timeouts,
            "lost_by_gap": lost_by_gap(sender),
            "lost_by_trim": sender.nacks,
            "spurious_losses": not_lost(sender),
            "rtt_min_us": us(counted.rtt_min_ps),
            "rtt_p50_us": us(counted.rtt_p50_ps),
            "rtt_p99_us": us(counted.rtt_p99_ps),
            "rtt_smoothed_us": us(counted.rtt_smoothed_ps),
            "acks": sender.acks,
            "acks_marked": sender.marked_acks,
            "acks_late": sender.overdue_acks,
            "acks_contended": sender.contended_acks,
            "freezes": freezes.all,
            "freezes_by_timeout": freezes.by_timeout,
            "freezes_by_gap": freezes.by_gap,
            "freezes_by_probes": freezes.by_probes,
            "drains": sender.drains,
            "drained_us": us(sender.drained_ps),
            "limited_by": BTreeMap::from(self.limited_by),
            "frames_without_socket": strays,
            "interface": interface,
        })
    }
}

fn us(ps: u64) -> f64 {
    ps as f64 / 1e6
}

/// Declared lost by later arrivals, by count or on the same path.
fn lost_by_gap(sender: &SenderStats) -> u64 {
    sender.sack_gaps + sender.missing
}

/// Spurious losses.
fn not_lost(sender: &SenderStats) -> u64 {
    sender.late_acks + sender.spurious_retransmits
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Measured { seconds, counted, own_payload_bytes, freezes, strays, sent_bytes, .. } = &self.measured;
        let (sender, payload_bytes) = (&counted.sender, counted.payload_bytes);
        let SenderStats { packets_sent, retransmits, timeouts, nacks, .. } = sender;
        let (name, goodput_gbps) = (&self.name, self.goodput_gbps());
        write!(f, "sent {sent_bytes} bytes of {name} in {seconds:.3} s: {goodput_gbps:.2} Gb/s goodput, ")?;
        writeln!(f, "{payload_bytes} byte payloads")?;
        if payload_bytes < *own_payload_bytes {
            writeln!(f, "the receiver's MTU or --payload is smaller: {own_payload_bytes} bytes would fit here")?;
        }
        let (gaps, spurious) = (lost_by_gap(sender), not_lost(sender));
        write!(f, "{packets_sent} packets, {retransmits} of them sent again; declared lost: {timeouts} by timeout, ")?;
        writeln!(f, "{gaps} by gaps, {nacks} trimmed; {spurious} of these were not")?;
        let [least, median, p99] = [counted.rtt_min_ps, counted.rtt_p50_ps, counted.rtt_p99_ps].map(us);
        writeln!(f, "round trip: least {least:.0} us, median {median:.0} us, 99 % within {p99:.0} us")?;
        let (marked, acks) = (sender.marked_acks, sender.acks);
        writeln!(f, "{marked} of {acks} ACKs marked (ECN), {} late where nothing marks", sender.overdue_acks)?;
        if sender.contended_acks > 0 {
            let share = 100.0 * sender.contended_acks as f64 / acks.max(1) as f64;
            writeln!(f, "cross traffic filled the queues ({share:.0} % of ACKs): fell back to loss-based control")?;
        }
        let (all, drained_us) = (freezes.all, us(sender.drained_ps));
        let [timeouts, gaps, probes] = [freezes.by_timeout, freezes.by_gap, freezes.by_probes];
        write!(f, "{all} freezes: after {timeouts} timeouts, {gaps} gaps, {probes} times unanswered probes; ")?;
        writeln!(f, "{} drains, {drained_us:.0} us in all", sender.drains)?;
        let limits = self.limited_by.map(|(name, share)| {
            let name = match name {
                "application" => "nothing to send",
                "machine" => "this machine",
                name => name,
            };
            format!("{name} {:.0} %", 100.0 * share)
        });
        writeln!(f, "limited by: {}", limits.join(", "))?;
        if let Some(line) = strays_line(*strays) {
            writeln!(f, "{line}")?;
        }
        if let [FileReport { sha256: Some(sum), .. }] = &self.files[..]
            && self.folders == 0
        {
            return write!(f, "SHA-256 {sum}, confirmed by the receiver");
        }
        let (verified, folders, skipped) = (self.verified().count(), self.folders, self.skipped);
        let failed = self.files.len() - verified;
        write!(f, "{verified} files and {folders} folders, SHA-256 verified by the receiver; ")?;
        write!(f, "{failed} not sent, {skipped} skipped")
    }
}

#[cfg(test)]
mod tests {
    use spray_core::event::{Event, FreezeReason};
    use spray_core::feedback::LossCause;

    use super::*;

    fn report(payload_bytes: u32) -> Report {
        let mut counted = ConnectionStats::default();
        counted.payload_bytes = payload_bytes;
        counted.rtt_min_ps = 842_000_000;
        counted.sender.packets_sent = 10;
        (counted.sender.acks, counted.sender.overdue_acks, counted.sender.contended_acks) = (10, 2, 9);
        counted.sender.missing = 3;
        counted.sender.sack_gaps = 1;
        counted.rtt_p99_ps = 2_000_000_000;
        let mut freezes = Freezes::default();
        let losses = [LossCause::Timeout, LossCause::Missing].map(FreezeReason::Loss);
        for reason in losses.into_iter().chain([FreezeReason::Probes, FreezeReason::Setting]) {
            freezes.take(&Event::FreezeEntered { reason });
        }
        freezes.take(&Event::FreezeExited);
        let measured = Measured {
            seconds: 0.5,
            counted,
            own_payload_bytes: 1400,
            freezes,
            interface: None,
            strays: 0,
            sent_bytes: 1_000_000,
        };
        Report::new("x".into(), vec![FileReport::verified("x".into(), 1_000_000, [0xab; 32])], 0, 0, measured)
    }

    #[test]
    fn a_receiver_with_a_smaller_mtu_is_named() {
        assert!(report(1200).to_string().contains("1400 bytes would fit here"));
        assert!(!report(1400).to_string().contains("fit here"));
    }

    #[test]
    fn text_and_json_agree() {
        let report = report(1400);
        let text = report.to_string();
        for part in [
            "0.02 Gb/s",
            "least 842 us",
            "99 % within 2000 us",
            "4 by gaps",
            "0 of 10 ACKs marked (ECN), 2 late",
            "90 % of ACKs",
            "4 freezes: after 1 timeouts, 1 gaps, 1 times unanswered probes",
            "this machine 100 %",
            &"ab".repeat(32),
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let json = report.json();
        assert_eq!((&json["goodput_gbps"], &json["rtt_min_us"]), (&0.016.into(), &842.0.into()));
        assert_eq!((&json["lost_by_gap"], &json["freezes"]), (&4.into(), &4.into()));
    }
}
