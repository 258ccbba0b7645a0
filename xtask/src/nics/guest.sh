# What runs in the virtual machine: one function `step_NAME` for each column of the table. A step ends with one call of `good`, `bad` or
# `none` (the driver has no such thing), which say what the table says; all that it prints besides is for the console alone.
#
# Variables from the kernel's command line: STEPS, the names of those to take; QUEUES, of each NIC.

# Not the shell's own, which does not tell of programs.
IP=/sbin/ip
HERE=10.0.0.1
THERE=10.0.0.2

good() { echo "@@ good $*"; }
bad() { echo "@@ bad $*"; }
none() { echo "@@ none $*"; }

# Runs a command beside the other NIC, which is in a namespace of its own. Not for the background: killing a function leaves its program.
away() { nsenter -t $there -n "$@"; }

# Gives both NICs their defaults, with an MTU, and waits until they are up.
fresh() {
    $IP link set eth0 down; away $IP link set eth1 down
    $IP link set eth0 mtu ${1:-1500}; away $IP link set eth1 mtu ${1:-1500}
    $IP link set eth0 up; away $IP link set eth1 up
    $IP address replace $HERE/24 dev eth0; away $IP address replace $THERE/24 dev eth1
    linked
    ping -c 1 -W 5 $THERE > /dev/null || echo "no answer to a ping"
}

# Waits until both links are up again after a program was attached, and tells the NICs' addresses to the kernel: no step but the first
# contact rests on asking for them.
settle() {
    linked
    $IP neigh replace $THERE lladdr $(cat /tmp/mac1) nud permanent dev eth0
    away $IP neigh replace $HERE lladdr $(cat /sys/class/net/eth0/address) nud permanent dev eth1
}

# Waits until something is so, for 20 s at most.
await() {
    local tries=0
    until "$@" > /dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || { echo "waited in vain: $*"; return 1; }
        sleep 0.2
    done
}

both_up() { $IP link show eth0 | grep -q LOWER_UP && away $IP link show eth1 | grep -q LOWER_UP; }
# Twice, since attaching a program takes some drivers' link down for a while.
linked() { await both_up; sleep 0.3; await both_up; }
attached() { $1 $IP link show $2 | grep -q xdp; }

# `native` or `generic`: how the program sits on an interface while a command runs.
mode() { $1 $IP link show $2 | grep -q xdpgeneric && echo generic || echo native; }

# Shows files of output, each line behind its file's name.
show() { for file in "$@"; do sed "s/^/  ${file##*/}: /" /tmp/$file; done; }

# The last line of a file of output that is not empty, without what separates cells of tables.
said() { grep . /tmp/$1 | tail -n 1 | tr '|' '/'; }

# Milliseconds since boot.
now() { awk '{ print int($1 * 1000) }' /proc/uptime; }

# Begins to receive there; leaves the process in $receiver.
receive() {
    rm -rf /tmp/in; mkdir /tmp/in
    nsenter -t $there -n timeout 70 spray recv --insecure --interface eth1 --out /tmp/in --timeout 30 "$@" > /tmp/recv 2>&1 &
    receiver=$!
    await ready
}
# Or ended, refused.
ready() { attached away eth1 || ! kill -0 $receiver; }

# Sends a file of so many bytes there; leaves the exit code in $sent.
send() {
    head -c $1 /dev/urandom > /tmp/file
    shift
    timeout 60 spray send /tmp/file --insecure --interface eth0 --to $THERE --timeout ${PATIENCE:-20} "$@" > /tmp/send 2>&1
    sent=$?
}

# Waits for the receiver, which ends by itself if all is well; leaves its exit code in $received.
end_receiver() {
    [ $sent = 0 ] || kill $receiver 2> /dev/null
    wait $receiver
    received=$?
    show send recv
    echo "  send $sent, recv $received"
}

# Says how a transfer ended.
verdict() {
    if [ $sent = 0 ] && [ $received = 0 ]; then good "verified${1:+, $1}"; else bad "failed${1:+, $1}: \`$(said send)\`"; fi
}

# Takes a file from one NIC to the other.
transfer() {
    receive "$@"
    settle
    modes=$(mode away eth1)
    PATIENCE=8
    send 2000000 "$@"
    PATIENCE=
    end_receiver
}

step_doctor() {
    spray doctor > /tmp/doctor 2>&1
    local code=$?
    show doctor
    [ $code = 0 ] && good "$(grep -c '^ok' /tmp/doctor) ok" || bad "$(grep -v '^ok' /tmp/doctor | head -n 1 | tr '|' '/')"
}

step_first() {
    $IP neigh flush dev eth0; away $IP neigh flush dev eth1
    receive
    local begin=$(now)
    send 100000
    local took=$(($(now) - begin))
    end_receiver
    verdict "$took ms"
}

step_copy() {
    transfer --copy
    usual=$modes
    verdict $modes
}

step_zero_copy() {
    transfer --zero-copy
    if [ $received = 2 ] && grep -q 'zero-copy' /tmp/recv; then none "refused"; else verdict; fi
}

