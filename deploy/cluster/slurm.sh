#!/bin/sh
# One part of a sweep for each task of a Slurm job array; docs/cluster.md says how to submit it.
#SBATCH --job-name=spray
#SBATCH --requeue
# Slurm sends SIGTERM this many seconds before the time limit: runs that are done are kept in any case.
#SBATCH --signal=B:TERM@30

[ "$#" -ge 1 ] || { echo "usage: sbatch --array=1-N $0 SCENARIO.toml --engine sim --out DIR ..." >&2; exit 2; }

exec "${SPRAY:-spray}" sweep "$@" --threads "${SLURM_CPUS_PER_TASK:-1}" --part "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_MAX"
