//! Known defects by driver: condition, symptom, remedy and source.

use super::Kernel;
use crate::net::ethtool::Channels;

/// Properties of an interface and its machine, by which quirks are selected.
#[derive(Clone, Copy, Debug, Default)]
pub struct Environment<'a> {
    /// The driver.
    pub driver: &'a str,
    /// The kernel.
    pub kernel: Kernel,
    /// Version of a driver built out of tree.
    pub out_of_tree: Option<&'a str>,
    /// Whether it is a virtual function of a NIC (SR-IOV).
    pub is_virtual_function: bool,
    /// Whether it is a member of a bond.
    pub in_bond: bool,
    /// Whether the module `irdma` is loaded.
    pub has_irdma: bool,
    /// Whether the private flag `xdp_tx_mpwqe` is on.
    pub has_mpwqe: bool,
    /// Number of CPUs.
    pub cpus: u32,
    /// Queues.
    pub channels: Channels,
}

impl Environment<'_> {
    /// Returns the number of receive queues and its maximum.
    fn queues(&self) -> (u32, u32) {
        let Channels { rx, combined, max: [max_rx, _, _, max_combined], .. } = self.channels;
        if combined > 0 { (combined, max_combined) } else { (rx, max_rx) }
    }

    fn more_than_half(&self) -> bool {
        let (queues, most) = self.queues();
        2 * queues > most
    }

    /// Returns whether there are too few queues for one transmit queue per CPU.
    fn too_few_left(&self) -> bool {
        let (queues, most) = self.queues();
        queues + self.cpus > most
    }

    fn is(&self, from: Kernel, until: Kernel) -> bool {
        (from..until).contains(&self.kernel)
    }

    /// Returns whether an out-of-tree driver's version begins with `begin`.
    fn has_version(&self, begin: &str) -> bool {
        self.out_of_tree.is_some_and(|version| version.starts_with(begin))
    }
}

/// Severity of a quirk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Information.
    Note,
    /// May be slow or fail.
    Warning,
    /// Native XDP does not work.
    Failure,
}

