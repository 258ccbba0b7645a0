//! What breaks with which driver, as a table: when, what, what mends it, and who says so.

use super::Kernel;
use crate::net::ethtool::Channels;

/// What is known of an interface and its machine, by which quirks are chosen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setting<'a> {
    /// The driver.
    pub driver: &'a str,
    /// The kernel.
    pub kernel: Kernel,
    /// The version of a driver that was built outside of the kernel.
    pub foreign: Option<&'a str>,
    /// Whether it is a virtual function of a NIC (SR-IOV).
    pub is_virtual_function: bool,
    /// Whether it is part of a bond.
    pub in_bond: bool,
    /// Whether the module `irdma` is loaded.
    pub has_irdma: bool,
    /// Whether the driver's flag `xdp_tx_mpwqe` is on.
    pub has_mpwqe: bool,
    /// CPUs of the machine.
    pub cpus: u32,
    /// Its queues.
    pub channels: Channels,
}

impl Setting<'_> {
    /// Queues of the kind that it has: how many, and the most.
    fn queues(&self) -> (u32, u32) {
        let Channels { rx, combined, most: [most_rx, _, _, most_combined], .. } = self.channels;
        if combined > 0 { (combined, most_combined) } else { (rx, most_rx) }
    }

    fn more_than_half(&self) -> bool {
        let (queues, most) = self.queues();
        2 * queues > most
    }

    /// Whether the driver has no queues left to send by from each CPU.
    fn too_few_left(&self) -> bool {
        let (queues, most) = self.queues();
        queues + self.cpus > most
    }

    fn is(&self, from: Kernel, until: Kernel) -> bool {
        (from..until).contains(&self.kernel)
    }

    /// Whether the driver is a foreign one whose version begins so.
    fn has_version(&self, begin: &str) -> bool {
        self.foreign.is_some_and(|version| version.starts_with(begin))
    }
}

/// How much a quirk weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Good to know.
    Note,
    /// It may cost speed, or break.
    Warning,
    /// Native XDP does not work so.
    Failure,
}

