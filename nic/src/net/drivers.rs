//! Known properties of drivers: MTU limits of native XDP, kernels on which it works, and defects.
//!
//! All of it is from public sources, named in each row; none was reproduced on hardware here.

mod quirks;

pub use quirks::{Environment, Quirk, Severity, quirks};

use super::ethtool::Ethtool;

/// A kernel's version: `(6, 1)` for `6.1.0-13-amd64`.
pub type Kernel = (u32, u32);

/// Parses a version from the output of `uname -r`.
pub fn kernel(release: &str) -> Option<Kernel> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// Returns the version of the running kernel.
pub fn running_kernel() -> Option<Kernel> {
    kernel(&std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?)
}

/// Published experience with a feature of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maturity {
    /// In production use.
    Proven,
    /// Unknown: must be probed.
    Unknown,
    /// Known to fail.
    Broken {
        /// Symptom.
        why: &'static str,
        /// Reference.
        source: &'static str,
    },
}

/// Returns the largest MTU for native XDP with frames of one buffer, or `None` if unknown.
pub fn mtu_limit(driver: &str) -> Option<u32> {
    MTU_LIMITS.iter().find(|(names, _)| names.contains(&driver)).map(|(_, limit)| *limit)
}

/// Returns the largest MTU at which frames have one buffer: [`mtu_limit`], or veth's if it is unknown.
pub fn one_buffer_mtu(driver: &str) -> u32 {
    mtu_limit(driver).unwrap_or(VETH_LIMIT)
}

/// Returns the longest packet that a driver receives in XDP of either mode, if below the largest
/// MTU: vmxnet3 passes the first buffer only, of 3,072 bytes (tested in a virtual machine, Linux
/// 6.18).
pub fn max_rx_packet(driver: &str) -> Option<u32> {
    (driver == "vmxnet3").then_some(3050)
}

/// Returns whether a driver resets its link to enable flow steering rules (`set_features` in Linux
/// 6.18). `ixgbe` supports no rules for IPv6 either.
pub fn resets_link_for_rules(driver: &str) -> bool {
    ["ixgbe", "i40e", "bnxt_en"].contains(&driver)
}

/// Returns the experience with native XDP of a driver on a kernel.
pub fn native(driver: &str, kernel: Kernel) -> Maturity {
    first(NATIVE, driver, kernel)
}

/// Returns the experience with zero-copy AF_XDP sockets of a driver on a kernel.
pub fn zero_copy(driver: &str, kernel: Kernel) -> Maturity {
    match native(driver, kernel) {
        // Zero-copy requires the program in the driver.
        broken @ Maturity::Broken { .. } => broken,
        _ => first(ZERO_COPY, driver, kernel),
    }
}

/// Returns why zero-copy on an interface of this thread's network namespace must not be tried: its
/// driver is known to fail on the running kernel.
pub fn zero_copy_defect(interface: &str) -> Option<String> {
    let driver = Ethtool::open(interface).and_then(|nic| nic.driver()).ok()?.name;
    match zero_copy(&driver, running_kernel()?) {
        Maturity::Broken { why, source } => Some(format!("{why} ({driver}; {source})")),
        _ => None,
    }
}

/// Returns whether busy polling of zero-copy sockets is known to be faster.
///
/// Published for i40e only: 20 Mpps are Firedancer's target for a core that polls an XL710 (its
/// `book/guide/internals/net_tile.md`). The gains of firedancer#10371, 2.4 times with mlx5_core and
/// 1.5 times with i40e, are of copy mode; there bnxt_en stops sending, and ixgbe stalls on 6.14
/// (bpf-examples#138).
pub fn busy_poll_is_faster(driver: &str, kernel: Kernel) -> bool {
    driver == "i40e" && zero_copy(driver, kernel) == Maturity::Proven
}

/// The limit of veth, and of other drivers whose buffers are pages.
const VETH_LIMIT: u32 = 3506;

/// Limits by driver name: ebpf-docs, `BPF_PROG_TYPE_XDP`, of Linux 6.8; ice also
/// ethernet-linux-ice#34, bnxt_en also cilium#35426, ena also cilium#12138. That of veth, which
/// ebpf-docs gives as 3520, excludes the Ethernet header. vmxnet3 accepts programs up to 3494, see
/// [`max_rx_packet`].
const MTU_LIMITS: &[(&[&str], u32)] = &[
    (&["veth", "virtio_net", "mana", "hv_netvsc"], VETH_LIMIT),
    (&["sfc"], 3508),
    (&["bnxt_en", "ionic"], 3502),
    (&["ena", "mlx4_en", "mlx5_core"], 3498),
    (&["vmxnet3"], 3050),
    (&["ixgbe", "ixgbevf"], 3050),
    (&["ice", "i40e", "igb"], 3046),
    (&["atlantic"], 2048),
    (&["gve"], 2032),
    (&["nicvf", "rvu_nicpf", "rvu_nicvf"], 1508),
    (&["igc", "st_gmac", "st_xgmac", "stmmaceth", "netsec", "tun"], 1500),
];

/// Maturity with a driver on kernels `from..until`.
struct Rule {
    driver: &'static str,
    from: Kernel,
    until: Kernel,
    trust: Maturity,
}

const FIRST: Kernel = (0, 0);
const EVER: Kernel = (u32::MAX, 0);
const LIST: &str = "firedancer, fd_config_auto.c @0533934";

