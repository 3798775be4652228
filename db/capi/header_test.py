#!/usr/bin/env python3
"""Compares our C header with the stock one: every number that both define, every call that stock declares.

Usage: header_test.py OUR_HEADER STOCK_HEADER
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

OURS, STOCK = sys.argv[1:3]
# Not part of what we claim: session, FTS, R-tree, test hooks, other systems, and what depends on build options.
LEFT_OUT = r"SQLITE_(TESTCTRL|WIN32|CONFIG_WIN32|FCNTL_WIN32|SCANSTAT|CHANGESET|CHANGESETAPPLY|CHANGESETSTART|SESSION)_"
OTHER = {"SQLITE_VERSION_NUMBER", "SQLITE_LIMIT_MAX", "SQLITE_DBCONFIG_MAX", "SQLITE_DBSTATUS_MAX", "SQLITE_THREADSAFE",
         "SQLITE_STDCALL"}
CALLS_LEFT_OUT = r"sqlite3_(win32_|snapshot_|stmt_scanstatus|rtree_|activate_|hard_heap_limit$)"


def text_of(header):
    """The header with what it includes from beside it, without comments."""
    path = pathlib.Path(header)
    text = re.sub(r'#include "(.*?)"', lambda match: text_of(path.parent / match[1]), path.read_text())
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def numbers(header):
    pattern = r"^#\s*define\s+(SQLITE_[A-Z0-9_]+)\s+([-(0-9].*|SQLITE_\w+)$"
    return {name for name, _ in re.findall(pattern, text_of(header), re.M)}


def calls(header):
    return set(re.findall(r"\b(sqlite3_[a-z0-9_]+)\(", text_of(header)))


def values(header, names):
    """What the compiler makes of each name."""
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/print"
        lines = [f'  printf("{name} %lld\\n", (long long)({name}));' for name in sorted(names)]
        source = f'#include "{header}"\n#include <stdio.h>\nint main(void) {{\n' + "\n".join(lines) + "\n}\n"
        subprocess.run(["cc", "-xc", "-", "-o", program], input=source, text=True, check=True)
        out = subprocess.run([program], capture_output=True, text=True, check=True).stdout
        return dict(line.rsplit(" ", 1) for line in out.splitlines())


class Header(unittest.TestCase):
    maxDiff = None

    def test_every_number_of_the_stock_header_is_there_and_equal(self):
        wanted = {name for name in numbers(STOCK) if not re.match(LEFT_OUT, name)} - OTHER
        self.assertGreater(len(wanted), 300)
        self.assertEqual(sorted(wanted - numbers(OURS)), [])
        theirs, ours = values(STOCK, wanted), values(OURS, wanted)
        self.assertEqual(ours, theirs)

    def test_every_call_of_the_stock_header_is_declared(self):
        wanted = {name for name in calls(STOCK) if not re.match(CALLS_LEFT_OUT, name)}
        self.assertGreater(len(wanted), 250)
        self.assertEqual(sorted(wanted - calls(OURS)), [])

    def test_a_c_and_a_cplusplus_compiler_accept_it(self):
        for compiler in (["cc", "-xc", "-std=c99"], ["c++", "-xc++"]):
            subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-"], text=True, check=True,
                           input=f'#include "{OURS}"\nint main(void) {{ return sqlite3_libversion_number() != 0; }}\n')


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
