#!/usr/bin/env python3
"""The stock sqlite3 shell on FleetDB: the same scripts, the same output.

    stock_shell.py FLEETDB_LIBRARY

Runs the system's `sqlite3` twice for every script: on its own library and with FleetDB preloaded.
The shell refuses a library with another source id than that of its own header, so a preloaded
four-line library answers that one question. Exit status 77: no shell or no C compiler here.

A script that stands in stock_shell_exceptions.txt must differ; when it no longer does, that is an
error too, so that the list stays true.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);\n"
ROWS = "INSERT INTO t VALUES(1,'one',1.5),(2,'two, three',NULL),(3,'it''s',-2.25),(4,'',1e10);\n"

SCRIPTS = {
    "list": TABLE + ROWS + "SELECT * FROM t;",
    "csv": TABLE + ROWS + ".mode csv\n.headers on\nSELECT * FROM t;",
    "column": TABLE + ROWS + ".mode column\n.headers on\nSELECT * FROM t;",
    "box": TABLE + ROWS + ".mode box\nSELECT a, b FROM t;",
    "table": TABLE + ROWS + ".mode table\nSELECT a, b FROM t;",
    "markdown": TABLE + ROWS + ".mode markdown\nSELECT a, b FROM t;",
    "json": TABLE + ROWS + ".mode json\nSELECT * FROM t;",
    "insert": TABLE + ROWS + ".mode insert t2\nSELECT * FROM t;",
    "quote": TABLE + ROWS + ".mode quote\nSELECT * FROM t;",
    "line": TABLE + ROWS + ".mode line\nSELECT * FROM t;",
    "html": TABLE + ROWS + ".mode html\nSELECT a, b FROM t;",
    "tabs": TABLE + ROWS + ".mode tabs\n.nullvalue (none)\nSELECT * FROM t;",
    "dump": TABLE + ROWS + "CREATE INDEX i ON t(b); CREATE VIEW v AS SELECT a FROM t;\n"
            "CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT 1; END;\n.dump",
    "schema": TABLE + "CREATE INDEX i ON t(b); CREATE VIEW v AS SELECT a FROM t;\n.schema\n.tables\n.indexes",
    "fullschema": TABLE + ROWS + "CREATE INDEX i ON t(b); ANALYZE;\n.fullschema",
    "errors": "SELECT nosuch;\nSELECT * FROM nosuch;\nSELEC 1;\nCREATE TABLE x(a,a);\nSELECT 'after';",
    "constraint": TABLE + ROWS + "INSERT INTO t VALUES(1,2,3);\nSELECT count(*) FROM t;",
    "changes": TABLE + ".changes on\n" + ROWS + "DELETE FROM t WHERE a > 2;\nUPDATE t SET c = 0;",
    "parameters": ".parameter init\n.parameter set :x 42\nSELECT :x + 1;\n.parameter list",
    "eqp": TABLE + ".eqp on\nSELECT * FROM t WHERE a = 5;\nSELECT * FROM t ORDER BY b;",
    "query plan": TABLE + "EXPLAIN QUERY PLAN SELECT * FROM t WHERE a BETWEEN 1 AND 5;",
    "databases": "ATTACH ':memory:' AS two;\n.databases",
    "import": ".mode csv\n.import csv.txt imported\nSELECT * FROM imported;\n.schema imported",
    "output": TABLE + ROWS + ".output out.txt\nSELECT * FROM t;\n.output stdout\n.read out.sql",
    "read": ".read script.sql\nSELECT * FROM made;",
    "save and open": TABLE + ROWS + ".save copy.db\n.open copy.db\nSELECT count(*), sum(a) FROM t;",
    "backup": TABLE + ROWS + ".backup b.db\n.restore b.db\nSELECT count(*) FROM t;\nPRAGMA integrity_check;",
    "clone": TABLE + ROWS + ".clone c.db\n.open c.db\nSELECT * FROM t;",
    "serialize": ".open --deserialize image.db\nSELECT count(*) FROM sqlite_schema;",
    "limits": ".limit variable_number",
    "dbconfig": ".dbconfig defensive\n.dbconfig enable_trigger",
    "dbinfo": TABLE + ".dbinfo",
    "sha3": TABLE + ROWS + ".sha3sum",
    "lint": TABLE + "CREATE TABLE child(p REFERENCES t(a));\n.lint fkey-indexes",
    "width and separators": TABLE + ROWS + ".mode column\n.width 4 -8\nSELECT a, b FROM t;\n.mode list\n.separator ' | '\nSELECT * FROM t;",
    "transactions": TABLE + "BEGIN;\n" + ROWS + "SAVEPOINT s;\nDELETE FROM t;\nROLLBACK TO s;\nCOMMIT;\nSELECT count(*) FROM t;",
    "recursive": "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<5) SELECT i, i*i FROM n;",
    "window": TABLE + ROWS + "SELECT a, sum(a) OVER (ORDER BY a ROWS 1 PRECEDING), lag(b,1,'-') OVER (ORDER BY a) FROM t;",
    "blobs": "SELECT hex(x'0102'), quote(x'ff'), typeof(zeroblob(3)), length(zeroblob(3));",
    "edges": "SELECT 9223372036854775807 + 1, -9223372036854775808, 1/0, 5 % -3, '3abc' + 4, 'a' || NULL;",
    "dates": "SELECT date('2024-02-29','+1 year'), strftime('%Y-%j','2024-12-31'), julianday('2000-01-01');",
    "upsert": TABLE + ROWS + "INSERT INTO t VALUES(1,'x',0) ON CONFLICT(a) DO UPDATE SET b=excluded.b RETURNING *;",
    "archive of settings": ".show",
    "help of a command": ".help .mode",
    "recover": TABLE + ROWS + ".recover",
    "scanstats": TABLE + ".scanstats on\nSELECT 1;",
    "timeout": ".timeout 100\nSELECT 1;",
    "vfsname": ".vfsname\n.vfslist",
    "selftest": ".selftest --init\n.selftest",
    "expert": TABLE + ".expert\nSELECT * FROM t WHERE b = 'x';",
    "trace": TABLE + ".trace stdout\nSELECT 1;\nINSERT INTO t(b) VALUES('x');",
    "stats": ".headers off\n.testctrl always\nSELECT 2;",
    "excel quoting": ".mode csv\nSELECT 'a\"b', 'c,d', 'e f';",
    "binary safe": "SELECT length('a' || char(0) || 'b'), hex('a' || char(0) || 'b');",
}


def source_id(shell):
    with open(shell, "rb") as file:
        found = re.search(rb"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d [0-9a-f]{40,}\w*", file.read())
    return found.group(0).decode() if found else None


def build_answer(folder, text):
    source = os.path.join(folder, "id.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(f'const char *sqlite3_sourceid(void) {{ return "{text}"; }}\n')
    library = os.path.join(folder, "id.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def prepare(folder):
    with open(os.path.join(folder, "csv.txt"), "w", encoding="utf-8") as file:
        file.write('a,b,c\n1,"x, y",\n2,"say ""hi""",3\n')
    with open(os.path.join(folder, "script.sql"), "w", encoding="utf-8") as file:
        file.write("CREATE TABLE made(a); INSERT INTO made VALUES(1),(2);\n")
    with open(os.path.join(folder, "out.sql"), "w", encoding="utf-8") as file:
        file.write("SELECT 'read';\n")


