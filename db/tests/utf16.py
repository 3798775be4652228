#!/usr/bin/env python3
"""UTF-16 databases, FleetDB and SQLite in turn on the same file.

    utf16.py FLEETDB_LIBRARY [SQLITE_LIBRARY]

For both byte orders and either engine as the one that makes the file: tables with indexes of every
built-in collation over text from all planes; each engine reads what the other wrote, changes it, and
both find the file whole. Queries give the same rows in the same order, also through the UTF-16 calls.
"""
import os
import sys
import tempfile

from library import Library

WORDS = ["", "a", "A", "b", "\u00e9", "\u00c9", "z ", "z", "\u0100", "\u4e2d\u6587", "\ufffd", "\U0001f600", "\U00010000", "a\U0001f600b",
         "0123456789" * 400, "\u00df" * 900]
SETUP = """CREATE TABLE t(id INTEGER PRIMARY KEY, b TEXT, n TEXT COLLATE NOCASE, r TEXT COLLATE RTRIM);
CREATE UNIQUE INDEX tb ON t(b); CREATE INDEX tn ON t(n DESC, b); CREATE INDEX tr ON t(r) WHERE id > 2;
CREATE TABLE w(k TEXT PRIMARY KEY, v) WITHOUT ROWID;
CREATE TABLE s(id INTEGER PRIMARY KEY AUTOINCREMENT, "na\u00efve \u4e2d" TEXT CHECK("na\u00efve \u4e2d" <> 'bad'));
CREATE VIEW v AS SELECT b, n FROM t WHERE b > 'a';
"""
QUERIES = [
    "SELECT id, b FROM t ORDER BY b", "SELECT n FROM t ORDER BY n DESC, b", "SELECT id FROM t WHERE b = '\u4e2d\u6587'",
    "SELECT id FROM t WHERE n = 'A' ORDER BY id", "SELECT id FROM t WHERE r = 'z' AND id > 2 ORDER BY id",
    "SELECT k, v FROM w ORDER BY k", "SELECT k FROM w WHERE k >= '\u0100' ORDER BY k", "SELECT count(*) FROM v",
    "SELECT * FROM s ORDER BY id", "SELECT * FROM sqlite_sequence", "SELECT min(b), max(b) FROM t",
    "SELECT b FROM t GROUP BY b ORDER BY b", "PRAGMA encoding",
    "SELECT length(b), unicode(b), upper(substr(b, 1, 3)), typeof(b) FROM t ORDER BY id", "SELECT name, sql FROM sqlite_schema ORDER BY rowid",
    "SELECT b FROM t WHERE b LIKE 'A%' ORDER BY id", "SELECT tbl, idx FROM sqlite_stat1 ORDER BY 1, 2",
]


def fill(database, start):
    for i, word in enumerate(WORDS):
        quoted = "'" + word.replace("'", "''") + "'"
        yield database.rows(f"INSERT OR IGNORE INTO t VALUES({start + i}, {quoted} || {start}, {quoted}, {quoted} || ' ')")
        yield database.rows(f"INSERT OR REPLACE INTO w VALUES({quoted}, {start + i})")
    yield database.rows(f"INSERT INTO s(\"na\u00efve \u4e2d\") VALUES('\u00fc{start}')")


def compare(ours, theirs, wrong, when):
    for query in QUERIES:
        for wide in (False, True):
            mine, other = ours.rows(query, wide), theirs.rows(query, wide)
            if mine != other:
                wrong.append(f"{when}: {query} (wide: {wide})\n  fleetdb: {str(mine)[:200]}\n  sqlite:  {str(other)[:200]}")
    for name, engine in (("fleetdb", ours), ("sqlite", theirs)):
        answer = engine.rows("PRAGMA integrity_check")
        if answer != [("ok",)]:
            wrong.append(f"{name}'s integrity_check: {answer}")


def main():
    sqlite = sys.argv[2] if len(sys.argv) > 2 else "libsqlite3.so.0"
    Library(sqlite).close()  # by name first
    fleetdb = os.path.abspath(sys.argv[1])
    wrong = []
    for encoding in ("UTF-16le", "UTF-16be"):
        for maker in (sqlite, fleetdb):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "wide.db")
                made = Library(maker, path)
                for sql in (f"PRAGMA encoding='{encoding}'", SETUP):
                    if made.rows(sql) != []:
                        wrong.append(f"{maker}: {sql}: {made.rows(sql)}")
                made.close()
                ours, theirs = Library(fleetdb, path), Library(sqlite, path)
                for turn, engine in enumerate((theirs, ours, theirs, ours)):
                    wrong += [str(one) for one in fill(engine, 100 * turn + 1) if one != []]
                    engine.rows("ANALYZE")
                    engine.rows(f"UPDATE t SET b = b || '\u20ac' WHERE id % 5 = {turn}; DELETE FROM w WHERE v % 7 = {turn}")
                    compare(ours, theirs, wrong, f"{encoding} {maker} turn {turn}")
                ours.rows("VACUUM")
                compare(ours, theirs, wrong, f"{encoding} after VACUUM")
                ours.rows("REINDEX; CREATE INDEX late ON t(b, n); ALTER TABLE t RENAME TO t2; ALTER TABLE t2 RENAME TO t")
                compare(ours, theirs, wrong, f"{encoding} after DDL")
                other = os.path.join(folder, "narrow.db")
                Library(sqlite, other).rows("CREATE TABLE n(a)")
                for engine in (ours, theirs):
                    answer = engine.answer(f"ATTACH '{other}' AS n")
                    if "must use the same text encoding" not in answer:
                        wrong.append(f"ATTACH of another encoding: {answer}")
                ours.close()
                theirs.close()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "open16.db")
        wide = Library(fleetdb, path, utf16=True)
        if wide.rows("CREATE TABLE t(a); PRAGMA encoding") != [("UTF-16le",)]:
            wrong.append(f"open16: {wide.rows('PRAGMA encoding')}")
        wide.close()
    for one in wrong[:20]:
        print(one)
    print(f"{len(wrong)} differences over UTF-16 files")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
