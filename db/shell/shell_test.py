#!/usr/bin/env python3
"""Runs the same scripts through `fleetdb` and the stock `sqlite3` shell and compares what they print.

Usage: shell_test.py FLEETDB. What is compared: standard output, whether errors were printed, exit codes.
The stock shell is Debian's (3.40); where its output changed since, the case says so by not being here.
"""
import os
import subprocess
import sys
import tempfile
import unittest

FLEETDB = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "fleetdb"

SETUP = """
CREATE TABLE people(id INTEGER PRIMARY KEY, name TEXT NOT NULL, weight REAL, photo BLOB);
CREATE INDEX by_name ON people(name);
CREATE VIEW heavy AS SELECT * FROM people WHERE weight > 50;
CREATE TABLE "odd name"("a b", [select]);
INSERT INTO people VALUES(1,'Ada',51.5,x'0102'),(2,'Bo''b',NULL,NULL),(3,'C, "D"',1e20,x''),(4,'',-0.5,NULL);
INSERT INTO "odd name" VALUES('x y',1),(NULL,'two
lines');
"""


def run(program, script, arguments=(), folder=None):
    done = subprocess.run([program, "-batch", *arguments], input=script, capture_output=True, text=True, timeout=30,
                          cwd=folder)
    return done.stdout, done.stderr, done.returncode


