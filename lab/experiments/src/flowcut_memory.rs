//! State of flowcuts, flowlets and flowcells by Flowcut's model (Flowcut §III-A2).
//!
//! Specified in `docs/specs/flowcut-memory.md` (`FCM-n`).

/// A network. [`Default`] has the fixed values of figure 4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dimensions {
    /// Number of hosts, `H`.
    pub hosts: u32,
    /// Rate of a host's link in Gb/s, `B`.
    pub gbps: f64,
    /// The longest time from a packet to its acknowledgement in us, `l`.
    pub rtt_us: f64,
    /// Packet size in bytes, `M`.
    pub mtu_bytes: u32,
    /// Flows sent by each host, `f`.
    pub flows_per_host: u32,
    /// Ports of a switch, each of which may lead to a host.
    pub ports_per_switch: u32,
}

impl Default for Dimensions {
    fn default() -> Self {
        Self { hosts: 1024, gbps: 200.0, rtt_us: 5.0, mtu_bytes: 2048, flows_per_host: 10_000, ports_per_switch: 64 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateLocation {
    FlowcutFullSwitch,
    /// Flowcut in the switches with hosts.
    FlowcutIngressSwitch,
    FlowcutNic,
    FlowletSwitch,
    FlowcellSwitch,
}

impl StateLocation {
    //= docs/specs/flowcut-memory.md#FCM-2 full switch 11
    /// Bytes of state of a flow.
    pub const fn bytes_per_flow(self) -> u32 {
        match self {
            Self::FlowcutFullSwitch => 11,
            Self::FlowcutIngressSwitch | Self::FlowcutNic => 10,
            Self::FlowletSwitch => 5,
            Self::FlowcellSwitch => 2,
        }
    }

    //= docs/specs/flowcut-memory.md#FCM-3 every active flow of the network
    fn hosts(self, network: &Dimensions) -> u32 {
        match self {
            Self::FlowcutFullSwitch | Self::FlowletSwitch | Self::FlowcellSwitch => network.hosts,
            Self::FlowcutIngressSwitch => network.ports_per_switch.min(network.hosts),
            Self::FlowcutNic => 1,
        }
    }
}

impl Dimensions {
    /// Returns the maximum number of bytes of state of `location`.
    pub fn bytes(&self, location: StateLocation) -> f64 {
        self.active_flows(location.hosts(self)) * f64::from(location.bytes_per_flow())
    }

    fn packets_in_flight(&self) -> f64 {
        // Gb/s times us are kbit.
        self.gbps * self.rtt_us * 1e3 / 8.0 / f64::from(self.mtu_bytes)
    }

    /// Equation 1, for `hosts` hosts.
    //= docs/specs/flowcut-memory.md#FCM-1 at most one flow for each
    fn active_flows(&self, hosts: u32) -> f64 {
        f64::from(hosts) * self.packets_in_flight().min(f64::from(self.flows_per_host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [StateLocation; 5] = [
        StateLocation::FlowcutFullSwitch,
        StateLocation::FlowcutIngressSwitch,
        StateLocation::FlowcutNic,
        StateLocation::FlowletSwitch,
        StateLocation::FlowcellSwitch,
    ];

    /// Equation 1, literally.
    fn equation_1(network: &Dimensions) -> f64 {
        let (h, f) = (f64::from(network.hosts), f64::from(network.flows_per_host));
        let (b, l, m) = (network.gbps * 1e9 / 8.0, network.rtt_us * 1e-6, f64::from(network.mtu_bytes));
        if b * l / (f * m) >= 1.0 { h * f } else { h * b * l / m }
    }

    //= docs/specs/flowcut-memory.md#FCM-1 at most one flow for each
    #[test]
    fn active_flows_are_those_of_equation_1() {
        for flows_per_host in [1, 10, 61, 62, 244, 245, 10_000, 1_000_000] {
            for gbps in [100.0, 200.0, 800.0, 1_600.0] {
                for rtt_us in [1.0, 5.0, 50.0] {
                    let network = Dimensions { gbps, rtt_us, flows_per_host, ..Dimensions::default() };
                    let (found, expected) = (network.active_flows(network.hosts), equation_1(&network));
                    assert!((found / expected - 1.0).abs() < 1e-9, "{network:?}: {found} {expected}");
                }
            }
        }
    }

    #[test]
    fn beyond_one_packet_per_flow_in_flight_more_flows_need_no_more_memory() {
        for location in ALL {
            let bytes = |flows_per_host| Dimensions { flows_per_host, ..Dimensions::default() }.bytes(location);
            assert_eq!(bytes(62), bytes(1_000_000));
            assert!(bytes(61) < bytes(62));
        }
    }

    /// Figure 4a: memory grows linearly with the round trip.
    #[test]
    fn memory_is_proportional_to_round_trip_rate_and_hosts() {
        let base = Dimensions::default();
        let full = |network: Dimensions| network.bytes(StateLocation::FlowcutFullSwitch);
        for more in [
            Dimensions { rtt_us: 50.0, ..base },
            Dimensions { gbps: 2_000.0, ..base },
            Dimensions { hosts: 10_240, ..base },
        ] {
            assert!((full(more) / full(base) - 10.0).abs() < 1e-9);
        }
    }

    //= docs/specs/flowcut-memory.md#FCM-4 regardless of the number of flows
    //= docs/specs/flowcut-memory.md#FCM-3 flows held by a device
    #[test]
    fn ingress_and_nic_at_800_gbps_differ_from_the_paper() {
        let network = Dimensions { gbps: 800.0, hosts: 65_536, flows_per_host: u32::MAX, ..Dimensions::default() };
        assert_eq!(
            (network.bytes(StateLocation::FlowcutIngressSwitch), network.bytes(StateLocation::FlowcutNic)),
            (156_250.0, 2_441.406_25)
        );
    }

    //= docs/specs/flowcut-memory.md#FCM-2 full switch 11
    #[test]
    fn figure_5_compares_the_memory_of_a_flow() {
        let [full, ingress, nic, flowlet, flowcell] = ALL.map(|location| Dimensions::default().bytes(location));
        assert!(nic < ingress && ingress < flowcell && flowcell < flowlet && flowlet < full);
        assert!((full / flowlet - 11.0 / 5.0).abs() < 1e-9 && (flowlet / flowcell - 2.5).abs() < 1e-9);
    }
}
