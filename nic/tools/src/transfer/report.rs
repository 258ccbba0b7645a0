//! What `spray send` says at its end: the file, and what the network did with it.

use std::fmt;

use serde::Serialize;
use spray_core::flow::{Limit, Limits};
use spray_core::link::PS_PER_S;
use spray_nic::endpoint::ConnectionStats;

use super::format::{Sum, hex};
use super::gbps;
use crate::session::{Freezes, Taken, strays_line};

/// What the sender measured.
pub struct Measured {
    /// From the connection's beginning to the last acknowledgement.
    pub seconds: f64,
    pub counted: ConnectionStats,
    /// Payload that the sender's own MTU would take.
    pub own_payload_bytes: u32,
    pub freezes: Freezes,
    pub interface: Option<Taken>,
    /// Frames that came by a queue without a socket.
    pub strays: u64,
    /// Bytes of files that the receiver got.
    pub sent_bytes: u64,
}

/// What became of a file, or of a folder that was not taken.
#[derive(Debug, Serialize)]
pub struct FileReport {
    /// The path at the receiver, with a replacement character for what is no UTF-8.
    file: String,
    bytes: u64,
    /// The receiver has it on its disk.
    verified: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    /// Why it is not there.
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

    /// Its path and the reason, if it is not there.
    pub fn failure(&self) -> Option<(&str, &str)> {
        self.error.as_deref().map(|error| (&*self.file, error))
    }
}

/// A transfer in which every file has its verdict. The fields are those of `--json`; times are microseconds, as in all results.
#[derive(Debug, Serialize)]
pub struct Report {
    #[serde(skip)]
    name: String,
    files: Vec<FileReport>,
    files_verified: usize,
    /// Files and folders that are not there.
    failed: usize,
    folders: u32,
    /// Symbolic links and special files, which are not sent.
    skipped: usize,
    /// Of files that were verified.
    bytes: u64,
    sent_bytes: u64,
    seconds: f64,
    goodput_gbps: f64,
    /// Payload of a full packet, within the MTUs of both sides.
    payload_bytes: u32,
    /// What the sender's own MTU would take.
    own_payload_bytes: u32,
    packets_sent: u64,
    packets_sent_again: u64,
    lost_by_timeout: u64,
    /// Later packets arrived, by the count or on the same path.
    lost_by_gap: u64,
    lost_by_trim: u64,
    /// Declared lost, and acknowledged after all.
    not_lost: u64,
    rtt_least_us: f64,
    /// Within a thirtieth, as the 99th percentile.
    rtt_p50_us: f64,
    rtt_p99_us: f64,
    rtt_smoothed_us: f64,
    acks: u64,
    acks_marked: u64,
    /// ACKs of packets that took long, on a network that does not mark.
    acks_late: u64,
    /// Those taken while others filled the queues, so that losses governed in place of marks.
    acks_contended: u64,
    freezes: u64,
    /// The loss that it took for a failed path was found by a timeout.
    freezes_by_timeout: u64,
    freezes_by_gap: u64,
    freezes_by_probes: u64,
    drains: u64,
    drained_us: f64,
    limited_by: Shares,
    /// Arrived by a queue of the interface that no socket has, and were lost.
    frames_without_socket: u64,
    interface: Option<Taken>,
}

/// What limited the sender: shares of the time, which add up to 1.
#[derive(Debug, Serialize)]
struct Shares {
    /// The congestion window, or the packet window.
    window: f64,
    pacing: f64,
    /// The receiver had granted no more.
    receiver: f64,
    /// Nothing was there to be sent: the file was not read yet, or only described.
    application: f64,
    /// The balancer drained a path, or its own windows were full.
    balancer: f64,
    /// None of these: this machine sent as fast as it could.
    machine: f64,
}

impl Shares {
    fn new(limits: &Limits, seconds: f64) -> Self {
        let waited_s = |limit| limits.waited_ps(limit) as f64 / PS_PER_S as f64;
        let [window, pacing, receiver, application, balancer] =
            [Limit::Window, Limit::Pacing, Limit::Receiver, Limit::Application, Limit::Balancer].map(waited_s);
        let waited = window + pacing + receiver + application + balancer;
        // The sender's clock began a moment before the measured time.
        let all = seconds.max(waited).max(1e-9);
        Self {
            window: window / all,
            pacing: pacing / all,
            receiver: receiver / all,
            application: application / all,
            balancer: balancer / all,
            machine: 1.0 - waited / all,
        }
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { window, pacing, receiver, application, balancer, machine } = self;
        let parts =
            [window, pacing, receiver, application, balancer, machine].map(|share| format!("{:.0} %", share * 100.0));
        let [window, pacing, receiver, application, balancer, machine] = parts;
        write!(
            f,
            "limited by: window {window}, pacing {pacing}, receiver {receiver}, nothing to send {application}, balancer {balancer}, \
             this machine {machine}"
        )
    }
}

const PS_PER_US: f64 = 1e6;

