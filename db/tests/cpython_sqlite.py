#!/usr/bin/env python3
"""Runs CPython's own sqlite3 test-suite with FleetDB preloaded in place of SQLite.

Tests listed in cpython_exceptions.txt are expected to fail, each with a reason; the run fails when any
other test fails, and also when a listed one starts to pass. Needs a Python whose sqlite3 module
links libsqlite3 dynamically and that has its test-suite (Debian: libpython3.11-testsuite); without
one it says so and succeeds.

  db/tests/cpython_sqlite.py [--list] [--library PATH] [NAME ...]
"""
import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# Runs inside the chosen Python: prints one line a test, "ok|fail|skip ID", and the texts of failures.
RUNNER = r"""
import sys, unittest, sqlite3, importlib, pkgutil
import test.test_sqlite3 as suite_package

class Result(unittest.TestResult):
    def report(self, word, test): print("@", word, test.id(), flush=True)
    def addSuccess(self, test): self.report("ok", test)
    def addSkip(self, test, reason): self.report("skip", test)
    def addExpectedFailure(self, test, error): self.report("ok", test)
    def addFailure(self, test, error): self.report("fail", test); print(self._exc_info_to_string(error, test))
    def addError(self, test, error): self.report("fail", test); print(self._exc_info_to_string(error, test))
    def addSubTest(self, test, sub, error):
        if error is not None: self.report("fail", test); print(self._exc_info_to_string(error, test))

print("@ version", sqlite3.sqlite_version)
wanted = sys.argv[1:]
suite = unittest.TestSuite()
for module in pkgutil.iter_modules(suite_package.__path__):
    if module.name == "__main__": continue
    suite.addTests(unittest.defaultTestLoader.loadTestsFromName("test.test_sqlite3." + module.name))
def flatten(s):
    for t in s:
        if isinstance(t, unittest.TestSuite): yield from flatten(t)
        else: yield t
chosen = unittest.TestSuite(t for t in flatten(suite) if not wanted or any(w in t.id() for w in wanted))
chosen.run(Result())
print("@ end", chosen.countTestCases())
"""


def find_python(library):
    probe = ("import _sqlite3, test.test_sqlite3, subprocess, sys; "
             "sys.exit(0 if 'libsqlite3' in subprocess.run(['ldd', _sqlite3.__file__], "
             "capture_output=True, text=True).stdout else 1)")
    for python in ("/usr/bin/python3", "python3"):
        if subprocess.run([python, "-c", probe], capture_output=True).returncode == 0:
            return python
    return None


def read_exceptions():
    expected = {}
    with open(os.path.join(HERE, "cpython_exceptions.txt"), encoding="utf-8") as file:
        for line in file:
            test, _, reason = line.partition("#")
            if test.strip():
                assert reason.strip(), f"no reason given for {test.strip()}"
                expected[test.strip()] = reason.strip()
    return expected


def run(python, library, names):
    env = dict(os.environ, LD_PRELOAD=library)
    done = subprocess.run([python, "-c", RUNNER, *names], env=env, capture_output=True, text=True, timeout=600)
    results, version, ended, current, texts = {}, "?", False, None, {}
    for line in done.stdout.splitlines():
        if not line.startswith("@ "):
            if current:
                texts.setdefault(current, []).append(line)
            continue
        word, _, rest = line[2:].partition(" ")
        if word == "version":
            version = rest
        elif word == "end":
            ended = True
        else:
            current = rest
            if results.get(rest) != "fail":
                results[rest] = word
    return results, version, ended, texts, done


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    build = os.environ.get("FLEET_BUILD", "build/dev")
    parser.add_argument("--library", default=os.path.join(build, "lib/fleetdb/libsqlite3.so.0"))
    parser.add_argument("--list", action="store_true", help="print every test's result")
    parser.add_argument("names", nargs="*", help="only tests whose id contains one of these")
    options = parser.parse_args()
    library = os.path.abspath(options.library)
    python = find_python(library)
    if python is None:
        print("skipped: no Python here has both a dynamically linked sqlite3 module and its test-suite")
        return 0
    if not os.path.exists(library):
        print(f"{library} is missing: build the target fleetdb_shared first")
        return 1
    results, version, ended, texts, done = run(python, library, options.names)
    expected = read_exceptions()
    failed = sorted(t for t, r in results.items() if r == "fail" and t not in expected)
    healed = sorted(t for t, r in results.items() if r == "ok" and t in expected)
    for test in failed:
        print(f"FAILED {test}")
        print("\n".join("    " + line for line in texts.get(test, [])[-6:]))
    for test in healed:
        print(f"PASSES NOW, take it off the list: {test}")
    if options.list:
        for test, result in sorted(results.items()):
            print(result, test)
    if not ended:
        print(f"the run stopped early (exit {done.returncode}) after {list(results)[-1:]}")
        print(done.stderr[-2000:])
    count = {word: list(results.values()).count(word) for word in ("ok", "fail", "skip")}
    print(f"sqlite_version {version}: {count['ok']} passed, {count['fail']} failed "
          f"({len(expected)} expected), {count['skip']} skipped")
    return 1 if failed or healed or not ended else 0


if __name__ == "__main__":
    sys.exit(main())
