# Two ranks, each on a host of its own: a way of starting them that takes no ssh, then the benchmark by each transport.
# $1: mpirun; $2: a Python that has mpi4py; $3: how this mpirun is told of its own way to start processes, and what to send by.
. "$HERE/common.sh"
. "$HERE/mpi_common.sh"
mpirun=$1 python=$2
case $3 in
    rsh) started="--host h0,h1 --mca plm_rsh_agent $WORK/agent --mca oob_tcp_if_include eth0" ;;
    prte) started="--host h0,h1 --prtemca plm_ssh_agent $WORK/agent --prtemca prte_if_include eth0" ;;
    hydra)
        started="-hosts h0,h1 -launcher ssh -launcher-exec $WORK/agent -iface eth0"
        by_spray="-genv MPIR_CVAR_CH4_NETMOD ofi -genv MPIR_CVAR_NOLOCAL 1 -genv FI_PROVIDER spray -genv FI_SPRAY_INSECURE 1"
        by_tcp="-genv MPIR_CVAR_CH4_NETMOD ofi -genv MPIR_CVAR_NOLOCAL 1 -genv FI_PROVIDER tcp"
        ;;
esac
agent 'ip netns exec $host'
echo "version: $("$mpirun" --version | sed -n 's/^ *Version: */MPICH /p; 1p' | grep '[0-9]' | head -n 1)"
echo "command: mpirun $by_spray python mpi.py"
both() {
    for by in spray tcp; do
        eval "how=\$by_$by"
        ip netns exec h0 unshare --uts sh -c "hostname h0; exec timeout 60 $mpirun -n 2 $started $how \
            $python $HERE/mpi.py" > said 2> errors || { cat errors said >&2; exit 1; }
        echo "result: $1, $by: $(paste -sd ';' said | sed 's/;/, /g')"
    done
}
pair
both "veth pair"
for name in h0 h1; do ip netns delete $name; done
ways
both "four paths of 200 Mb/s"
