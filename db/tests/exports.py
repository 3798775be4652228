#!/usr/bin/env python3
"""Every sqlite3_ name that the system's libsqlite3 exports must be exported by FleetDB's library.

  db/tests/exports.py FLEETDB_LIBRARY
"""
import ctypes.util
import glob
import subprocess
import sys

# Calls of modules that FleetDB does not have.
MISSING = {"sqlite3_rtree_geometry_callback", "sqlite3_rtree_query_callback"}


def exports(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in out.splitlines() if line.split()[-1].startswith("sqlite3_")}


def main():
    system = glob.glob("/usr/lib/*/libsqlite3.so.0") + glob.glob("/lib/*/libsqlite3.so.0")
    if not system:
        print("skipped: no system libsqlite3", ctypes.util.find_library("sqlite3"))
        return 0
    theirs, ours = exports(system[0]), exports(sys.argv[1])
    lacking = theirs - ours - MISSING
    stale = MISSING & ours
    for name in sorted(lacking):
        print("not exported:", name)
    for name in sorted(stale):
        print("exported now, take it off the list:", name)
    foreign = subprocess.run(["nm", "-D", "--defined-only", sys.argv[1]], capture_output=True, text=True, check=True)
    other = [line for line in foreign.stdout.splitlines() if not line.split()[-1].startswith(("sqlite3_", "sqlite3session_"))]
    for line in other[:5]:
        print("should be hidden:", line)
    print(f"{len(theirs)} names in SQLite, {len(ours)} here")
    return 1 if lacking or stale or other else 0


if __name__ == "__main__":
    sys.exit(main())
