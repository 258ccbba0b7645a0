//! How packets get from the NIC to the endpoint and back.

use std::fmt;

use serde::Serialize;
use spray_nic::device::xsk::TakenOver;
use spray_nic::device::{AnyDevice, Device};
use spray_nic::xdp::AttachMode;

/// A line on standard error, and an object of `--json`.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum DeviceInfo {
    Xdp(Interface),
    Udp { name: &'static str, sockets: u16 },
}

impl DeviceInfo {
    pub fn of(device: &AnyDevice) -> Self {
        match device {
            AnyDevice::Xdp(device) => Self::Xdp(Interface::of(device.taken_over())),
            AnyDevice::Udp(device) => Self::Udp { name: "UDP", sockets: device.info().evs },
        }
    }
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Xdp(interface) => interface.fmt(f),
            Self::Udp { sockets, .. } => write!(f, "{sockets} sockets of the kernel, one for each entropy value"),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Interface {
    name: String,
    /// `native` (in the driver) or `generic`.
    xdp: &'static str,
    /// The driver's error if it refused the native mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    /// With native XDP.
    #[serde(skip)]
    longest: Option<(String, u32)>,
    zero_copy: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    zero_copy_skipped: Option<String>,
    /// `Some(true)` for busy polling with interrupts off.
    #[serde(skip_serializing_if = "Option::is_none")]
    busy_polls_alone: Option<bool>,
    queues: usize,
    threads: usize,
    rules: usize,
    /// If its driver supports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    rules_refused: Option<String>,
}

impl Interface {
    fn of(taken: &TakenOver) -> Self {
        let TakenOver { interface, native_error, zero_copy_defect, rules_error, .. } = taken.clone();
        Self {
            longest: native_error.as_ref().and_then(|_| interface.exceeded_xdp_mtu()),
            name: interface.name,
            xdp: if taken.mode == AttachMode::Native { "native" } else { "generic" },
            refused: native_error,
            zero_copy: taken.zero_copy,
            zero_copy_skipped: zero_copy_defect,
            busy_polls_alone: taken.busy_polls,
            queues: taken.queues,
            threads: taken.shards,
            rules: taken.rules,
            rules_refused: rules_error,
        }
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copy = if self.zero_copy { "zero-copy" } else { "copied by the kernel" };
        let queues = match (self.queues, self.threads, self.rules) {
            (1, _, 0) => "one queue".into(),
            (1, _, rules) => format!("one queue, to which {rules} NIC rules steer the frames"),
            (queues, 1, _) => format!("{queues} queues on one thread"),
            (queues, threads, 0) => format!("{queues} queues on {threads} threads, which forward frames to each other"),
            (queues, threads, rules) => format!("{queues} queues on {threads} threads, steered by {rules} NIC rules"),
        };
        let polls = match self.busy_polls_alone {
            None => "",
            Some(true) => ", busy polling",
            Some(false) => ", busy polling beside interrupts",
        };
        write!(f, "{} XDP, {copy}, {queues}{polls}", self.xdp)?;
        if let Some(why) = &self.rules_refused {
            write!(f, ". The NIC has no steering rules: {why}")?;
        }
        if let (Some(why), None) = (&self.zero_copy_skipped, &self.refused) {
            write!(f, ". Zero-copy is not tried: {why}; --zero-copy insists on it")?;
        }
        let Some(why) = &self.refused else { return Ok(()) };
        write!(f, ". Warning: that is slow. The driver refuses XDP programs: {why}. ")?;
        if let Some((driver, mtu)) = &self.longest {
            write!(f, "With an MTU of at most {mtu}, {driver} is known to run native XDP. ")?;
        }
        write!(f, "`spray doctor {}` explains why, and --fix repairs most causes", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::Interface;

    #[test]
    fn the_line_states_the_mode_and_its_reason() {
        let (name, busy_polls_alone) = ("eth0".into(), None);
        let native = Interface {
            name,
            xdp: "native",
            refused: None,
            longest: None,
            zero_copy: true,
            zero_copy_skipped: None,
            busy_polls_alone,
            queues: 4,
            threads: 1,
            rules: 0,
            rules_refused: None,
        };
        assert_eq!(native.to_string(), "native XDP, zero-copy, 4 queues on one thread");
        let shared = Interface { threads: 4, ..native.clone() };
        assert!(shared.to_string().ends_with("4 queues on 4 threads, which forward frames to each other"));
        let ruled = Interface { rules: 64, ..shared };
        assert!(ruled.to_string().ends_with("4 queues on 4 threads, steered by 64 NIC rules"));
        let without = Interface { rules: 0, rules_refused: Some("File exists".into()), ..ruled };
        assert!(without.to_string().ends_with("to each other. The NIC has no steering rules: File exists"));
        let polling = Interface { busy_polls_alone: Some(true), ..native.clone() };
        assert_eq!(polling.to_string(), "native XDP, zero-copy, 4 queues on one thread, busy polling");
        let refused = Some("MTU too large".into());
        let generic = Interface { xdp: "generic", refused, zero_copy: false, queues: 1, ..native.clone() };
        assert!(generic.to_string().starts_with("generic XDP, copied by the kernel, one queue. Warning"));
        let too_long = Interface { longest: Some(("igb".into(), 3046)), ..generic.clone() };
        assert!(too_long.to_string().contains("With an MTU of at most 3046, igb is known to run native XDP"));
        let distrusted = Interface { zero_copy: false, zero_copy_skipped: Some("it hangs (x#1)".into()), ..native };
        assert!(
            distrusted
                .to_string()
                .ends_with("4 queues on one thread. Zero-copy is not tried: it hangs (x#1); --zero-copy insists on it")
        );
        assert!(generic.to_string().contains("programs: MTU too large. `spray doctor eth0` explains"));
    }
}
