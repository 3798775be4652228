#!/usr/bin/env python3
"""AgentFS beside its peers: metadata loads, git, fork. Interleaved rounds, medians.

  bench/fs/compare.py [--build build/release] [--rounds 3] [--quick] [--only NAME,NAME] [--out FILE]

Targets: tmpfs, ext4 (or whatever the temporary folder lies on), floor (an AgentFS mount in memory),
agentfs in the durability modes fsync, close and op, and, where installed, juicefs (with redis-server
and a local bucket, both on tmpfs) and sshfs (to a local sftp-server, files on tmpfs). Peers run on
loopback with their default caches and acknowledge before any disk has the data; agentfs runs on the
temporary folder's disk. Every round measures every target once, so that noise hits all alike.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

LOADS = {
    "tree": ["--shape", "tree"],
    "flat": ["--files", "5000"],
    "flat 2 ranks": ["--files", "5000", "--ranks", "2"],
    "flat 3901 B": ["--files", "5000", "--bytes", "3901"],
    "flat 3901 B 2 ranks": ["--files", "5000", "--bytes", "3901", "--ranks", "2"],
}
# (load, phase, at least, or share of tmpfs)
GATES = [
    ("tree", "dir create", 15000, None),
    ("tree", "file create", 13000, None),
    ("tree", "file read", 80000, None),
    ("flat 2 ranks", "dir stat", None, 0.75),
    ("flat 2 ranks", "file stat", None, 0.75),
]
EFS_MODEL_SECONDS = {"git clone": 90.0, "git status warm": 3.10, "rm -rf": 50.0}
EFS_FACTORS = {"git clone": 20, "git status warm": 12, "rm -rf": 40}


def sh(*argv, **more):
    return subprocess.run(argv, check=True, capture_output=True, text=True, **more)


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
    sh(agentfs, "format", store)
    return Target(f"agentfs {mode}", os.path.join(scratch, f"mnt-{mode}"),
                  lambda folder: sh(agentfs, "mount", store, folder, "-d", mode),
                  lambda folder: sh(agentfs, "umount", folder))


def juicefs_target(scratch, memory):
    program = shutil.which("juicefs")
    if not program or not shutil.which("redis-server"):
        return None
    data = os.path.join(memory, "juicefs")
    os.makedirs(data)
    port = "16399"
    redis = subprocess.Popen(["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",
                              "--appendonly", "no", "--dir", data],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"redis://127.0.0.1:{port}/1"
    for _ in range(100):
        time.sleep(0.05)
        if subprocess.run([program, "format", "--storage", "file", "--bucket", data + "/", url, "bench"],
                          capture_output=True).returncode == 0:
            break
    cache = os.path.join(memory, "juicefs-cache")
    target = Target("juicefs redis", os.path.join(scratch, "mnt-juicefs"),
                    lambda folder: sh(program, "mount", "-d", "--no-usage-report", "--cache-dir",
                                      cache, url, folder),
                    lambda folder: sh(program, "umount", folder))
    target.close = redis.terminate
    return target


def sshfs_target(scratch, memory):
    server = "/usr/lib/openssh/sftp-server"
    if not shutil.which("sshfs") or not os.path.exists(server):
        return None
    data = os.path.join(memory, "sshfs")
    os.makedirs(data)
    # sshfs runs "ssh" itself: a program of that name that is the server on this machine.
    fake = os.path.join(scratch, "local-ssh")
    with open(fake, "w") as script:
        script.write(f"#!/bin/sh\nexec {server}\n")
    os.chmod(fake, 0o755)
    return Target("sshfs", os.path.join(scratch, "mnt-sshfs"),
                  lambda folder: sh("sshfs", "-o", f"ssh_command={fake}", f"localhost:{data}",
                                    folder),
                  lambda folder: sh("fusermount3", "-u", folder))


def make_repository(scratch, files):
    """A bare repository of small files in many folders, the same for every target."""
    tree = os.path.join(scratch, "seed")
    os.makedirs(tree)
    for i in range(files):
        folder = os.path.join(tree, f"d{i % 97}", f"e{i % 23}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"f{i}.txt"), "w") as out:
            out.write(f"file {i}\n" * (i % 300 + 1))
    identity = ["-c", "user.name=b", "-c", "user.email=b@example.org"]
    sh("git", "init", "-q", tree)
    sh("git", "-C", tree, "add", "-A")
    sh("git", "-C", tree, *identity, "commit", "-qm", "seed")
    bare = os.path.join(scratch, "seed.git")
    sh("git", "clone", "-q", "--bare", tree, bare)
    shutil.rmtree(tree)
    return bare


def measure_git(folder, bare):
    clone = os.path.join(folder, "clone")
    results = {}

    def timed(name, *argv):
        began = time.monotonic()
        sh(*argv)
        results[name] = time.monotonic() - began

    timed("git clone", "git", "clone", "-q", "--no-hardlinks", bare, clone)
    timed("git status first", "git", "-C", clone, "status", "--porcelain")
    timed("git status warm", "git", "-C", clone, "status", "--porcelain")
    timed("cp -r", "cp", "-r", clone, clone + "2")
    timed("rm -rf", "rm", "-rf", clone)
    sh("rm", "-rf", clone + "2")
    return results


def measure_fork(agentfs, scratch, files):
    """Seconds for forks of a workspace of that many files, mounted, and the first status in one."""
    store = os.path.join(scratch, f"store-fork-{files}")
    mount = os.path.join(scratch, "mnt-fork")
    os.makedirs(mount, exist_ok=True)
    sh(agentfs, "format", store)
    sh(agentfs, "mount", store, mount)
    for i in range(files):
        if i % 1000 == 0:
            os.mkdir(f"{mount}/d{i // 1000}")
        with open(f"{mount}/d{i // 1000}/f{i}", "w") as out:
            out.write("x" * (i % 500))
    times = []
    for i in range(9):
        began = time.monotonic()
        sh(agentfs, "fork", store, "main", f"fork{i}")
        times.append(time.monotonic() - began)
    empty = []
    for _ in range(9):
        began = time.monotonic()
        sh(agentfs, "--version")
        empty.append(time.monotonic() - began)
    sh(agentfs, "umount", mount)
    return statistics.median(times), statistics.median(empty)


def measure_round(agentfs, target, loads, bare, results):
    target.start()
    try:
        for load, options in loads.items():
            out = sh(agentfs, "bench", "--json", target.folder, *options).stdout
            for phase, value in json.loads(out).items():
                if isinstance(value, int) and phase not in ("ranks", "bytes", "items"):
                    results.setdefault((load, phase), {}).setdefault(target.name, []).append(value)
        for name, seconds in measure_git(target.folder, bare).items():
            results.setdefault(("git, seconds", name), {}).setdefault(target.name, []).append(seconds)
    finally:
        target.stop()


def print_table(results, names, out):
    print("load\tphase\t" + "\t".join(names), file=out)
    for (load, phase), row in results.items():
        cells = []
        for name in names:
            values = row.get(name)
            middle = statistics.median(values) if values else None
            cells.append("-" if middle is None else
                         f"{middle:.3f}" if isinstance(middle, float) and middle < 1000
                         else f"{middle:.0f}")
        print(f"{load}\t{phase}\t" + "\t".join(cells), file=out)


def print_gates(results, repository_files, out):
    def middle(load, phase, name):
        values = results.get((load, phase), {}).get(name)
        return statistics.median(values) if values else None

    print("\ngate (agentfs fsync)\twanted\tmeasured\tmet", file=out)
    for load, phase, least, share in GATES:
        got = middle(load, phase, "agentfs fsync")
        reference = middle(load, phase, "tmpfs")
        if got is None or (share and reference is None):
            continue
        want = least if least else share * reference
        print(f"{load}: {phase}\t{want:.0f}/s\t{got:.0f}/s\t{'yes' if got >= want else 'NO'}",
              file=out)
    for name, seconds in EFS_MODEL_SECONDS.items():
        got = middle("git, seconds", name, "agentfs fsync")
        if got is None or repository_files != 8000:
            continue  # the model's seconds are for 8,000 files
        factor = seconds / got
        print(f"{name} against the EFS-like model ({seconds:g} s for 8,000 files)\t"
              f"{EFS_FACTORS[name]}x\t{factor:.1f}x\t{'yes' if factor >= EFS_FACTORS[name] else 'NO'}",
              file=out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round, small loads")
    parser.add_argument("--only", default="", help="targets to measure, comma separated")
    parser.add_argument("--loads", default="", help="loads to run, comma separated")
    parser.add_argument("--files", type=int, default=5000, help="files a rank of the flat loads")
    parser.add_argument("--repository-files", type=int, default=8000)
    parser.add_argument("--fork-files", type=int, default=10000)
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    agentfs = os.path.abspath(os.path.join(options.build, "bin", "agentfs"))
    scratch = tempfile.mkdtemp(prefix="agentfs-bench.")
    memory = tempfile.mkdtemp(prefix="agentfs-bench.", dir="/dev/shm")
    targets = [Target("tmpfs", os.path.join(memory, "plain")),
               Target("disk", os.path.join(scratch, "plain")),
               Target("floor", os.path.join(scratch, "mnt-floor"),
                      lambda folder: sh(agentfs, "mount", "--memory", folder),
                      lambda folder: sh(agentfs, "umount", folder))]
    targets += [agentfs_target(agentfs, scratch, mode) for mode in ("fsync", "close", "op")]
    wanted = [name for name in options.only.split(",") if name]
    unknown = set(wanted) - {t.name for t in targets} - {"juicefs redis", "sshfs"}
    if unknown:
        parser.error(f"no target is called {', '.join(sorted(unknown))}; there are "
                     f"{', '.join(t.name for t in targets)}, juicefs redis, sshfs")
    for maker, name in ((juicefs_target, "juicefs redis"), (sshfs_target, "sshfs")):
        if not wanted or name in wanted:
            targets.append(maker(scratch, memory))
    targets = [t for t in targets if t and (not wanted or t.name in wanted)]
    chosen = [name for name in options.loads.split(",") if name] or list(LOADS)
    loads = {name: [str(options.files) if word == "5000" else word for word in LOADS[name]]
             for name in chosen}
    if options.quick:
        loads = {"flat": ["--files", "500"]}
    bare = make_repository(scratch, 300 if options.quick else options.repository_files)
    results = {}
    try:
        for number in range(1 if options.quick else options.rounds):
            for target in targets:
                print(f"round {number + 1}: {target.name}", file=sys.stderr)
                measure_round(agentfs, target, loads, bare, results)
        fork, empty = measure_fork(agentfs, scratch, 500 if options.quick else options.fork_files)
        with open(options.out, "w") if options.out else os.fdopen(os.dup(1), "w") as out:
            print(f"kernel {os.uname().release}, {os.cpu_count()} processors, medians of "
                  f"{1 if options.quick else options.rounds}", file=out)
            print_table(results, [t.name for t in targets], out)
            print_gates(results, options.repository_files, out)
            print(f"\nfork of {500 if options.quick else options.fork_files} files: "
                  f"{fork * 1000:.1f} ms as a command, of which {empty * 1000:.1f} ms start a program",
                  file=out)
    finally:
        for target in targets:
            if hasattr(target, "close"):
                target.close()
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(memory, ignore_errors=True)


if __name__ == "__main__":
    main()