def run(shell, script, preload):
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder)
        subprocess.run([shell, "image.db", "CREATE TABLE image(a)"], cwd=folder, check=True)
        environment = dict(os.environ, HOME=folder, TZ="UTC", LC_ALL="C")
        if preload:
            environment["LD_PRELOAD"] = preload
        done = subprocess.run([shell, "-batch"], input=script, capture_output=True, text=True,
                              cwd=folder, env=environment, timeout=60)
        return (done.stdout + done.stderr).replace(folder, "(folder)") + f"exit {done.returncode}\n"


def main():
    library = os.path.abspath(sys.argv[1])
    wanted = sys.argv[2:]
    shell = shutil.which("sqlite3")
    if shell is None or shutil.which("cc") is None or source_id(shell) is None:
        print("no sqlite3 shell or no C compiler here: install sqlite3 and gcc")
        return 77
    with open(os.path.join(HERE, "stock_shell_exceptions.txt"), encoding="utf-8") as file:
        exceptions = {line.split(":")[0] for line in file if line.strip() and line[0] != "#"}
    wrong = same = 0
    with tempfile.TemporaryDirectory() as folder:
        preload = build_answer(folder, source_id(shell)) + ":" + library
        for name, script in SCRIPTS.items():
            if wanted and name not in wanted:
                continue
            theirs = run(shell, script, None)
            ours = run(shell, script, preload)
            if ours == theirs:
                same += 1
                if name in exceptions:
                    wrong += 1
                    print(f"{name}: agrees now; take it off stock_shell_exceptions.txt")
            elif name not in exceptions:
                wrong += 1
                print(f"{name}: differs\n--- sqlite3 ---\n{theirs}--- fleetdb ---\n{ours}")
    print(f"{same} of {len(SCRIPTS)} scripts give the same output, {len(exceptions)} exceptions")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
