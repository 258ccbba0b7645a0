# The tables of a campaign, read by programs that people have for tables. $1: a Python that has them.
. "$HERE/common.sh"
"$SPRAY" sim --topology leaf-spine:4x4x4 --matrix permutation:1000000 --balancer ecmp,reps --seeds 1..3 --csv --out results > sim 2>&1 || cat sim >&2
"$1" "$HERE/tables.py" results