impl Report {
    /// `name` is what the user knows the transfer by.
    pub fn new(name: String, files: Vec<FileReport>, folders: u32, skipped: usize, measured: Measured) -> Self {
        let Measured { seconds, counted, own_payload_bytes, freezes, interface, strays, sent_bytes } = measured;
        let sender = &counted.sender;
        let verified = || files.iter().filter(|file| file.verified);
        let us = |ps: u64| ps as f64 / PS_PER_US;
        Self {
            files_verified: verified().count(),
            failed: files.len() - verified().count(),
            bytes: verified().map(|file| file.bytes).sum(),
            name,
            files,
            folders,
            skipped,
            sent_bytes,
            seconds,
            goodput_gbps: gbps(sent_bytes, seconds),
            payload_bytes: counted.payload_bytes,
            own_payload_bytes,
            packets_sent: sender.packets_sent,
            packets_sent_again: sender.retransmits,
            lost_by_timeout: sender.timeouts,
            lost_by_gap: sender.sack_gaps + sender.missing,
            lost_by_trim: sender.nacks,
            not_lost: sender.late_acks + sender.spurious_retransmits,
            rtt_least_us: us(counted.rtt_min_ps),
            rtt_p50_us: us(counted.rtt_p50_ps),
            rtt_p99_us: us(counted.rtt_p99_ps),
            rtt_smoothed_us: us(counted.rtt_smoothed_ps),
            acks: sender.acks,
            acks_marked: sender.marked_acks,
            acks_late: sender.overdue_acks,
            acks_contended: sender.contended_acks,
            freezes: freezes.all,
            freezes_by_timeout: freezes.by_timeout,
            freezes_by_gap: freezes.by_gap,
            freezes_by_probes: freezes.by_probes,
            drains: sender.drains,
            drained_us: us(sender.drained_ps),
            limited_by: Shares::new(&counted.limits, seconds),
            frames_without_socket: strays,
            interface,
        }
    }

    /// Whether anything was taken.
    pub fn has_files(&self) -> bool {
        self.files_verified > 0 || self.folders > 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, sent_bytes, seconds, goodput_gbps, payload_bytes, own_payload_bytes, .. } = self;
        writeln!(
            f,
            "sent {sent_bytes} bytes of {name} in {seconds:.3} s: {goodput_gbps:.2} Gb/s goodput, {payload_bytes} byte payloads"
        )?;
        if payload_bytes < own_payload_bytes {
            writeln!(
                f,
                "the receiver's MTU or --payload is smaller: {own_payload_bytes} byte payloads would fit here"
            )?;
        }
        writeln!(
            f,
            "{} packets, {} of them sent again; taken for lost: {} by timeout, {} by gaps, {} trimmed; {} of these were not",
            self.packets_sent,
            self.packets_sent_again,
            self.lost_by_timeout,
            self.lost_by_gap,
            self.lost_by_trim,
            self.not_lost,
        )?;
        writeln!(
            f,
            "round trip: least {:.0} us, median {:.0} us, 99 % within {:.0} us",
            self.rtt_least_us, self.rtt_p50_us, self.rtt_p99_us,
        )?;
        writeln!(
            f,
            "{} of {} ACKs marked (ECN), {} late where nothing marks",
            self.acks_marked, self.acks, self.acks_late
        )?;
        if self.acks_contended > 0 {
            let share = self.acks_contended as f64 / self.acks.max(1) as f64;
            writeln!(f, "others filled the queues for {:.0} % of the ACKs: losses governed, not marks", share * 100.0)?;
        }
        writeln!(
            f,
            "{} freezes: after {} timeouts, {} gaps, {} times unanswered probes; {} drains, {:.0} us in all",
            self.freezes,
            self.freezes_by_timeout,
            self.freezes_by_gap,
            self.freezes_by_probes,
            self.drains,
            self.drained_us,
        )?;
        writeln!(f, "{}", self.limited_by)?;
        if let Some(line) = strays_line(self.frames_without_socket) {
            writeln!(f, "{line}")?;
        }
        if let [FileReport { sha256: Some(sum), .. }] = &self.files[..]
            && self.folders == 0
        {
            return write!(f, "SHA-256 {sum}, confirmed by the receiver");
        }
        let Self { files_verified, folders, failed, skipped, .. } = self;
        write!(f, "{files_verified} files, their SHA-256 confirmed by the receiver, and {folders} folders")?;
        write!(f, "; {failed} not sent, {skipped} skipped")
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
        assert!(report(1200).to_string().contains("1400 byte payloads would fit here"));
        assert!(!report(1400).to_string().contains("fit here"));
    }

    #[test]
    fn text_and_json_say_the_same() {
        let report = report(1400);
        let text = report.to_string();
        for part in [
            "0.02 Gb/s",
            "least 842 us",
            "99 % within 2000 us",
            "4 by gaps",
            "0 of 10 ACKs marked (ECN), 2 late",
            "for 90 % of the ACKs",
            "4 freezes: after 1 timeouts, 1 gaps, 1 times unanswered probes",
            "this machine 100 %",
            &"ab".repeat(32),
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let json: serde_json::Value = serde_json::to_value(&report).unwrap();
        assert_eq!((&json["goodput_gbps"], &json["rtt_least_us"]), (&0.016.into(), &842.0.into()));
        assert_eq!((&json["lost_by_gap"], &json["freezes"]), (&4.into(), &4.into()));
    }
}
