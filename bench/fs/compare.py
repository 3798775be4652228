#!/usr/bin/env python3
"""AgentFS beside its peers: metadata loads, git, forks, cold starts. Interleaved rounds, medians.

  bench/fs/compare.py [--only NAME,NAME] [--loads LOAD,LOAD] [--rounds 3] [--quick] ...
  bench/fs/compare.py --network [--delays 0,0.5,2] [...]      as root
  bench/fs/compare.py --network --report FILE.json ...        tables of runs made with --save

On this machine: tmpfs, disk (ext4, or whatever the temporary folder lies on), floor (an AgentFS mount
in memory), and AgentFS in the durability modes fsync, close and op.

With --network: AgentFS as a private and as a shared mount of `agentfs serve`, GlusterFS, MooseFS,
JuiceFS with Redis, and sshfs. Servers and clients are in two network namespaces between which every
packet takes the stated milliseconds, each way (0: one namespace, loopback). See peers.py for how each
is set up. A peer that is not installed is named, and skipped.

Every round measures every target once, so that noise hits all alike. Caches are as warm as the load
itself makes them; "second client" starts cold.
"""
import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time

import loads
import network
import peers
import report
from loads import run

METADATA = {
    "tree": ["--shape", "tree"],
    "flat": [],
    "flat 2 ranks": ["--ranks", "2"],
    "flat 3901 B": ["--bytes", "3901"],
    "flat 3901 B 2 ranks": ["--bytes", "3901", "--ranks", "2"],
}
LOCAL_LOADS = [*METADATA, "git", "fork"]
NETWORK_LOADS = ["flat", "flat 2 ranks", "flat 3901 B", "git", "copy"]


class Target:
    """A folder to measure in. `start` makes it appear, `stop` takes it away."""

    def __init__(self, name, folder, start=None, stop=None):
        self.name, self.folder, self._start, self._stop = name, folder, start, stop

    def start(self):
        os.makedirs(self.folder, exist_ok=True)
        if self._start:
            self._start(self.folder)

    def stop(self):
        if self._stop:
            self._stop(self.folder)


def agentfs_target(agentfs, scratch, mode):
    store = os.path.join(scratch, f"store-{mode}")
    run(agentfs, "format", store)
    return Target(f"agentfs {mode}", os.path.join(scratch, f"mnt-{mode}"),
                  lambda folder: run(agentfs, "mount", store, folder, "-d", mode),
                  lambda folder: run(agentfs, "umount", folder))


def local_targets(agentfs, scratch, memory):
    return [Target("tmpfs", os.path.join(memory, "plain")),
            Target("disk", os.path.join(scratch, "plain")),
            Target("floor", os.path.join(scratch, "mnt-floor"),
                   lambda folder: run(agentfs, "mount", "--memory", folder),
                   lambda folder: run(agentfs, "umount", folder)),
            *(agentfs_target(agentfs, scratch, mode) for mode in ("fsync", "close", "op"))]


def bench_options(load, files):
    return METADATA[load] + ([] if load == "tree" else ["--files", str(files)])


def compare_local(options, agentfs, scratch, memory, out):
    targets = chosen(local_targets(agentfs, scratch, memory), options.only)
    bare = loads.make_repository(scratch, options.repository_files)
    results = report.Results()
    for number in range(options.rounds):
        for target in targets:
            say(f"round {number + 1}: {target.name}")
            target.start()
            try:
                for load in options.loads:
                    if load in METADATA:
                        results.add(load, target.name, loads.measure_metadata(
                            agentfs, target.folder, bench_options(load, options.files)))
                if "git" in options.loads:
                    results.add("git", target.name, loads.measure_git(target.folder, bare))
            finally:
                target.stop()
    forks = {}
    if "fork" in options.loads:
        forks = {n: loads.measure_fork(agentfs, scratch, n) for n in options.fork_files}
    report.print_local(results, [t.name for t in targets], options.repository_files, forks, out)


def measure_peer(peer, scratch, options, agentfs, bare, results):
    """One round of one peer: its servers start, and are gone afterwards."""
    folders = [os.path.join(scratch, f"mnt-{peer.name.replace(' ', '-')}-{n}") for n in (0, 1)]
    for folder in folders:
        os.makedirs(folder, exist_ok=True)

    def second_client(path):
        run("sync", "-f", folders[0])
        began = time.monotonic()
        peer.mount(folders[1], 1)
        try:
            run("git", "--no-optional-locks", "-C", os.path.join(folders[1], path), "status",
                "--porcelain")
            return time.monotonic() - began
        finally:
            peer.unmount(folders[1])

    try:
        peer.start()
        peer.mount(folders[0], 0)
        try:
            for load in options.loads:
                if load in METADATA:
                    results.add(load, peer.name, loads.measure_metadata(
                        agentfs, folders[0], bench_options(load, options.files)))
            if "git" in options.loads:
                results.add("git", peer.name, loads.measure_git(folders[0], bare, second_client))
            if "copy" in options.loads and peer.copies_by_reference:
                files = options.fork_files[0]
                loads.make_files(os.path.join(folders[0], "whole"), files)
                began = time.monotonic()
                peer.copy(os.path.join(folders[0], "whole"), os.path.join(folders[0], "copy"))
                results.add("copy", peer.name, {f"{files} files": time.monotonic() - began})
        finally:
            peer.unmount(folders[0])
    finally:
        peer.stop()


