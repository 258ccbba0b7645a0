# What runs in the virtual machine: one function `step_NAME` for each column of the table, as in `nics/guest.sh`. RUN, from the kernel's
# command line, is how much is run.

good() { echo "@@ good $*"; }
bad() { echo "@@ bad $*"; }
none() { echo "@@ none $*"; }

step_programs() {
    spray doctor > /tmp/doctor 2>&1
    cat /tmp/doctor
    local line=$(grep 'XDP programs' /tmp/doctor)
    case "$line" in
        ok*) good "${line##*: }" ;;
        *) bad "refused: \`$(sed -n '/XDP programs/,/^[^ f]/p' /tmp/doctor | sed '$d' | tr -s ' \n' ' ')\`" ;;
    esac
}

step_demo() {
    case $RUN in
        short) spray run /scenario.toml --out /tmp/run ;;
        *) spray demo --set workload.bytes=4000000 --out /tmp/run ;;
    esac > /tmp/demo 2>&1
    local code=$?
    cat /tmp/demo
    # The first table: each row ends with how the payload fared. Sentences have no columns.
    local runs=$(sed '1,/^---/d' /tmp/demo | awk '!/  / { exit } { n++ } END { print n + 0 }')
    local verified=$(sed '1,/^---/d' /tmp/demo | awk '!/  / { exit } $NF == "verified" { n++ } END { print n + 0 }')
    local said="verified in $verified of $runs runs"
    if [ $runs = 0 ]; then bad "nothing ran"; elif [ $code = 0 ] && [ $verified = $runs ]; then good "$said"; else bad "$said"; fi
}

# A file from one NIC to the other, which is in a namespace of its own.
step_zero_copy() {
    unshare -n sleep 1000 &
    local there=$!
    sleep 1
    ip link set eth1 netns $there
    ip address add 10.0.0.1/24 dev eth0
    ip link set eth0 up
    nsenter -t $there -n ip address add 10.0.0.2/24 dev eth1
    nsenter -t $there -n ip link set eth1 up
    nsenter -t $there -n spray recv --insecure --interface eth1 --out /tmp --zero-copy &
    local receiver=$!
    sleep 3
    head -c 2000000 /dev/urandom > /file
    spray send /file --insecure --interface eth0 --to 10.0.0.2 --zero-copy --timeout 20
    case $? in
        0) good "verified" ;;
        2) none "refused" ;;
        *) bad "failed" ;;
    esac
    kill $there $receiver 2> /dev/null
}

for step in $(echo $STEPS | tr , ' '); do
    echo "@@ begin $step "
    step_$step 2>&1
done
