# What commands publish, read by Prometheus' own programs: each metric by promtool, and the whole by a scrape every second.
. "$HERE/common.sh"
echo "version: $(promtool --version 2>&1 | head -n 1 | cut -d , -f 1-2)"
echo "command: promtool check metrics; prometheus --config.file=deploy/metrics/prometheus.yml"
get() { ip netns exec h1 python3 -c "import sys, urllib.request as u; print(u.urlopen('http://127.0.0.1:' + sys.argv[1], timeout=5).read().decode())" "$1"; }
scraped() { get '9090/api/v1/query?query=spray_frames_total%7Bdirection%3D%22received%22,kind%3D%22data%22%7D' | grep -o '"[0-9]*"\]'; }
pair
"$SPRAY" keygen key > keygen
mkdir got
head -c 50000000 /dev/urandom > data
ip netns exec h1 "$SPRAY" recv --key key --interface eth0 --out got --keep --metrics 9464 > recv 2>&1 &
until_it get 9464/metrics
ip netns exec h0 "$SPRAY" send --key key --interface eth0 --to 10.77.0.2 data > send 2>&1 || cat send recv >&2
cmp data got/data
get 9464/metrics > metrics
promtool check metrics < metrics
echo "result: spray recv, after a file of 50 MB: $(grep -c '^# TYPE' metrics) metrics without a complaint"
ip netns exec h1 prometheus --config.file="$ROOT/deploy/metrics/prometheus.yml" --storage.tsdb.path=store > prometheus 2>&1 &
until_it scraped
rtt() { get '9090/api/v1/query?query=1e6*histogram_quantile(0.99,spray_rtt_seconds_bucket)' | grep -o '"[0-9.]*"\]'; }
until_it rtt
echo "result: by its histogram, 99 % of the receiver's round-trip times are below $(rtt | tr -d '"]' | cut -d . -f 1) us"
echo "result: prometheus has scraped $(scraped | tr -d '"]') data frames received"
