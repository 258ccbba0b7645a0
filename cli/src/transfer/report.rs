//! What `spray send` says at its end: the file, and what the network did with it.

use std::fmt;

use serde::Serialize;
use spray_nic::endpoint::ConnectionStats;

use super::format::{Description, Sum, hex};
use super::gbps;
use crate::failure::{Failure, Outcome};

/// What the sender measured.
pub struct Measured {
    /// From the connection's beginning to the last acknowledgement.
    pub seconds: f64,
    pub counted: ConnectionStats,
    /// Payload that the sender's own MTU would take.
    pub own_payload_bytes: u32,
    pub freezes: u64,
}

/// A transfer that was confirmed. The fields are those of `--json`; times are microseconds, as in all results.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The file's name, with a replacement character for what is no UTF-8.
    file: String,
    file_bytes: u64,
    sha256: String,
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
    rtt_smoothed_us: f64,
    acks: u64,
    acks_marked: u64,
    freezes: u64,
    drains: u64,
    drained_us: f64,
}

const PS_PER_US: f64 = 1e6;

impl Report {
    pub fn new(description: &Description, sum: Sum, measured: &Measured) -> Self {
        let Measured { seconds, counted, own_payload_bytes, freezes } = *measured;
        let sender = &counted.sender;
        let us = |ps: u64| ps as f64 / PS_PER_US;
        Self {
            file: description.name.to_string_lossy().into_owned(),
            file_bytes: description.bytes,
            sha256: hex(&sum),
            seconds,
            goodput_gbps: gbps(description.bytes, seconds),
            payload_bytes: counted.payload_bytes,
            own_payload_bytes,
            packets_sent: sender.packets_sent,
            packets_sent_again: sender.retransmits,
            lost_by_timeout: sender.timeouts,
            lost_by_gap: sender.sack_gaps + sender.missing,
            lost_by_trim: sender.nacks,
            not_lost: sender.late_acks + sender.spurious_retransmits,
            rtt_least_us: us(counted.rtt_min_ps),
            rtt_smoothed_us: us(counted.rtt_smoothed_ps),
            acks: sender.acks,
            acks_marked: sender.marked_acks,
            freezes,
            drains: sender.drains,
            drained_us: us(sender.drained_ps),
        }
    }

    /// The report as one JSON object.
    ///
    /// # Errors
    /// When a number has no form in JSON, which none of these is.
    pub fn json(&self) -> Outcome<String> {
        serde_json::to_string_pretty(self).map_err(Failure::failed)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, file_bytes, seconds, goodput_gbps, payload_bytes, own_payload_bytes, .. } = self;
        writeln!(
            f,
            "sent {file_bytes} bytes of {file} in {seconds:.3} s: {goodput_gbps:.2} Gb/s goodput, {payload_bytes} byte payloads"
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
        writeln!(f, "round trip: least {:.0} us, smoothed {:.0} us", self.rtt_least_us, self.rtt_smoothed_us)?;
        writeln!(
            f,
            "{} of {} ACKs marked (ECN); {} freezes; {} drains, {:.0} us in all",
            self.acks_marked, self.acks, self.freezes, self.drains, self.drained_us,
        )?;
        write!(f, "SHA-256 {}, confirmed by the receiver", self.sha256)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(payload_bytes: u32) -> Report {
        let mut counted = ConnectionStats::default();
        counted.payload_bytes = payload_bytes;
        counted.rtt_min_ps = 842_000_000;
        counted.sender.packets_sent = 10;
        counted.sender.missing = 3;
        counted.sender.sack_gaps = 1;
        let measured = Measured { seconds: 0.5, counted, own_payload_bytes: 1400, freezes: 2 };
        Report::new(&Description { name: "x".into(), bytes: 1_000_000 }, [0xab; 32], &measured)
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
        for part in ["0.02 Gb/s", "least 842 us", "4 by gaps", "2 freezes", &"ab".repeat(32)] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
        assert_eq!((&json["goodput_gbps"], &json["rtt_least_us"]), (&0.016.into(), &842.0.into()));
        assert_eq!((&json["lost_by_gap"], &json["freezes"]), (&4.into(), &2.into()));
    }
}
