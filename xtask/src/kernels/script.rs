//! What runs in the virtual machine.

/// What runs in the virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// One condition under one balancer, four hosts.
    Short,
    /// The demo: nine runs of eight hosts, with slow and silent uplinks.
    Demo,
}

/// What the script prints before the parts that [`super::report`] reads.
pub const DOCTOR: &str = "@@ doctor";
pub const RUN: &str = "@@ run";
pub const ZERO_COPY: &str = "@@ zero-copy";

pub const SCENARIO: &str = "name = \"kernels\"
[topology]
kind = \"leaf-spine\"
leaves = 2
spines = 2
hosts_per_leaf = 2
host_gbps = 100
latency_us = 1
[workload]
kind = \"cross-leaf-permutation\"
bytes = \"200 kB\"
[transport]
balancer = [\"reps\"]
";

/// A file from one NIC of the virtual machine to the other, which is in a namespace of its own. Ends with how `spray send` ended.
const ZERO_COPY_TRANSFER: &str = "unshare -n sleep 1000 &
there=$!
sleep 1
ip link set eth1 netns $there
ip address add 10.0.0.1/24 dev eth0
ip link set eth0 up
nsenter -t $there -n ip address add 10.0.0.2/24 dev eth1
nsenter -t $there -n ip link set eth1 up
nsenter -t $there -n spray recv --insecure --interface eth1 --out /tmp --zero-copy &
receiver=$!
sleep 3
head -c 2000000 /dev/urandom > /file
spray send /file --insecure --interface eth0 --to 10.0.0.2 --zero-copy --timeout 20
echo \"exit $?\"
kill $there $receiver 2> /dev/null";

pub fn script(extent: Extent) -> String {
    let run = match extent {
        Extent::Short => "spray run /scenario.toml --out /tmp/run",
        Extent::Demo => "spray demo --bytes 4000000 --out /tmp/run",
    };
    format!(
        "echo '{DOCTOR}'
spray doctor
echo '{RUN}'
{{ {run}; echo \"exit $?\"; }} 2>&1 | cat
echo '{ZERO_COPY}'
{{ {ZERO_COPY_TRANSFER}; }} 2>&1 | cat
"
    )
}
