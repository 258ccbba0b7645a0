# What the scripts for MPI share: Open MPI's two transports, and a way of starting ranks on hosts that takes no ssh.
by_spray="--mca pml cm --mca mtl ofi --mca opal_common_ofi_provider_include spray -x FI_PROVIDER_PATH -x FI_SPRAY_INSECURE"
by_tcp="--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include eth0"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 FI_PROVIDER_PATH=$PROVIDERS FI_SPRAY_INSECURE=1

# Writes `agent`, which mpirun takes for ssh. $1: what runs a command in `$host`.
agent() {
    cat > agent << AGENT
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$1
shift
exec $1 unshare --uts sh -c "hostname \$host; \$*"
AGENT
    chmod +x agent
}
