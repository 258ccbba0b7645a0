# What the scripts of `cargo xtask programs` share. They run in a network, mount and process namespace of their own, so that nothing of
# theirs is left. `$SPRAY` is the program, `$PROVIDERS` the folder of the libfabric provider, `$HERE` that of the scripts, `$WORK` an empty one.
# A script says `version: ..`, `command: ..` and `result: ..` on standard output, and ends with an error if something is wrong.
set -eu
mount -t tmpfs none /run/netns 2> /dev/null || { mkdir -p /run/netns && mount -t tmpfs none /run/netns; }
ip link set lo up
cd "$WORK"

# Two hosts, `h0` and `h1`, on a veth pair: 10.77.0.1 and 10.77.0.2.
pair() {
    for n in 0 1; do
        ip netns add h$n
        ip -n h$n link set lo up
    done
    ip link add eth0 netns h0 type veth peer name eth0 netns h1
    for n in 0 1; do
        ip -n h$n address add 10.77.0.$((n + 1))/24 dev eth0
        ip -n h$n link set eth0 mtu 3498 up
    done
}

# Two hosts with four ways between them, each of 200 Mb/s: h0 - r0 = r1 - h1, plain Linux routers that hash ports.
ways() {
    for name in h0 r0 r1 h1; do
        ip netns add $name
        ip -n $name link set lo up
        ip netns exec $name sysctl -qw net.ipv4.ip_forward=1 net.ipv4.fib_multipath_hash_policy=1
    done
    for n in 0 1; do
        ip link add eth0 netns h$n type veth peer name host netns r$n
        ip -n h$n address add 10.77.$n.2/24 dev eth0
        ip -n r$n address add 10.77.$n.1/24 dev host
        ip -n h$n link set eth0 up
        ip -n r$n link set host up
        ip -n h$n route add default via 10.77.$n.1
    done
    there= back=
    for way in 1 2 3 4; do
        ip link add way$way netns r0 type veth peer name way$way netns r1
        for n in 0 1; do
            ip -n r$n address add 10.78.$way.$((n + 1))/24 dev way$way
            ip -n r$n link set way$way up
            ip netns exec r$n tc qdisc add dev way$way root tbf rate 200mbit burst 16kb limit 250kb
        done
        there="$there nexthop via 10.78.$way.2 dev way$way" back="$back nexthop via 10.78.$way.1 dev way$way"
    done
    ip -n r0 route add 10.77.1.0/24 $there
    ip -n r1 route add 10.77.0.0/24 $back
}

# Waits until a command succeeds: ten seconds, or $tries tenths of a second.
until_it() {
    for _ in $(seq ${tries:-100}); do
        "$@" > /dev/null 2>&1 && return
        sleep 0.1
    done
    "$@"
}

# $1 hosts of `spray up`, h0 and on, under two leaves, with links of 200 Mb/s.
fabric() {
    cat > fabric.toml << FABRIC
name = "fabric"

[topology]
kind = "leaf-spine"
leaves = 2
spines = $(($1 / 2))
hosts_per_leaf = $(($1 / 2))
host_gbps = 0.2
latency_us = 200

[queue]
limit = "100 packets"
mark_min = "20 %"
mark_max = "80 %"
trimming = false

[workload]
kind = "cross-leaf-permutation"
bytes = "1 MiB"
FABRIC
    "$SPRAY" up fabric.toml > up.txt 2>&1
}

# Runs a command in a host of that fabric.
in_host() {
    host=$1
    shift
    "$SPRAY" shell "$host" -- "$@"
}