const fn known(driver: &'static str, from: Kernel, until: Kernel) -> Rule {
    Rule { driver, from, until, trust: Maturity::Proven }
}

const fn broken(
    driver: &'static str,
    (from, until): (Kernel, Kernel),
    why: &'static str,
    source: &'static str,
) -> Rule {
    Rule { driver, from, until, trust: Maturity::Broken { why, source } }
}

const NO_NATIVE: &str = "it has no native XDP";

const NATIVE: &[Rule] = &[
    known("mlx5_core", (5, 15), (6, 4)),
    broken("mlx5_core", ((6, 4), (6, 5)), "others trust 5.15 to 6.3 and 6.5 or later, but not 6.4", LIST),
    known("mlx5_core", (6, 5), EVER),
    known("i40e", (5, 19), EVER),
    broken("ice", (FIRST, (4, 19)), "XDP is broken in 4.18 of RHEL 8", "firedancer#273"),
    broken(
        "igb",
        ((6, 14), (6, 15)),
        "frames that native XDP passes to the kernel fill up the receive ring",
        "xdp-tutorial#466",
    ),
    broken("e1000", (FIRST, EVER), NO_NATIVE, "xdp-tools#469"),
    broken("e1000e", (FIRST, EVER), NO_NATIVE, "xdp-tools#469"),
    broken("team", (FIRST, EVER), NO_NATIVE, "cilium#22970"),
];

const ZERO_COPY: &[Rule] = &[
    known("mlx5_core", (6, 1), EVER),
    broken("mlx5_core", (FIRST, (6, 1)), "zero-copy queues are numbered after the others", "odp#1574, onload#39"),
    known("i40e", (5, 19), EVER),
    broken("i40e", (FIRST, (5, 19)), "sockets bind, but sending fails", "firedancer#4266, fd_config_auto.c @0533934"),
    broken(
        "ice",
        (FIRST, (6, 11)),
        "opening sockets under traffic may disable the NIC until the next boot; fixed in summer 2024",
        "ethernet-linux-ice#58, #61, #62",
    ),
    broken("ixgbe", ((6, 18), (6, 19)), "frames are held until the socket is closed, on an X540", "xdp-tutorial#471"),
    broken(
        "ena",
        (FIRST, EVER),
        "only out-of-tree drivers support it; 2.13.1 corrupts memory, and wake-ups reach the wrong queue",
        "amzn-drivers#330, #221, onload#305",
    ),
    broken("st_gmac", (FIRST, EVER), RAN_DRY, "analogdevicesinc/linux#3517"),
    broken("st_xgmac", (FIRST, EVER), RAN_DRY, "analogdevicesinc/linux#3517"),
];

const RAN_DRY: &str = "a queue that ran out of fill descriptors once never receives again";

fn first(rules: &[Rule], driver: &str, kernel: Kernel) -> Maturity {
    let holds = |rule: &&Rule| rule.driver == driver && (rule.from..rule.until).contains(&kernel);
    rules.iter().find(holds).map_or(Maturity::Unknown, |rule| rule.trust)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_versions_are_parsed() {
        assert_eq!(kernel("6.18.0-rc1+"), Some((6, 18)));
        assert_eq!(kernel("5.10"), Some((5, 10)));
        assert_eq!(kernel(""), None);
    }

    #[test]
    fn limits_follow_from_the_smallest_buffer() {
        let limits = ["mlx5_core", "ice", "ixgbe", "gve", "igc", "8139too"].map(mtu_limit);
        assert_eq!(limits, [Some(3498), Some(3046), Some(3050), Some(2032), Some(1500), None]);
        assert_eq!([max_rx_packet("vmxnet3"), max_rx_packet("igb")], [Some(3050), None]);
    }

    #[test]
    fn trust_depends_on_driver_and_kernel() {
        let is_broken = |trust| matches!(trust, Maturity::Broken { .. });
        let table = [
            ("mlx5_core", (5, 14), Maturity::Unknown, true),
            ("mlx5_core", (5, 15), Maturity::Proven, true),
            ("mlx5_core", (6, 1), Maturity::Proven, false),
            ("mlx5_core", (6, 5), Maturity::Proven, false),
            ("i40e", (5, 18), Maturity::Unknown, true),
            ("i40e", (6, 18), Maturity::Proven, false),
            ("ice", (6, 1), Maturity::Unknown, true),
            ("ice", (6, 12), Maturity::Unknown, false),
            ("veth", (6, 18), Maturity::Unknown, false),
        ];
        for (driver, kernel, natively, without) in table {
            assert_eq!(native(driver, kernel), natively, "{driver} {kernel:?}");
            assert_eq!(is_broken(zero_copy(driver, kernel)), without, "{driver} {kernel:?}");
        }
        assert!(is_broken(native("mlx5_core", (6, 4))) && is_broken(zero_copy("mlx5_core", (6, 4))));
        assert_eq!(zero_copy("mlx5_core", (6, 3)), Maturity::Proven);
        assert_eq!(zero_copy("bnxt_en", (6, 18)), Maturity::Unknown);
        let wins = [("i40e", (6, 1)), ("i40e", (5, 18)), ("mlx5_core", (6, 18)), ("veth", (6, 18))];
        assert_eq!(wins.map(|(driver, kernel)| busy_poll_is_faster(driver, kernel)), [true, false, false, false]);
    }
}
