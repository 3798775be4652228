#!/usr/bin/env python3
"""The one table of all models: the explorer's (agentfs-models) and the five protocol cores that Spin
checks, written independently of the code. Every mutant of every model must be found.

    fs/models/spin/run.py [--quick] [--only NAME] [--explorer PROGRAM]

--quick leaves the mutants of Spin's models and the explorer's full bounds out (for ./test). Exit 1
when an invariant breaks, a mutant survives, or the whole run reaches fewer than 2,000,000 states.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
STATES_WANTED = 2_000_000

# name, file, invariants, mutants, definitions, definitions of the quick run
MODELS = [
    ("lease and fencing", "lease", 3, 5, ["-DTICKS=4"], ["-DTICKS=3", "-DASKS=1"]),
    ("log append and recovery", "log", 3, 5, [], []),
    ("collection against forks", "gc", 2, 5, [], []),
    ("rename across directories", "rename", 3, 5, ["-DMOVES=2"], ["-DMOVES=1"]),
    ("hand-over and rescue fork", "rescue", 4, 6, ["-DRECORDS=6"], []),
]


def build(folder, model, defines):
    path = os.path.join(HERE, model + ".pml")
    done = subprocess.run(["spin", *defines, "-a", path], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0 or not os.path.exists(os.path.join(folder, "pan.c")):
        sys.exit(f"{model}: spin says\n{done.stdout}{done.stderr}")
    flags = ["-O1", "-w", "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=3000", "-DVECTORSZ=2048"]
    subprocess.run(["cc", *flags, "-o", "pan", "pan.c"], cwd=folder, check=True)


def explore(model, defines):
    """(states, depth, what broke or "", whole)"""
    with tempfile.TemporaryDirectory() as folder:
        build(folder, model, defines)
        out = subprocess.run(["./pan", "-m1000000", "-n", "-E", "-w22"], cwd=folder, capture_output=True,
                             text=True).stdout
    states = re.search(r"(\d+) states, stored", out)
    depth = re.search(r"depth reached (\d+)", out)
    broken = re.search(r"pan:\d+: (.*?) \(at depth", out)
    if states is None or depth is None:
        sys.exit(f"{model}: pan says\n{out}")
    whole = "Search not completed" not in out and "max search depth too small" not in out
    return int(states[1]), int(depth[1]), broken[1] if broken else "", whole


def run_explorer(program, quick):
    """Prints its table as it is; the number of states, and whether all was well."""
    done = subprocess.Popen([program] + (["--quick"] if quick else []), stdout=subprocess.PIPE,
                            text=True)
    states = 0
    for line in done.stdout:
        total = re.match(r"(\d+) models, (\d+) states", line)
        if total:
            states = int(total[2])
        print(line, end="", flush=True)
    return states, done.wait() == 0


def run_model(number, entry, quick):
    name, model, invariants, mutants, full, small = entry
    defines = small if quick else full
    began = time.monotonic()
    states, depth, broken, whole = explore(model, defines)
    killed, survivors = 0, []
    if not quick:
        for mutant in range(1, mutants + 1):
            if explore(model, defines + [f"-DMUTANT={mutant}"])[2]:
                killed += 1
            else:
                survivors.append(str(mutant))
    took = time.monotonic() - began
    shown = "  -  " if quick else f"{killed:3d} / {mutants}"
    print(f"S{number:<2d} {name:<28s} {states:8d}{' ' if whole else '+'} {depth:6d}  {invariants:10d}  "
          f"{shown:>7s}  {took:7.2f}  Spin: {model}.pml", flush=True)
    if broken:
        print(f"    broken: {broken}")
    if survivors:
        print(f"    survivors: {', '.join(survivors)}")
    return states, not broken and not survivors


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--quick", action="store_true")
    options.add_argument("--only")
    options.add_argument("--explorer")
    given = options.parse_args()
    states, good = 0, True
    if given.explorer:
        states, good = run_explorer(given.explorer, given.quick)
    for number, entry in enumerate(MODELS, 1):
        if given.only and given.only != entry[1]:
            continue
        more, well = run_model(number, entry, given.quick)
        states += more
        good = good and well
    print(f"{states} states in all")
    if given.explorer and not given.quick and states < STATES_WANTED:
        print(f"fewer than {STATES_WANTED}")
        good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