class Shell(unittest.TestCase):
    maxDiff = None

    def same(self, script, arguments=(), prefix=SETUP):
        ours, our_errors, our_code = run(FLEETDB, prefix + script, arguments)
        theirs, their_errors, their_code = run("sqlite3", prefix + script, arguments)
        self.assertEqual(ours, theirs, our_errors)
        self.assertEqual(bool(our_errors), bool(their_errors), our_errors + their_errors)
        self.assertEqual(our_code, their_code)

    def test_every_mode_prints_alike(self):
        for mode in ["list", "csv", "tabs", "column", "table", "box", "markdown", "line", "json", "html", "quote",
                     "insert t", "ascii"]:
            with self.subTest(mode=mode):
                self.same(f".mode {mode}\nSELECT id, name, weight FROM people ORDER BY id;\n")

    def test_headers_and_null_text(self):
        self.same(".headers on\n.nullvalue (nil)\nSELECT id, weight AS w FROM people;\n.mode csv\nSELECT * FROM heavy;\n")

    def test_query_plans_are_trees(self):
        self.same("EXPLAIN QUERY PLAN SELECT * FROM people ORDER BY weight;\n.mode box\n"
                  "EXPLAIN QUERY PLAN SELECT name FROM people WHERE name = 'x';\n.eqp on\n"
                  "SELECT id FROM people WHERE id = 2;\nPRAGMA user_version;\n")

    def test_programs_are_listings(self):
        ours, _, _ = run(FLEETDB, "EXPLAIN SELECT 1;\n")
        theirs, _, _ = run("sqlite3", "EXPLAIN SELECT 1;\n")
        self.assertEqual(ours.splitlines()[:2], theirs.splitlines()[:2])
        self.assertRegex(ours.splitlines()[2], r"^0     Init           0 ")

    def test_parameters(self):
        self.same(".parameter init\n.parameter set :a 5\n.parameter set @long 'hello'\n.parameter set $c \"'x y'\"\n"
                  ".parameter list\nSELECT :a, @long, $c, ?4 IS NULL;\n.parameter set :a 1+1\n.parameter set @long abc\n"
                  "SELECT :a, typeof(@long);\n.parameter unset :a\n.parameter list\n.parameter clear\n"
                  ".parameter list\nSELECT :a IS NULL;\n", prefix="")

    def test_save_and_restore(self):
        with tempfile.TemporaryDirectory() as folder:
            for program in (FLEETDB, "sqlite3"):
                out, errors, code = run(program, SETUP + ".save kept.db\nDELETE FROM people;\n.restore kept.db\n"
                                        "SELECT count(*) FROM people;\n", folder=folder)
                self.assertEqual((out, errors, code), ("4\n", "", 0))

    def test_restoring_from_no_database_changes_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "broken.db"), "wb") as file:
                file.write(b"no database at all, " * 400)
            for name in ["missing.db", "broken.db"]:
                out, errors, _ = run(FLEETDB, SETUP + f".restore {name}\nDELETE FROM people WHERE id = 1;\n"
                                     "SELECT count(*) FROM people;\n", folder=folder)
                self.assertEqual(out, "3\n")
                self.assertNotEqual(errors, "")

    def test_widths_and_wrapping(self):
        self.same(".mode column\n.width 3 -8\nSELECT name, weight FROM people;\n")

    def test_separators(self):
        self.same('.separator "--" "|\\n"\nSELECT id, name FROM people;\n')

    def test_text_of_several_lines(self):
        for mode in ["list", "column", "box", "line", "json"]:
            with self.subTest(mode=mode):
                self.same(f".mode {mode}\nSELECT * FROM \"odd name\";\n")

    def test_tables_and_indexes(self):
        self.same(".tables\n.tables peo%\n.indexes\n.indexes people\n")

    def test_schema(self):
        self.same(".schema people\n")

    def test_dump_restores_the_database(self):
        dump, _, _ = run(FLEETDB, SETUP + ".dump\n")
        again, errors, _ = run("sqlite3", dump + ".dump\n")
        self.assertEqual(errors, "")
        self.assertEqual(run(FLEETDB, dump + ".dump\n")[0], dump)
        self.assertEqual(sorted(again.splitlines()), sorted(dump.splitlines()))

    def test_dump_prints_like_the_stock_shell(self):
        self.same(".dump\n", prefix="CREATE TABLE t(a,b);\nINSERT INTO t VALUES(1,'x''y'),(2.5,x'00ff'),(NULL,'');\n")

    def test_errors_are_reported_and_the_rest_runs(self):
        self.same("SELECT * FROM nowhere;\nSELECT 1;\n")
        self.same("INSERT INTO people(id, name) VALUES(1, 'again');\nSELECT count(*) FROM people;\n")

    def test_bail_stops_at_the_first_error(self):
        self.same("SELECT 1;\nSELECT * FROM nowhere;\nSELECT 2;\n", ["-bail"])

    def test_statements_over_lines_and_several_on_one(self):
        self.same("SELECT\n 1,\n 2;\nSELECT 3; SELECT 4;\nSELECT ';' -- not ;\n;\n")

    def test_triggers_hold_semicolons(self):
        self.same("CREATE TRIGGER tr AFTER INSERT ON people BEGIN\n SELECT 1;\n SELECT 2;\nEND;\nSELECT 'after';\n")

    def test_import_creates_and_fills_tables(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "in.csv")
            with open(path, "w") as file:
                file.write('id,name,note\r\n1,"A, B","say ""hi"""\n2,C,"two\nlines"\n')
            self.same(f".import --csv {path} fresh\nSELECT * FROM fresh;\n.import --csv --skip 1 {path} fresh\n"
                      "SELECT count(*), sum(id) FROM fresh;\n")

    def test_output_goes_to_files(self):
        with tempfile.TemporaryDirectory() as folder:
            for program in (FLEETDB, "sqlite3"):
                run(program, ".once one.txt\nSELECT 1;\n.output two.txt\nSELECT 2;\n.output\nSELECT 3;\n", (), folder)
                with open(os.path.join(folder, "one.txt")) as one, open(os.path.join(folder, "two.txt")) as two:
                    self.assertEqual((one.read(), two.read()), ("1\n", "2\n"))

    def test_read_runs_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "script.sql")
            with open(path, "w") as file:
                file.write("SELECT 'from file';\n.print done\n")
            self.same(f".read {path}\n")

    def test_arguments(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.db")
            done = subprocess.run([FLEETDB, path, "CREATE TABLE t(a)", "INSERT INTO t VALUES(5)"])
            self.assertEqual(done.returncode, 0)
            self.same("", ["-header", "-csv", path, "SELECT * FROM t"], prefix="")
            self.same("", ["-json", path, "SELECT * FROM t"], prefix="")

    def test_a_wrong_option_is_one_sentence(self):
        done = subprocess.run([FLEETDB, "-nonsense"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("-nonsense", done.stderr)

    def test_unknown_commands_are_errors(self):
        self.same(".nonsense\nSELECT 1;\n")


if __name__ == "__main__":
    unittest.main()
