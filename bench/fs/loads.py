"""What is measured in a folder, whatever lies below it. Each function returns {phase: value}."""
import json
import os
import shutil
import statistics
import subprocess
import time

IDENTITY = ("-c", "user.name=b", "-c", "user.email=b@example.org")


def run(*argv, **more):
    done = subprocess.run(argv, capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout


def timed(*argv):
    began = time.monotonic()
    run(*argv)
    return time.monotonic() - began


def measure_metadata(agentfs, folder, options):
    """Operations a second of `agentfs bench`, an mdtest-like load."""
    out = json.loads(run(agentfs, "bench", "--json", folder, *options))
    return {phase: value for phase, value in out.items()
            if isinstance(value, int) and phase not in ("ranks", "bytes", "items")}


def make_repository(scratch, files):
    """A bare repository of small files in many folders, the same for every target."""
    tree = os.path.join(scratch, "seed")
    os.makedirs(tree)
    for i in range(files):
        folder = os.path.join(tree, f"d{i % 97}", f"e{i % 23}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"f{i}.txt"), "w") as out:
            out.write(f"file {i}\n" * (i % 300 + 1))
    run("git", "init", "-q", tree)
    run("git", "-C", tree, "add", "-A")
    run("git", "-C", tree, *IDENTITY, "commit", "-qm", "seed")
    bare = os.path.join(scratch, "seed.git")
    run("git", "clone", "-q", "--bare", tree, bare)
    shutil.rmtree(tree)
    return bare


def measure_git(folder, bare, second_client=None):
    """Seconds. `second_client(path)` measures a cold start on a clone at that path of the mount."""
    clone = os.path.join(folder, "clone")
    results = {"git clone": timed("git", "clone", "-q", "--no-hardlinks", bare, clone)}
    for phase in ("git status first", "git status warm"):
        results[phase] = timed("git", "-C", clone, "status", "--porcelain")
    if second_client:
        results["second client: mount and git status"] = second_client("clone")
    results["cp -r"] = timed("cp", "-r", clone, clone + "2")
    results["rm -rf"] = timed("rm", "-rf", clone)
    run("rm", "-rf", clone + "2")
    return results


def make_files(folder, files):
    """Small files, a thousand to a folder."""
    for i in range(files):
        if i % 1000 == 0:
            os.makedirs(f"{folder}/d{i // 1000}")
        with open(f"{folder}/d{i // 1000}/f{i}", "w") as out:
            out.write("x" * (i % 500))


def measure_fork(agentfs, scratch, files):
    """Median seconds of `agentfs fork` of a mounted workspace, and of starting a program."""
    store = os.path.join(scratch, f"store-fork-{files}")
    mount = os.path.join(scratch, f"mnt-fork-{files}")
    os.makedirs(mount)
    run(agentfs, "format", store)
    run(agentfs, "mount", store, mount)
    try:
        make_files(mount, files)
        forks = [timed(agentfs, "fork", store, "main", f"fork{i}") for i in range(9)]
        starts = [timed(agentfs, "--version") for _ in range(9)]
    finally:
        run(agentfs, "umount", mount)
    return statistics.median(forks), statistics.median(starts)
