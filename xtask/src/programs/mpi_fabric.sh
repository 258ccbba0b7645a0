# Four ranks of Debian's Open MPI on four hosts of `spray up`: what mpi.py does, then all-reduces while an uplink is silently dead.
. "$HERE/common.sh"
. "$HERE/mpi_common.sh"
fabric 4
agent '"$SPRAY" shell $host --'
# $1: the transport; the rest: what to run. Neighbours in rank are under different leaves.
ranks() {
    eval "how=\$by_$1"
    shift
    in_host h0 unshare --uts sh -c "hostname h0; exec timeout 60 mpirun.openmpi -n 4 --host h0,h2,h1,h3 --mca plm_rsh_agent $WORK/agent \
        --mca oob_tcp_if_include eth0 --mca mpi_yield_when_idle 1 $how /usr/bin/python3 $*"
}
echo "version: $(mpirun.openmpi --version | head -n 1)"
echo "command: mpirun -n 4 --host h0,h2,h1,h3 $by_spray python mpi.py"
for by in spray tcp; do
    begin=$(date +%s)
    ranks $by "$HERE/mpi.py" > said 2> errors || { cat errors said >&2; exit 1; }
    echo "result: $by: $(paste -sd ';' said | sed 's/;/, /g'); $(($(date +%s) - begin)) s in all"
    ranks $by "$HERE/mpi_fabric.py" 18 > steps 2> errors &
    job=$!
    tries=300 until_it grep -q step steps
    begin=$(date +%s)
    sleep 6
    "$SPRAY" link leaf0-spine0 silent > /dev/null
    sleep 6
    "$SPRAY" link leaf0-spine0 up > /dev/null
    wait $job || { cat errors >&2; echo "result: $by: the job ended with an error"; }
    echo "result: $by, all-reduces of 1 MiB a second: $(awk -v begin=$begin '
        /step/ { phase = int(($2 - begin) / 6); count[phase]++ }
        END { printf "healthy %.1f, one uplink silently dead %.1f, healthy %.1f", count[0] / 6, count[1] / 6, count[2] / 6 }' steps)"
done
"$SPRAY" down > down.txt 2>&1