# Frames that the kernel took from a driver because a program polled, and whether interrupts are put off.
polled() { awk '/^TcpExt/ { if (n) print $n; for (i = 1; i <= NF; i++) if ($i == "BusyPollRxPackets") n = i }' /proc/net/netstat; }
deferred() { cat /sys/class/net/eth0/napi_defer_hard_irqs; }

step_busy() {
    local before=$(polled)
    transfer --zero-copy --busy-poll
    local frames=$(($(polled) - before))
    if [ $received = 2 ]; then none "refused"
    elif [ $(deferred) != 0 ]; then bad "napi_defer_hard_irqs $(deferred) afterwards"
    else verdict "$frames frames polled"; fi
}

step_perf() {
    nsenter -t $there -n spray serve --insecure --interface eth1 > /tmp/serve 2>&1 &
    local server=$!
    await attached away eth1; settle
    timeout 30 spray perf $THERE --insecure --interface eth0 -t 3 --timeout 15 --json > /tmp/perf 2>&1
    local code=$?
    kill $server; wait $server
    show perf serve
    if [ $code = 0 ]; then
        rate=$(awk -F'[:,]' '/"sum_received"/ { f = 1 } f && /bits_per_second/ { print int($2 / 1e6 + 0.5); exit }' /tmp/perf)
        good "$rate Mb/s"
    else
        bad "\`$(said perf)\`"
    fi
}

# A link goes down for a second in mid-transfer: of the named side, on its interface.
outage() {
    receive
    settle
    { sleep 4.5; echo "  down at $(now)"; $1 $IP link set $2 down; sleep 1; $1 $IP link set $2 up; echo "  up at $(now)"; } &
    local cut=$! begin=$(now)
    # The rate is fixed so that the file takes six seconds on any driver.
    send 3000000 --cc fixed-rate --set transport.fixed-rate.rate_gbps=0.004
    local took=$(($(now) - begin))
    end_receiver
    wait $cut
    verdict "$((took / 1000)) s"
}
step_down_here() { outage "" eth0; }
step_down_there() { outage away eth1; }

step_mtu() {
    fresh 3800
    transfer
    local told=$(grep -hi 'mtu.*too large\|mtu.*native' /tmp/send /tmp/recv | head -n 1)
    local how="$modes, $([ $sent = 0 ] && echo verified || echo failed)"
    if [ $sent = 0 ] && [ "$modes" = native ]; then
        good "$how"
    elif [ -n "$told" ] && [ $sent != 1 ]; then
        good "$how, MTU reported"
    elif [ $sent = 0 ] && [ "$usual" = generic ]; then
        none "$how, as with any MTU"
    else
        bad "$how, MTU not reported: \`$(head -qn 1 /tmp/send | tr '|' '/') ... $(said send)\`"
    fi
    fresh
}

step_second() {
    receive
    settle
    away timeout 20 spray recv --insecure --interface eth1 --out /tmp > /tmp/second 2>&1
    local code=$?
    show second
    linked
    send 100000
    end_receiver
    if [ $sent = 0 ] && [ $code = 2 ] && grep -q 'is in use by' /tmp/second; then good "refused"; else bad "exit $code, the first sender's $sent: \`$(said second)\`"; fi
}

# The first NIC is a port of a switch, and so is a veth: the other NIC sends through both to a host behind the veth, and gets a file from it.
step_switch() {
    unshare -n sleep 1000 &
    local host=$!
    sleep 0.5
    $IP address flush dev eth0
    $IP link add port1 type veth peer name eth0 netns $host
    $IP link set port1 up
    nsenter -t $host -n $IP address add 10.0.0.3/24 dev eth0
    nsenter -t $host -n $IP link set eth0 up
    away $IP neigh flush dev eth1
    local failed=""
    spray switch /switch.toml --port h0=eth0 --port h1=port1 > /tmp/switch 2>&1 || failed="it does not come up"
    await both_up; sleep 0.5
    through "nsenter -t $host -n" eth0 10.0.0.3 away eth1 || failed="$failed towards the veth"
    through away eth1 $THERE "nsenter -t $host -n" eth0 || failed="$failed towards the NIC"
    spray link > /tmp/link 2>&1
    spray down > /tmp/down 2>&1
    show switch link down
    local sprayed=$(awk '/^leaf.->spine/ && $5 > 0.3 { n++ } END { print n + 0 }' /tmp/link)
    local left=$($IP -d link show eth0 | grep -c 'xdp\|promiscuity [1-9]')
    kill $host
    $IP link del port1 2> /dev/null
    fresh
    if [ -n "$failed" ]; then bad "$failed: \`$(said send)\`"
    elif [ $sprayed != 4 ]; then bad "only $sprayed of four links between switches were used"
    elif [ $left != 0 ]; then bad "something stays on the NIC"
    else good "verified both ways"; fi
}