/// A known defect of a driver.
pub struct Quirk {
    /// The driver.
    pub driver: &'static str,
    when: fn(&Environment<'_>) -> bool,
    /// Severity.
    pub severity: Severity,
    /// Symptom.
    pub what: &'static str,
    /// Remedy; `IF` is a placeholder for the interface.
    pub remedy: &'static str,
    /// Reference.
    pub source: &'static str,
}

/// Returns the quirks that apply to a system.
pub fn quirks(system: &Environment<'_>) -> impl Iterator<Item = &'static Quirk> {
    QUIRKS.iter().filter(move |quirk| quirk.driver == system.driver && (quirk.when)(system))
}

/// Without what a probe detects, or [`Maturity`](super::Maturity) covers.
const QUIRKS: &[Quirk] = &[
    quirk("mlx5_core", Severity::Warning, |set| set.is_virtual_function)
        .what("XDP on virtual functions of ConnectX fails or breaks traffic")
        .remedy("use the physical function's interface")
        .source("cilium#40259, xdp-tutorial#238"),
    quirk("mlx5_core", Severity::Note, |set| set.has_mpwqe)
        .what("zero-copy sends small frames more slowly while `xdp_tx_mpwqe` is on")
        .remedy("`ethtool --set-priv-flags IF xdp_tx_mpwqe off`, if frames are small")
        .source("bpf-examples#61"),
    quirk("mlx5_core", Severity::Note, |set| set.queues().0 > 48)
        .what("a ConnectX-6 Dx redirects most frames with about 48 queues")
        .remedy("`ethtool -L IF combined 48` or less")
        .source("NVIDIA forum 364755"),
    quirk("ice", Severity::Warning, |set| set.has_irdma)
        .what("the number of queues cannot be changed while `irdma` is loaded (EBUSY)")
        .remedy("`rmmod irdma` before `ethtool -L IF`")
        .source("firedancer#11071"),
    quirk("ice", Severity::Warning, |set| set.out_of_tree.is_some())
        .what("out-of-tree drivers up to 2.5.4 lose the NIC when sockets open under traffic")
        .remedy("the in-tree driver, from 6.11 on, or --copy")
        .source("ethernet-linux-ice#58, #61, #62"),
    quirk("ice", Severity::Warning, |set| set.in_bond && set.kernel >= (7, 0))
        .what("zero-copy sockets under a bond caused a kernel panic at 80 Mpps")
        .remedy("remove the NIC from the bond, or --copy")
        .source("ethernet-linux-ice#59"),
    quirk("i40e", Severity::Warning, |set| set.out_of_tree.is_some())
        .what("out-of-tree builds may lack XDP")
        .remedy("the in-tree driver")
        .source("xdp-tutorial#465"),
    quirk("i40e", Severity::Warning, |set| set.queues().0 < set.cpus)
        .what("with fewer queues than CPUs, redirects to it fail (ENXIO)")
        .remedy("needed only by programs that redirect to this interface: spray does not")
        .source("ethernet-linux-i40e#19"),
    quirk("ixgbe", Severity::Failure, |set| set.cpus > 63)
        .what("native XDP is refused (ENOMEM) with more than 63 or 64 CPUs")
        .remedy("start the kernel with `nr_cpus=63`")
        .source("cilium#14648"),
    quirk("ixgbe", Severity::Warning, |set| set.too_few_left())
        .what("queues and CPUs together exceed the NIC's queues: sending hangs")
        .remedy("`ethtool -L IF combined N`, with N at most the maximum minus the CPUs")
        .source("katran#20"),
    quirk("ixgbe", Severity::Warning, |set| set.out_of_tree.is_some())
        .what("Intel's driver 5.x refuses zero-copy sockets")
        .remedy("the in-tree driver")
        .source("xdp-tutorial#127, onload#18"),
    quirk("ixgbe", Severity::Note, |_| true)
        .what("`ethtool -K IF ntuple on` resets the indirection table")
        .remedy("run the doctor again after it")
        .source("firedancer, ethtool-channels.c"),
    quirk("ixgbe", Severity::Warning, |set| set.is((6, 14), (6, 15)))
        .what("busy polling stalls at 10 Mpps on 6.14")
        .remedy("another kernel, or no busy polling")
        .source("bpf-examples#138"),
    quirk("igb", Severity::Note, |_| true)
        .what("the indirection table is wrong after the number of queues has changed")
        .remedy("run the doctor again after `ethtool -L`")
        .source("firedancer, ethtool-channels.c"),
    quirk("bnxt_en", Severity::Note, |_| true)
        .what("most kernels do not support zero-copy for it, and in copy mode a flood of arrivals may stop sending")
        .remedy("see the probe")
        .source("firedancer#10371, #4081, solanahcl#39"),
    quirk("ena", Severity::Failure, |set| set.more_than_half())
        .what("native XDP supports at most half of the maximum number of queues")
        .remedy("`ethtool -L IF combined N`, with N half of the maximum or less")
        .source("cilium#12138, #19593, amzn-drivers#164"),
    quirk("ena", Severity::Warning, |set| set.has_version("2.7."))
        .what("2.7.x is slow with XDP, or resets")
        .remedy("a newer driver, and not 2.13.1")
        .source("amzn-drivers#221, #240"),
    quirk("ena", Severity::Failure, |set| set.has_version("2.13.1"))
        .what("2.13.1 corrupts memory with zero-copy sockets")
        .remedy("another version, or --copy")
        .source("amzn-drivers#330"),
    quirk("gve", Severity::Failure, |set| set.more_than_half() || (set.channels.combined == 0 && set.channels.rx != set.channels.tx))
        .what("native XDP needs as many receive as transmit queues, and at most half of the maximum")
        .remedy("`ethtool -L IF rx N tx N`, with N half of the maximum or less")
        .source("firezone#8538"),
    quirk("gve", Severity::Warning, |set| ["1.1.", "1.2.", "1.3."].iter().any(|begin| set.has_version(begin)))
        .what("versions before 1.4.7 have no XDP on NICs with the queue format DQO_RDA, and 1.3.4 stops sending for good")
        .remedy("1.4.7 or later, or a newer kernel's")
        .source("compute-virtual-ethernet-linux#65, #59"),
    quirk("virtio_net", Severity::Warning, |set| set.too_few_left())
        .what("fewer free queues than CPUs: native XDP is refused, or every frame takes a lock")
        .remedy("`ethtool -L IF combined N`, with N at most the maximum minus the CPUs, or more queues in the hypervisor")
        .source("xdp-tutorial#277, katran#18"),
    quirk("virtio_net", Severity::Note, |set| set.kernel >= (6, 11))
        .what("Linux 6.18 crashed after `ethtool -L` removed queues with zero-copy sockets (in virtnet_poll_tx and xp_alloc_batch)")
        .remedy("set the number of queues before the first command, or --copy")
        .source("tried in a virtual machine, docs/results/nics.md"),
    quirk("hv_netvsc", Severity::Warning, |_| true)
        .what("frames arrive on the virtual function below it, which needs the program as well")
        .remedy("use the interface of the same Ethernet address below it, which `ip link` shows with `master IF`")
        .source("cilium#12150, onload#39"),
    quirk("mana", Severity::Warning, |set| set.in_bond || set.is_virtual_function)
        .what("some frames arrive on the synthetic device above it, which its program does not see")
        .remedy("see the probe")
        .source("cilium#12150, onload#39"),
    quirk("sfc", Severity::Note, |_| true)
        .what("opening zero-copy sockets while the interface is down crashed the kernel")
        .remedy("`ip link set IF up` first")
        .source("onload#177, #261"),
];

const fn quirk(driver: &'static str, severity: Severity, when: fn(&Environment<'_>) -> bool) -> Quirk {
    Quirk { driver, when, severity, what: "", remedy: "", source: "" }
}

impl Quirk {
    const fn what(self, what: &'static str) -> Self {
        Self { what, ..self }
    }

