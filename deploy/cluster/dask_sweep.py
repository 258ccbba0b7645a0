#!/usr/bin/env python3
"""Makes the parts of a sweep on a Dask cluster, then collects the results; docs/cluster.md says how.

usage: dask_sweep.py [--scheduler ADDRESS] [--parts N] -- spray sweep SCENARIO.toml --engine sim --out DIR ...
"""

import argparse
import subprocess
import sys


def run(command):
    """Runs a command on a worker; returns its exit code and the last line of what it said."""
    done = subprocess.run(command, capture_output=True, text=True)
    said = (done.stderr if done.returncode else done.stdout).strip().splitlines()
    return done.returncode, said[-1] if said else f"exit code {done.returncode}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].strip())
    parser.add_argument("--scheduler", help="address of the scheduler; by default a cluster on this machine")
    parser.add_argument("--parts", type=int, help="by default one for each run")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    command = arguments.command
    plan = subprocess.run([*command, "--plan"], capture_output=True, text=True)
    if plan.returncode:
        sys.exit(plan.stderr or plan.returncode)
    runs = [line.split()[1] for line in plan.stdout.splitlines()]
    parts = min(arguments.parts or len(runs), len(runs))
    # A part whose runs are all done needs no worker.
    todo = [part for part in range(parts) if "open" in runs[part::parts]]
    print(f"{runs.count('done')} of {len(runs)} runs are done; {len(todo)} of {parts} parts to go", flush=True)
    failed = 0
    if todo:
        from dask.distributed import Client, as_completed

        client = Client(arguments.scheduler) if arguments.scheduler else Client(threads_per_worker=1)
        with client:
            tasks = [[*command, "--threads", "1", "--part", f"{part + 1}/{parts}"] for part in todo]
            for number, done in enumerate(as_completed(client.map(run, tasks, pure=False)), 1):
                code, said = done.result()
                failed += code != 0
                print(f"[{number}/{len(todo)}] {said}", flush=True)
    if failed:
        sys.exit(f"{failed} parts failed; the same command tries them again")
    # All is done: this collects, and makes the tables and the report.
    sys.exit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
