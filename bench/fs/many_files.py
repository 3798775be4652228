#!/usr/bin/env python3
"""A workspace of a million small files: what it takes to make, mount, list, fork, check and collect.

  bench/fs/many_files.py [--files 1000000] [--build build/release] [--folder FOLDER]

Prints seconds and peak memory of each step beside the limit that is promised for a million files on
two processors and a disk; exits 1 when one is missed. Takes about ten minutes and 3 GB of disk.
"""
import argparse
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import time

FILES_IN_FOLDER = 1000
MIB = 1 << 20
# step: (seconds, MiB of the process that does it)
LIMITS = {
    "create": (300, 2048),
    "unmount": (60, 2048),
    "mount": (2, 2048),
    "list, cold": (120, 2048),
    "list, warm": (60, 2048),
    "fork": (0.5, 2048),
    "mount of the fork": (2, 2048),
    "fsck": (120, 2048),
    "remove half": (300, 2048),
    "gc": (240, 2048),
    "fsck after gc": (120, 2048),
}


class Steps:
    def __init__(self):
        self.missed = []
        print(f"{'step':<20}{'seconds':>10}{'limit':>8}{'MiB':>8}{'limit':>8}", flush=True)

    def note(self, name, seconds, mib):
        seconds_max, mib_max = LIMITS[name]
        good = seconds <= seconds_max and mib <= mib_max
        print(f"{name:<20}{seconds:>10.2f}{seconds_max:>8}{mib:>8.0f}{mib_max:>8}  "
              f"{'met' if good else 'MISSED'}", flush=True)
        if not good:
            self.missed.append(name)

    def command(self, name, *argv):
        """A command that does the work itself: its own time and peak memory."""
        began = time.monotonic()
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"many_files.py: {' '.join(argv)} failed")
        self.note(name, time.monotonic() - began, usage.ru_maxrss * 1024 / MIB)
        return said

    def on_mount(self, name, folder, work):
        """Work that the mount's daemon does: its peak memory so far."""
        began = time.monotonic()
        work()
        self.note(name, time.monotonic() - began, daemon_mib(folder))


def daemon_mib(folder):
    """Peak memory of the processes that serve the mount on `folder`."""
    total = 0
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                words = file.read().split(b"\0")
            if b"mount" in words and folder.encode() in words:
                with open(os.path.dirname(path) + "/status") as file:
                    peak = next(line for line in file if line.startswith("VmHWM"))
                total += int(peak.split()[1]) * 1024
        except (OSError, StopIteration):
            continue  # it ended meanwhile
    return total / MIB


def make(folder, files):
    for i in range(files):
        if i % FILES_IN_FOLDER == 0:
            os.mkdir(f"{folder}/d{i // FILES_IN_FOLDER}")
        descriptor = os.open(f"{folder}/d{i // FILES_IN_FOLDER}/f{i}", os.O_CREAT | os.O_WRONLY)
        os.write(descriptor, b"%d\n" % i * 10)
        os.close(descriptor)


def count(folder):
    """Every name with its attributes."""
    seen = 0
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            seen += count(entry.path)
        else:
            entry.stat(follow_symlinks=False)
            seen += 1
    return seen


def expect(folder, files):
    found = count(folder)
    if found != files:
        raise SystemExit(f"many_files.py: {found} files are listed, not {files}")


def remove_half(folder):
    for name in os.listdir(folder):
        if int(name[1:]) % 2:
            shutil.rmtree(os.path.join(folder, name))


def measure(agentfs, place, files):
    steps = Steps()
    store, one, two = (os.path.join(place, name) for name in ("store", "one", "two"))
    os.mkdir(one)
    os.mkdir(two)

    def run(*argv):
        subprocess.run([agentfs, *argv], check=True, stdout=subprocess.DEVNULL)

    try:
        run("format", store)
        run("mount", store, one)
        steps.on_mount("create", one, lambda: make(one, files))
        steps.command("unmount", agentfs, "umount", one)
        steps.on_mount("mount", one, lambda: (run("mount", store, one), os.stat(one + "/d0/f0")))
        steps.on_mount("list, cold", one, lambda: expect(one, files))
        steps.on_mount("list, warm", one, lambda: expect(one, files))
        steps.on_mount("fork", one, lambda: run("fork", store, "main", "fork"))
        steps.on_mount("mount of the fork", two, lambda: run("mount", store, two, "-w", "fork"))
        steps.on_mount("remove half", two, lambda: remove_half(two))
        run("umount", two)
        run("umount", one)
        steps.command("fsck", agentfs, "fsck", store)
        run("remove", store, "main")
        print(steps.command("gc", agentfs, "gc", store).strip())
        print(steps.command("fsck after gc", agentfs, "fsck", store).strip())
    finally:
        for folder in (one, two):
            subprocess.run(["umount", "-l", folder], stderr=subprocess.DEVNULL, check=False)
    return steps.missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=1000000)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--folder", help="where the store is made; else the temporary folder")
    options = parser.parse_args()
    agentfs = os.path.abspath(os.path.join(options.build, "bin", "agentfs"))
    with tempfile.TemporaryDirectory(prefix="agentfs-many.", dir=options.folder) as place:
        missed = measure(agentfs, place, options.files)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