    const fn remedy(self, remedy: &'static str) -> Self {
        Self { remedy, ..self }
    }

    const fn source(self, source: &'static str) -> Self {
        Self { source, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(system: &Environment<'_>) -> Vec<&'static str> {
        quirks(system).filter(|quirk| quirk.severity != Severity::Note).map(|quirk| quirk.source).collect()
    }

    #[test]
    fn each_driver_has_its_rule_for_queues() {
        let channels = |combined, max| Channels { combined, max: [0, 0, 0, max], ..Channels::default() };
        let of = |driver, channels, cpus| {
            found(&Environment { driver, channels, cpus, kernel: (6, 12), ..Environment::default() })
        };
        assert_eq!(of("ena", channels(5, 8), 8).len(), 1);
        assert!(of("ena", channels(4, 8), 8).is_empty());
        assert_eq!(of("virtio_net", channels(2, 4), 4), ["xdp-tutorial#277, katran#18"]);
        assert!(of("virtio_net", channels(2, 6), 4).is_empty());
        assert_eq!(of("i40e", channels(2, 6), 4).len(), 1);
        let split = Channels { rx: 2, tx: 1, max: [8, 8, 0, 0], ..Channels::default() };
        assert_eq!((of("gve", split, 4).len(), of("gve", Channels { tx: 2, ..split }, 4).len()), (1, 0));
    }

    #[test]
    fn quirks_depend_on_versions_devices_and_modules() {
        let ice = Environment { driver: "ice", kernel: (7, 0), ..Environment::default() };
        assert!(found(&ice).is_empty());
        assert_eq!(found(&Environment { in_bond: true, has_irdma: true, out_of_tree: Some("2.5.4"), ..ice }).len(), 3);
        let mlx5 = Environment { driver: "mlx5_core", is_virtual_function: true, ..Environment::default() };
        assert_eq!(found(&mlx5), ["cilium#40259, xdp-tutorial#238"]);
        let ena = Environment { driver: "ena", out_of_tree: Some("2.13.1g"), ..Environment::default() };
        assert_eq!(found(&ena), ["amzn-drivers#330"]);
    }

    #[test]
    fn every_quirk_has_a_symptom_source_and_remedy() {
        for quirk in QUIRKS {
            assert!([quirk.what, quirk.remedy, quirk.source].iter().all(|text| !text.is_empty()), "{}", quirk.driver);
        }
    }
}