/// What breaks with a driver.
pub struct Quirk {
    /// The driver.
    pub driver: &'static str,
    when: fn(&Setting<'_>) -> bool,
    /// How much it weighs.
    pub weight: Weight,
    /// What happens.
    pub what: &'static str,
    /// What mends it; `IF` stands for the interface.
    pub remedy: &'static str,
    /// Where that is documented.
    pub source: &'static str,
}

/// The quirks that hold in this setting.
pub fn quirks(setting: &Setting<'_>) -> impl Iterator<Item = &'static Quirk> {
    QUIRKS.iter().filter(move |quirk| quirk.driver == setting.driver && (quirk.when)(setting))
}

/// Columns: driver, when, weight, what, remedy, source. What a probe finds by itself is not here, nor what [`Trust`](super::Trust) tells.
const QUIRKS: &[Quirk] = &[
    quirk(
        "mlx5_core",
        |set| set.is_virtual_function,
        Weight::Warning,
        "XDP on virtual functions of ConnectX fails or breaks traffic",
        "use the physical function's interface",
        "cilium#40259, xdp-tutorial#238",
    ),
    quirk(
        "mlx5_core",
        |set| set.has_mpwqe,
        Weight::Note,
        "small frames are sent more slowly without copies while `xdp_tx_mpwqe` is on",
        "`ethtool --set-priv-flags IF xdp_tx_mpwqe off`, if frames are small",
        "bpf-examples#61",
    ),
    quirk(
        "mlx5_core",
        |set| set.queues().0 > 48,
        Weight::Note,
        "a ConnectX-6 Dx redirects most frames with about 48 queues",
        "`ethtool -L IF combined 48` or less",
        "NVIDIA forum 364755",
    ),
    quirk(
        "ice",
        |set| set.has_irdma,
        Weight::Warning,
        "the number of queues cannot be changed while `irdma` is loaded (EBUSY)",
        "`rmmod irdma` before `ethtool -L IF`",
        "firedancer#11071",
    ),
    quirk(
        "ice",
        |set| set.foreign.is_some(),
        Weight::Warning,
        "drivers outside of the kernel up to 2.5.4 lose the NIC when sockets open while frames are sent",
        "the kernel's own driver, from 6.11 on, or --copy",
        "ethernet-linux-ice#58, #61, #62",
    ),
    quirk(
        "ice",
        |set| set.in_bond && set.kernel >= (7, 0),
        Weight::Warning,
        "sockets without copies under a bond made the kernel panic at 80 Mpps",
        "take the NIC out of the bond, or --copy",
        "ethernet-linux-ice#59",
    ),
    quirk(
        "i40e",
        |set| set.foreign.is_some(),
        Weight::Warning,
        "builds outside of the kernel may lack XDP",
        "the kernel's own driver",
        "xdp-tutorial#465",
    ),
    quirk(
        "i40e",
        |set| set.queues().0 < set.cpus,
        Weight::Warning,
        "with fewer queues than CPUs, frames redirected to it are refused (ENXIO)",
        "only programs that redirect to this interface need more queues: spray does not",
        "ethernet-linux-i40e#19",
    ),
    quirk(
        "ixgbe",
        |set| set.cpus > 63,
        Weight::Failure,
        "native XDP is refused (ENOMEM) with more than 63 or 64 CPUs",
        "start the kernel with `nr_cpus=63`",
        "cilium#14648",
    ),
    quirk(
        "ixgbe",
        |set| set.too_few_left(),
        Weight::Warning,
        "queues and CPUs together are more than the NIC's queues: sending hangs",
        "`ethtool -L IF combined N`, with N at most the maximum without the CPUs",
        "katran#20",
    ),
    quirk(
        "ixgbe",
        |set| set.foreign.is_some(),
        Weight::Warning,
        "Intel's driver 5.x refuses sockets without copies",
        "the kernel's own driver",
        "xdp-tutorial#127, onload#18",
    ),
    quirk(
        "ixgbe",
        |_| true,
        Weight::Note,
        "`ethtool -K IF ntuple on` resets how packets are spread over queues",
        "run the doctor again after it",
        "firedancer, ethtool-channels.c",
    ),
    quirk(
        "ixgbe",
        |set| set.is((6, 14), (6, 15)),
        Weight::Warning,
        "busy polling stalls at 10 Mpps on 6.14",
        "another kernel, or no busy polling",
        "bpf-examples#138",
    ),
    quirk(
        "igb",
        |_| true,
        Weight::Note,
        "how packets are spread over queues is wrong after their number has changed",
        "run the doctor again after `ethtool -L`",
        "firedancer, ethtool-channels.c",
    ),
    quirk(
        "bnxt_en",
        |_| true,
        Weight::Note,
        "most kernels have no sockets without copies for it, and in copy mode a flood of arrivals may stop sending",
        "the probe tells",
        "firedancer#10371, #4081, solanahcl#39",
    ),
    quirk(
        "ena",
        |set| set.more_than_half(),
        Weight::Failure,
        "native XDP takes at most half of the queues that there may be",
        "`ethtool -L IF combined N`, with N half of the maximum or less",
        "cilium#12138, #19593, amzn-drivers#164",
    ),
    quirk(
        "ena",
        |set| set.has_version("2.7."),
        Weight::Warning,
        "2.7.x is slow with XDP, or resets",
        "a newer driver, and not 2.13.1",
        "amzn-drivers#221, #240",
    ),
    quirk(
        "ena",
        |set| set.has_version("2.13.1"),
        Weight::Failure,
        "2.13.1 corrupts memory with sockets without copies",
        "another version, or --copy",
        "amzn-drivers#330",
    ),
    quirk(
        "gve",
        |set| set.more_than_half() || (set.channels.combined == 0 && set.channels.rx != set.channels.tx),
        Weight::Failure,
        "native XDP takes as many queues to receive as to send, and at most half of those that there may be",
        "`ethtool -L IF rx N tx N`, with N half of the maximum or less",
        "firezone#8538",
    ),
    quirk(
        "gve",
        |set| ["1.1.", "1.2.", "1.3."].iter().any(|begin| set.has_version(begin)),
        Weight::Warning,
        "versions before 1.4.7 have no XDP on NICs with the queue format DQO_RDA, and 1.3.4 stops sending for good",
        "1.4.7 or later, or a newer kernel's",
        "compute-virtual-ethernet-linux#65, #59",
    ),
    quirk(
        "virtio_net",
        |set| set.too_few_left(),
        Weight::Warning,
        "fewer queues are free than there are CPUs: native XDP is refused, or every frame takes a lock",
        "`ethtool -L IF combined N`, with N at most the maximum without the CPUs, or more queues in the hypervisor",
        "xdp-tutorial#277, katran#18",
    ),
    quirk(
        "virtio_net",
        |set| set.kernel >= (6, 11),
        Weight::Note,
        "Linux 6.18 has crashed after `ethtool -L` took queues away that had had sockets without copies (in virtnet_poll_tx and in xp_alloc_batch)",
        "the number of queues before the first command, or --copy",
        "tried in a virtual machine, docs/results/nics.md",
    ),
    quirk(
        "hv_netvsc",
        |_| true,
        Weight::Warning,
        "frames come by the virtual function below it, on which the program must be as well",
        "use the interface of the same Ethernet address below it, which `ip link` shows with `master IF`",
        "cilium#12150, onload#39",
    ),
    quirk(
        "mana",
        |set| set.in_bond || set.is_virtual_function,
        Weight::Warning,
        "some frames come by the synthetic device above it, which its program does not see",
        "the probe tells",
        "cilium#12150, onload#39",
    ),
    quirk(
        "sfc",
        |_| true,
        Weight::Note,
        "opening sockets without copies while the interface is down made the kernel fail",
        "`ip link set IF up` first",
        "onload#177, #261",
    ),
];

const fn quirk(
    driver: &'static str,
    when: fn(&Setting<'_>) -> bool,
    weight: Weight,
    what: &'static str,
    remedy: &'static str,
    source: &'static str,
) -> Quirk {
    Quirk { driver, when, weight, what, remedy, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(setting: &Setting<'_>) -> Vec<&'static str> {
        quirks(setting).filter(|quirk| quirk.weight != Weight::Note).map(|quirk| quirk.source).collect()
    }

    #[test]
    fn queues_are_counted_by_the_rule_of_each_driver() {
        let channels = |combined, most| Channels { combined, most: [0, 0, 0, most], ..Channels::default() };
        let of =
            |driver, channels, cpus| found(&Setting { driver, channels, cpus, kernel: (6, 12), ..Setting::default() });
        assert_eq!(of("ena", channels(5, 8), 8).len(), 1);
        assert!(of("ena", channels(4, 8), 8).is_empty());
        assert_eq!(of("virtio_net", channels(2, 4), 4), ["xdp-tutorial#277, katran#18"]);
        assert!(of("virtio_net", channels(2, 6), 4).is_empty());
        assert_eq!(of("i40e", channels(2, 6), 4).len(), 1);
        let split = Channels { rx: 2, tx: 1, most: [8, 8, 0, 0], ..Channels::default() };
        assert_eq!((of("gve", split, 4).len(), of("gve", Channels { tx: 2, ..split }, 4).len()), (1, 0));
    }

    #[test]
    fn versions_parts_and_modules_decide() {
        let ice = Setting { driver: "ice", kernel: (7, 0), ..Setting::default() };
        assert!(found(&ice).is_empty());
        assert_eq!(found(&Setting { in_bond: true, has_irdma: true, foreign: Some("2.5.4"), ..ice }).len(), 3);
        let mlx5 = Setting { driver: "mlx5_core", is_virtual_function: true, ..Setting::default() };
        assert_eq!(found(&mlx5), ["cilium#40259, xdp-tutorial#238"]);
        let ena = Setting { driver: "ena", foreign: Some("2.13.1g"), ..Setting::default() };
        assert_eq!(found(&ena), ["amzn-drivers#330"]);
    }

    #[test]
    fn every_row_says_what_why_and_what_mends_it() {
        for quirk in QUIRKS {
            assert!([quirk.what, quirk.remedy, quirk.source].iter().all(|text| !text.is_empty()), "{}", quirk.driver);
        }
    }
}