def compare_network(options, build, agentfs, scratch, memory, out):
    network.check_possible(build)
    kinds = chosen(peers.PEERS, options.only)
    for kind in kinds:
        if kind.missing():
            print(f"skipped: {kind.name}, whose {', '.join(kind.missing())} is not installed "
                  f"({kind.packages})", file=out)
    kinds = [kind for kind in kinds if not kind.missing()]
    bare = loads.make_repository(scratch, options.repository_files)
    for delay in options.delays:
        results = report.Results()
        with network.Network(build, round(float(delay) * 1000)) as net:
            for number in range(options.rounds):
                for kind in kinds:
                    say(f"{delay} ms, round {number + 1}: {kind.name}")
                    measured = report.Results()
                    try:
                        measure_peer(kind(net, agentfs, scratch, memory), scratch, options, agentfs,
                                     bare, measured)
                    except (RuntimeError, OSError) as error:
                        print(f"failed: {kind.name} at {delay} ms: {error}", file=out, flush=True)
                    results.merge(measured.values)
                    if options.save:
                        save(options, delay, measured)
        print_delay(options, delay, results, out)


def print_delay(options, delay, results, out):
    sizes = "" if options.report else (f"{options.files} files a rank, a repository of "
                                       f"{options.repository_files} files; ")
    print(f"\n{delay} ms each way; {sizes}operations a second, git and copies in seconds", file=out)
    report.print_network(results, delay, out)


def save(options, delay, results):
    """Adds this run's values to what earlier runs left in the file."""
    everything = {}
    if os.path.exists(options.save):
        with open(options.save) as file:
            everything = json.load(file)
    merged = report.Results(everything.get(delay))
    merged.merge(results.values)
    everything[delay] = merged.values
    with open(options.save, "w") as file:
        json.dump(everything, file, indent=1)


def chosen(things, names):
    unknown = set(names) - {thing.name for thing in things}
    if unknown:
        raise SystemExit(f"compare.py: no target is called {', '.join(sorted(unknown))}; there are "
                         f"{', '.join(thing.name for thing in things)}")
    return [thing for thing in things if not names or thing.name in names]


def say(text):
    print(text, file=sys.stderr, flush=True)


def words(text):
    return [word for word in text.split(",") if word]


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--network", action="store_true", help="network file systems, with delays")
    parser.add_argument("--delays", type=words, default=["0", "0.5", "2"], help="ms each way")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round, small loads")
    parser.add_argument("--only", type=words, default=[], help="targets to measure, comma separated")
    parser.add_argument("--loads", type=words, default=[], help="loads to run, comma separated")
    parser.add_argument("--files", type=int, help="files a rank of the flat loads")
    parser.add_argument("--repository-files", type=int)
    parser.add_argument("--fork-files", type=lambda text: [int(n) for n in words(text)],
                        default=[10000, 100000])
    parser.add_argument("--save", help="add the values to this file (with --network)")
    parser.add_argument("--report", help="measure nothing; the table of such a file")
    parser.add_argument("--out", default="", help="where the tables go; else standard output")
    options = parser.parse_args()
    known = NETWORK_LOADS if options.network else LOCAL_LOADS
    if set(options.loads) - set(known):
        parser.error(f"the loads are {', '.join(known)}")
    options.loads = options.loads or known
    if options.quick:
        options.rounds, options.fork_files = 1, [500]
        options.loads = [load for load in options.loads if load in ("flat", "git", "fork")]
    small = options.quick or options.network
    options.files = options.files or (100 if options.quick else 500 if small else 5000)
    options.repository_files = options.repository_files or (100 if options.quick else
                                                            500 if small else report.EFS_MODEL_FILES)
    return options


def main():
    options = parse_options()
    # So that what was started and mounted is taken away again.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("compare.py: told to end"))
    build = os.path.abspath(options.build)
    agentfs = os.path.join(build, "bin", "agentfs")
    with open(options.out, "w") if options.out else os.fdopen(os.dup(1), "w") as out:
        print(f"kernel {os.uname().release}, {os.cpu_count()} processors, medians of "
              f"{options.rounds}", file=out, flush=True)
        if options.report:
            with open(options.report) as file:
                for delay, values in json.load(file).items():
                    print_delay(options, delay, report.Results(values), out)
            return
        scratch = tempfile.mkdtemp(prefix="agentfs-bench.")
        memory = tempfile.mkdtemp(prefix="agentfs-bench.", dir="/dev/shm")
        try:
            if options.network:
                compare_network(options, build, agentfs, scratch, memory, out)
            else:
                compare_local(options, agentfs, scratch, memory, out)
        except network.NetworkError as error:
            raise SystemExit(f"compare.py: {error}") from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
            shutil.rmtree(memory, ignore_errors=True)


if __name__ == "__main__":
    main()
