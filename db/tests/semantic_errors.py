#!/usr/bin/env python3
"""When a statement is wrong: the same call fails, with the same code, text and offset, as in SQLite.

    semantic_errors.py FLEETDB_LIBRARY [SQLITE_LIBRARY]

Every line of semantic_errors.txt is prepared and stepped in both libraries, on databases built from
the same script. Lines `? SQL` are those that older libraries answer in another way: the answer that
SQLite 3.53 gives follows them as `= ANSWER`, and is what FleetDB must say.
"""
import ctypes
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class Library:
    def __init__(self, path):
        lib = ctypes.CDLL(path, mode=os.RTLD_LOCAL | os.RTLD_NOW)
        self.lib = lib
        lib.sqlite3_errmsg.restype = ctypes.c_char_p
        self.has_offset = hasattr(lib, "sqlite3_error_offset")
        self.db = ctypes.c_void_p()
        lib.sqlite3_open(b":memory:", ctypes.byref(self.db))
        lib.sqlite3_extended_result_codes(self.db, 1)

    def failure(self, where, code):
        text = self.lib.sqlite3_errmsg(self.db).decode()
        offset = self.lib.sqlite3_error_offset(self.db)
        return f"{where} {code} {text} @{offset}"

    def answer(self, sql):
        statement = ctypes.c_void_p()
        code = self.lib.sqlite3_prepare_v2(self.db, sql.encode(), -1, ctypes.byref(statement), None)
        if code != 0:
            return self.failure("prepare", code)
        code = 100
        while code == 100:
            code = self.lib.sqlite3_step(statement)
        out = "ok" if code == 101 else self.failure("step", code)
        self.lib.sqlite3_finalize(statement)
        return out


def main():
    # By name first: once ours is loaded, its name would answer for the other.
    theirs = Library(sys.argv[2] if len(sys.argv) > 2 else "libsqlite3.so.0")
    ours = Library(os.path.abspath(sys.argv[1]))
    theirs.lib.sqlite3_libversion_number.restype = ctypes.c_int
    newest = theirs.lib.sqlite3_libversion_number() >= 3053000
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
