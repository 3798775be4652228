#!/usr/bin/env python3
"""Random changes of random tables, run by `fleetdb` and by the stock `sqlite3`: same content, sound file.

Usage: dml_differential.py FLEETDB [--scripts N] [--seed N]

Each script makes tables with random indexes, fills them and changes them by every path (whole table, rowid,
range of an index, inside transactions that are rolled back), with rows that grow past their page and shrink again.
Afterwards both files hold the same rows and the stock engine finds ours sound.
"""
import argparse
import os
import random
import subprocess
import sys
import tempfile

INDEXES = ["k", "g, k", "s", "x DESC", "g, s", "k) WHERE (g > 5", "abs(k)"]


def condition(rng):
    low = rng.randrange(-20, 420)
    return rng.choice([
        "1", f"id = {low}", f"id BETWEEN {low} AND {low + rng.randrange(200)}", f"id > {low}", f"k = {low % 50}",
        f"k < {low % 60}", f"g = {low % 12}", f"g = {low % 12} AND k > {low % 40}", f"g < {low % 12}", f"x > {low}.5",
        f"s LIKE '%{rng.choice('abcxyz')}%'", f"s > '{rng.choice('abcxyz')}'", f"id IN ({low}, {low + 3}, {low + 7}, {low})",
        f"id = {low} OR k = {low % 50}", f"abs(k) = {low % 50}", f"g IN (SELECT k FROM {{t}} WHERE id < {low % 30})",
        "s IS NULL", f"id % 7 = {low % 7}"])


def assignment(rng):
    return rng.choice([
        "k = k + 1", "k = -k", "k = g, g = k", "g = g + 100", "g = (g + 1) % 12", "s = s || s", "s = substr(s, 1, 3)",
        "s = 'y' || s", "s = NULL", "s = hex(zeroblob(700))", "x = x * 2", "x = k", "k = k + 1, s = upper(s)", "id = id", "x = x + 1",
        "k = (SELECT max(k) FROM {t}) - k", "g = random() * 0 + id % 12", "s = coalesce(s, 'abc') || id"])


def change(rng, table):
    kind = rng.random()
    if kind < 0.5:
        verb = rng.choice(["UPDATE", "UPDATE", "UPDATE", "UPDATE OR IGNORE", "UPDATE OR REPLACE"])
        sql = f"{verb} {{t}} SET {assignment(rng)} WHERE {condition(rng)}"
    elif kind < 0.75:
        sql = f"DELETE FROM {{t}} WHERE {condition(rng)}"
    else:
        start = rng.randrange(1, 400)
        sql = (f"INSERT OR IGNORE INTO {{t}} SELECT {rng.choice(['NULL', 'id + ' + str(start)])}, k, g, s, x FROM {{t}} "
               f"WHERE {condition(rng)} ORDER BY id LIMIT 60")
    return sql.replace("{t}", table) + ";"


def script(rng):
    lines = []
    for table in ("t", "u"):
        lines.append(f"CREATE TABLE {table}(id INTEGER PRIMARY KEY, k INT, g INT, s TEXT, x REAL);")
        lines.append(f"INSERT INTO {table} WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 400) "
                     f"SELECT i, i * 37 % 50, i * 11 % 12, char(97 + i % 26) || i, i / 2.0 FROM c;")
        for number, columns in enumerate(rng.sample(INDEXES, rng.randrange(4))):
            lines.append(f"CREATE INDEX {table}{number} ON {table}({columns});")
        if rng.random() < 0.3:
            lines.append(f"CREATE UNIQUE INDEX {table}_u ON {table}(id, s);")
    for _ in range(25):
        table = rng.choice(("t", "u"))
        if rng.random() < 0.3:
            lines += ["SAVEPOINT a;", change(rng, table), change(rng, table),
                      rng.choice(["ROLLBACK TO a; RELEASE a;", "RELEASE a;"])]
        lines.append(change(rng, table))
        lines.append(f"SELECT changes(), count(*), sum(k), sum(length(s)), total(x) FROM {table};")
    return "\n".join(lines) + "\n"


def run(program, database, text):
    done = subprocess.run([program, "-batch", database], input=text, capture_output=True, text=True, timeout=120)
    # Where the message names a line, the two shells word it differently; that there was an error must agree.
    return done.stdout, len(done.stderr.splitlines()) > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fleetdb")
    parser.add_argument("--scripts", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.seed, options.seed + options.scripts):
            rng = random.Random(number)
            text = f"PRAGMA page_size = {rng.choice([512, 1024, 4096])};\n" + script(rng)
            ours, theirs = os.path.join(folder, f"ours{number}"), os.path.join(folder, f"theirs{number}")
            if run(options.fleetdb, ours, text) != run("sqlite3", theirs, text):
                sys.exit(f"seed {number}: the two answer differently")
            sound, _ = run("sqlite3", ours, "PRAGMA integrity_check;")
            if sound != "ok\n":
                sys.exit(f"seed {number}: the stock engine says of our file: {sound}")
            dumps = [run("sqlite3", path, "SELECT * FROM t ORDER BY id; SELECT * FROM u ORDER BY id;") for path in (ours, theirs)]
            if dumps[0] != dumps[1]:
                sys.exit(f"seed {number}: the files hold different rows")
    print(f"{options.scripts} scripts: same answers, same rows, sound files")


main()
