# libfabric's own tests of reliable datagrams, each on two hosts of a veth pair, by the provider and by libfabric's `tcp`.
# $1: the folder `fabtests` of libfabric's sources; $2: a folder to build them in, kept for the next run.
. "$HERE/common.sh"
export FI_PROVIDER_PATH=$PROVIDERS FI_SPRAY_INSECURE=1
if ! [ -e "$2/unit/fi_mr_test" ]; then
    mkdir -p "$2"
    cp -r "$1/." "$2"
    (cd "$2" && ./autogen.sh && ./configure && make -j2) > build.txt 2>&1 || { tail build.txt >&2; exit 1; }
fi
pair
PATH=$2/functional:$2/unit:$2/benchmarks:$PATH
echo "version: fabtests $(sed -n 's/^PACKAGE_VERSION = //p' "$2/Makefile"), libfabric $(fi_info --version | sed -n 's/^libfabric: //p')"
echo "command: FI_PROVIDER=spray fi_rdm -p spray -s 10.77.0.1; FI_PROVIDER=spray fi_rdm -p spray -s 10.77.0.2 10.77.0.1"

# Runs a test by provider $1, and tells how it ended, in `$how`. As in libfabric's own script, it is no failure to lack something.
try() {
    by=$1 status=0
    shift
    case $1 in
        fi_getinfo_test | fi_av_test | fi_dom_test | fi_eq_test | fi_cq_test | fi_mr_test | fi_cntr_test)
            FI_PROVIDER=$by timeout 30 ip netns exec h0 "$@" -p $by > said-$by 2>&1 || status=$? ;;
        *)
            FI_PROVIDER=$by timeout 60 ip netns exec h0 "$@" -p $by -s 10.77.0.1 > server-$by 2>&1 &
            server=$!
            sleep 0.5
            FI_PROVIDER=$by timeout 30 ip netns exec h1 "$@" -p $by -s 10.77.0.2 10.77.0.1 > said-$by 2>&1 || status=$?
            [ $status = 0 ] || kill $server 2> /dev/null || true
            wait $server || [ $status != 0 ] || status=$?
            ;;
    esac
    case $status in
        0) how=passes ;;
        # ENODATA, ENOSYS, and EBUSY of a second endpoint on an interface.
        61 | 38 | 16) how=declined ;;
        *) how=fails ;;
    esac
}

failed=
while read -r test; do
    try tcp $test
    tcp=$how
    try spray $test
    echo "$test" >> "$how, tcp $tcp.txt"
    [ $how != fails ] || { failed="$failed; $test"; tail -n 5 said-spray >&2; }
done << TESTS
fi_rdm
fi_rdm -U
fi_av_xfer -e rdm
fi_cq_data -e rdm
fi_poll -t queue
fi_poll -t counter
fi_rdm_rma_event
fi_rdm_rma_trigger
fi_rdm_tagged_peek
fi_shared_ctx
fi_scalable_ep
fi_rdm_shared_av
fi_multi_mr -e rdm -V
fi_multi_ep -e rdm -v
fi_multi_recv -e rdm -I 5
fi_recv_cancel -e rdm -V
fi_unexpected_msg -e rdm -I 10
fi_unmap_mem -I 100
fi_resmgmt_test
fi_rdm_multi_domain
fi_rdm_multi_client -C 10 -I 5
fi_rdm_multi_client -C 10 -I 5 -U
fi_msg_inject -e rdm -A inject -v
fi_msg_inject -e rdm -A inj_complete -v
fi_bw -e rdm -v -T 1
fi_bw -e rdm -v -T 1 -U
fi_rdm_atomic -I 5 -o all
fi_getinfo_test -s 10.77.0.1 10.77.0.2
fi_av_test -g 10.77.0.2 -n 1 -s 10.77.0.1 -e rdm
fi_dom_test -n 2
fi_eq_test
fi_cq_test
fi_mr_test
fi_cntr_test
fi_rdm_pingpong -I 5 -v
fi_rdm_cntr_pingpong -I 5 -v
fi_rdm_tagged_pingpong -I 5 -v
fi_rdm_tagged_pingpong -I 5 -v -U
fi_rdm_tagged_bw -I 5 -v
fi_rdm_tagged_bw -I 5 -v -U
fi_rma_bw -e rdm -o write -I 5 -v
fi_rma_bw -e rdm -o read -I 5 -v
fi_rma_bw -e rdm -o writedata -I 5 -v
TESTS
for how in *", tcp "*.txt; do
    case $how in
        passes*passes*) echo "result: ${how%.txt}: $(wc -l < "$how") tests" ;;
        *) echo "result: ${how%.txt}: $(sed 's/.*/`&`/' "$how" | paste -sd , | sed 's/,/, /g')" ;;
    esac
done

# What the last line of a benchmark tells: its columns are bytes, rounds, total, time, MB/s, us a transfer, and so on.
figure() { awk -v by="$1" '/^[0-9]/ { last = $0 } END { split(last, a, " "); print by " " a[6] " us, " a[5] " MB/s" }' said-$1; }
while read -r test; do
    line=
    for by in spray tcp; do
        try $by $test
        [ $how = passes ] || { failed="$failed; $test by $by"; tail -n 5 said-$by >&2; }
        line="$line${line:+; }$(figure $by)"
    done
    echo "result: \`$test\`: $line"
done << BENCHMARKS
fi_rdm_pingpong -I 2000 -S 64
fi_rdm_pingpong -I 200 -S 1048576
fi_rdm_tagged_pingpong -I 2000 -S 64
fi_rdm_tagged_bw -I 2000 -S 64
fi_rdm_tagged_bw -I 500 -S 1048576
fi_rma_bw -e rdm -o write -I 500 -S 1048576
fi_rma_bw -e rdm -o read -I 500 -S 1048576
BENCHMARKS
[ -z "$failed" ] || { echo "failed$failed" >&2; exit 1; }
