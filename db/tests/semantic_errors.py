#!/usr/bin/env python3
"""When a statement is wrong: the same call fails, with the same code, text and offset, as in SQLite.

    semantic_errors.py FLEETDB_LIBRARY [SQLITE_LIBRARY]

Every line of semantic_errors.txt is prepared and stepped in both libraries, on databases built from
the same script. Lines `? SQL` are those that older libraries answer in another way: the answer that
SQLite 3.53 gives follows them as `= ANSWER`, and is what FleetDB must say.
"""
import os
import sys

from library import Library

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    # By name first: once ours is loaded, its name would answer for the other.
    theirs = Library(sys.argv[2] if len(sys.argv) > 2 else "libsqlite3.so.0")
    ours = Library(os.path.abspath(sys.argv[1]))
    newest = theirs.version() >= 3053000
    with open(os.path.join(HERE, "semantic_errors.txt"), encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file]
    different = compared = 0
    for number, line in enumerate(lines, 1):
        if not line or line.startswith(("#", "= ")):
            continue
        pinned = line.startswith("? ")
        sql = line[2:] if pinned else line
        mine, other = ours.answer(sql), theirs.answer(sql)
        if pinned:
            recorded = lines[number][2:]
            if newest and other != recorded:
                print(f"line {number}: the recorded answer is not SQLite's\n  recorded: {recorded}\n  sqlite:   {other}")
                different += 1
            other = recorded
        compared += 1
        if mine != other:
            different += 1
            print(f"line {number}: {sql}\n  fleetdb: {mine}\n  sqlite:  {other}")
    print(f"{compared} statements, {different} differences")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
