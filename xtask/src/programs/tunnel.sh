# What two hosts' programs have of four ways: over TCP of the kernel, and over `spray tunnel`.
. "$HERE/common.sh"
ways
mkdir -p key
ip netns exec h0 "$SPRAY" keygen key/both > /dev/null
for n in 0 1; do
    ip netns exec h$n "$SPRAY" tunnel --interface eth0 --peer 10.77.$((1 - n)).2 --address 10.79.0.$((n + 1))/24 --key key/both \
        --name spray0 2> tunnel$n.txt &
done
until_it ip netns exec h0 ping -c 1 -W 1 10.79.0.2
echo "version: $(iperf3 --version | head -n 1), $(redis-server --version | cut -d ' ' -f 1-3)"
echo "command: iperf3 -c HOST -t 5 [-P 8] [-u -b 300M]; redis-benchmark -h HOST -t get -c 50; the same -c 1"
mbps() { sed -n 's/.* \([0-9.]*\) Mbits.sec.*receiver/\1 Mb\/s/p' said | tail -n 1; }
ip netns exec h1 iperf3 -s -D > /dev/null
ip netns exec h1 redis-server --bind 0.0.0.0 --protected-mode no --save '' --daemonize yes > /dev/null
until_it ip netns exec h0 redis-cli -h 10.77.1.2 ping
for by in 10.77.1.2:TCP 10.79.0.2:tunnel; do
    host=${by%:*} name=${by#*:}
    for streams in 1 8; do
        ip netns exec h0 iperf3 -c $host -t 5 -P $streams -f m > said
        echo "result: $name, iperf3 -P $streams: $(mbps)"
    done
    ip netns exec h0 iperf3 -c $host -t 5 -u -b 300M -f m > said
    echo "result: $name, iperf3, UDP of 300 Mb/s: $(mbps), lost $(sed -n 's/.*(\([0-9.e+-]*%\)).*receiver/\1/p' said)"
    for clients in 50 1; do
        ip netns exec h0 redis-benchmark -h $host -t get -c $clients -n $((clients * 400 + 2000)) --csv > said
        echo "result: $name, redis -c $clients: $(tail -n 1 said | awk -F '"' '{ print $4 " requests/s, p50 " $10 " ms, p99 " $14 " ms" }')"
    done
done