# A switch that is one box, and two others in the other NIC's namespace, which a veth joins: the NICs are the ends of a cable between boxes.
step_boxes() {
    unshare -n sleep 1000 &
    local host=$!
    unshare -n sleep 1000 &
    local other=$!
    sleep 0.5
    $IP address flush dev eth0; away $IP address flush dev eth1
    $IP link add port1 type veth peer name eth0 netns $host
    away $IP link add port2 type veth peer name eth0 netns $other
    away $IP link add cable0 type veth peer name cable1
    $IP link set port1 up
    for port in port2 cable0 cable1; do away $IP link set $port up; done
    nsenter -t $host -n $IP address add 10.0.0.3/24 dev eth0
    nsenter -t $other -n $IP address add 10.0.0.4/24 dev eth0
    for own in $host $other; do nsenter -t $own -n $IP link set eth0 up; done
    local failed=""
    run="spray switch /switch.toml --set topology.spines=1"
    $run --node leaf0 --port h0=port1 --port spine0=eth0 > /tmp/leaf0 2>&1 || failed="leaf0 does not come up"
    away $run --node spine0 --port leaf0=eth1 --port leaf1=cable0 > /tmp/spine0 2>&1 || failed="$failed spine0 does not come up"
    away $run --node leaf1 --port h1=port2 --port spine0=cable1 > /tmp/leaf1 2>&1 || failed="$failed leaf1 does not come up"
    show leaf0 spine0 leaf1
    await heard leaf0 && await heard spine0 && await heard leaf1
    through "nsenter -t $host -n" eth0 10.0.0.3 "nsenter -t $other -n" eth0 || failed="$failed from leaf1 to leaf0"
    through "nsenter -t $other -n" eth0 10.0.0.4 "nsenter -t $host -n" eth0 || failed="$failed from leaf0 to leaf1"
    for box in leaf0 spine0 leaf1; do
        spray switch --name switch-$box > /tmp/$box 2>&1
        spray link --name switch-$box > /tmp/link 2>&1
        spray down switch-$box > /tmp/down 2>&1
        show $box link down
    done
    local left=$({ $IP -d link show eth0; away $IP -d link show eth1; } | grep -c 'xdp\|promiscuity [1-9]')
    kill $host $other
    $IP link del port1 2> /dev/null
    for port in port2 cable0; do away $IP link del $port 2> /dev/null; done
    fresh
    if [ -n "$failed" ]; then bad "$failed: \`$(said send)\`"
    elif [ $left != 0 ]; then bad "something stays on the NICs"
    else good "verified both ways"; fi
}

# Whether a box hears the others.
heard() { spray switch --name switch-$1 | grep -q -- '->' && ! spray switch --name switch-$1 | grep -q 'is down'; }

# Takes a file through the switch: to an interface of an address beside $1, from one beside $4.
through() {
    rm -rf /tmp/in; mkdir /tmp/in
    head -c 3000000 /dev/urandom > /tmp/file
    $1 timeout 60 spray recv --insecure --interface $2 --out /tmp/in > /tmp/recv 2>&1 &
    local receiver=$!
    await attached "$1" $2; await both_up; sleep 0.5
    $4 timeout 60 spray send /tmp/file --insecure --interface $5 --to $3 --timeout 30 > /tmp/send 2>&1
    sent=$?
    [ $sent = 0 ] || kill $receiver 2> /dev/null
    wait $receiver && [ $sent = 0 ]
    local code=$?
    show send recv
    return $code
}

# Bare AF_XDP frames against the same length of ours, on one queue of each NIC.
step_bare() {
    # Linux 6.18 crashes in it.
    case "$(ethtool -i eth0 | head -1) $QUEUES" in *virtio_net\ 4) none "not tried"; return ;; esac
    channels 1
    step_perf > /tmp/ours
    # Its end is not this step's.
    sed 's/^@@/ /' /tmp/ours
    away $IP link set eth1 netns 1
    $IP link set eth0 up; $IP link set eth1 up
    timeout 40 bare eth0 eth1 3 1514 > /tmp/bare 2>&1
    local code=$?
    show bare
    $IP link set eth1 netns $there
    channels $QUEUES
    fresh
    local ours=$(sed -n 's/^@@ good \([0-9]*\) .*/\1/p' /tmp/ours)
    [ -n "$ours" ] || { bad "ours do not arrive on one queue: \`$(grep -m 1 spray: /tmp/serve)\`"; return; }
    [ $code = 0 ] && good "$(awk -v ours=$ours '/frames/ { r = ours * 1e6 / 8 / 1408; printf "%.2f (%d of %d frames a second)", r / $1, r, $1 }' /tmp/bare)" \
        || bad "\`$(said bare)\`"
}

# Sets the number of queues, where the driver has several.
channels() {
    ethtool -L eth0 combined $1
    away ethtool -L eth1 combined $1
}

unshare -n sleep 100000 &
there=$!
sleep 1
cat /sys/class/net/eth1/address > /tmp/mac1
$IP link set eth1 netns $there
channels $QUEUES 2> /dev/null
sysctl -qw net.ipv6.conf.all.disable_ipv6=1
fresh
ethtool -i eth0; ethtool -l eth0; $IP -d link show eth0
for step in $(echo $STEPS | tr , ' '); do
    echo "@@ begin $step at $(now)"
    step_$step 2>&1
done
