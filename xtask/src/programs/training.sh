# A training job of PyTorch on hosts of `spray up`, over the kernel's TCP and over `spray tunnel`, while an uplink gets slow and fails.
# $1: how many hosts; $2: where the picture goes.
. "$HERE/common.sh"
hosts=$1 python=/usr/bin/python3
fabric "$hosts"
"$SPRAY" keygen key > /dev/null
numbers=$(seq 0 $((hosts - 1)))
for n in $numbers; do
    peers=
    for other in $numbers; do
        [ $other = $n ] || peers="$peers --peer 10.0.0.$((other + 1))=10.9.0.$((other + 1))"
    done
    in_host h$n "$SPRAY" tunnel --interface eth0 --address 10.9.0.$((n + 1))/24 --key key --name spray0 $peers 2> tunnel$n.txt &
done
for n in $numbers; do
    until_it in_host h0 ping -c 1 -W 1 10.9.0.$((n + 1))
done
echo "command: MASTER_ADDR=.. MASTER_PORT=29500 WORLD_SIZE=$hosts RANK=.. GLOO_SOCKET_IFNAME=spray0 python3 training.py 50"
echo "version: PyTorch $($python -c 'import torch; print(torch.__version__)')"
# $1: tcp or tunnel; $2: the interface; $3: the first rank's address.
job() {
    begin=$(date +%s.%N)
    for n in $numbers; do
        # Neighbours in the ring are under different leaves.
        host=h$((n / 2 + n % 2 * hosts / 2))
        # What torchrun sets: Debian's own does not start under Debian's Python.
        MASTER_ADDR=$3 MASTER_PORT=29500 WORLD_SIZE=$hosts RANK=$n GLOO_SOCKET_IFNAME=$2 OMP_NUM_THREADS=1 \
            in_host $host timeout 100 $python "$HERE/training.py" 50 > $1-$n.txt 2> $1-$n-errors.txt &
        eval job$n=$!
    done
    tries=600 until_it grep -q step $1-0.txt
    echo "$1 $(date +%s.%N)" >> began.txt
    for change in rate=25% up silent up; do
        sleep 10
        "$SPRAY" link leaf0-spine0 $change > /dev/null
    done
    for n in $numbers; do
        eval "wait \$job$n" || echo "result: $1: rank $n ended with an error"
    done
}
job tcp eth0 10.0.0.1
job tunnel spray0 10.9.0.1
"$SPRAY" down > down.txt 2>&1
$python "$HERE/training_plot.py" $hosts ${2-}
