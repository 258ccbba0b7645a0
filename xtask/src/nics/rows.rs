//! The emulated NICs, and the network that joins two of them.

use crate::vm::boot::VIRTIO;

#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The driver, and a variant.
    pub name: &'static str,
    /// QEMU's device name and options.
    device: &'static str,
    /// Queues per NIC. QEMU's virtio-net uses a TAP queue for each.
    pub queues: u32,
}

pub const ROWS: [Kind; 8] = [
    kind("igb", "igb", 4),
    kind("virtio-net 1", "virtio-net-pci", 1),
    kind("virtio-net 2", "virtio-net-pci", 2),
    kind("virtio-net 2 rss", "virtio-net-pci,rss=on", 2),
    kind("virtio-net 4", "virtio-net-pci", 4),
    kind("virtio-net 4 rss", "virtio-net-pci,rss=on", 4),
    kind("vmxnet3", "vmxnet3", 2),
    kind("e1000e", "e1000e", 1),
];

const fn kind(name: &'static str, device: &'static str, queues: u32) -> Kind {
    Kind { name, device, queues }
}

impl Kind {
    /// Returns QEMU's arguments. Each NIC has a separate PCIe port, without which igb is not found.
    pub fn arguments(&self) -> Vec<String> {
        let nics = (0..2).flat_map(|number| self.nic(number));
        ["-machine", "q35"].map(String::from).into_iter().chain(nics).collect()
    }

    fn nic(&self, number: u32) -> [String; 6] {
        let Self { device, .. } = self;
        let taps = match self.tap_queues() {
            1 => String::new(),
            queues => format!(",queues={queues}"),
        };
        let port = format!("pcie-root-port,id=port{number},chassis={number},slot={number}");
        let own = match (self.is_virtio(), self.queues) {
            (false, _) => String::new(),
            (true, 1) => format!(",{VIRTIO}"),
            // An interrupt per queue and direction, and two more.
            (true, queues) => format!(",{VIRTIO},mq=on,vectors={}", 2 * queues + 2),
        };
        [
            "-netdev".into(),
            format!("tap,id=net{number},ifname=wire{number},script=no,downscript=no,vhost=off{taps}"),
            "-device".into(),
            port,
            "-device".into(),
            format!("{device},bus=port{number},netdev=net{number},mac=02:00:00:00:00:0{number}{own}"),
        ]
    }

    pub fn wires(&self) -> String {
        wires(if self.tap_queues() > 1 { "multi_queue" } else { "" })
    }

    /// Only virtio maps its queues to those of the TAP device.
    fn tap_queues(&self) -> u32 {
        if self.is_virtio() { self.queues } else { 1 }
    }

    fn is_virtio(&self) -> bool {
        self.device.starts_with("virtio")
    }
}

/// Returns shell commands for two TAP devices, with `flags`, on a bridge with a large MTU.
pub fn wires(flags: &str) -> String {
    format!(
        "ip link add wires type bridge mcast_snooping 0
ip link set wires mtu 9000 up
for tap in wire0 wire1; do
    ip tuntap add $tap mode tap {flags}
    ip link set $tap mtu 9000 master wires up
done"
    )
}
