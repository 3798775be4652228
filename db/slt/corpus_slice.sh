#!/usr/bin/env bash
# Runs a fixed slice of the public sqllogictest corpus, one file of every group, on FleetDB: in memory, on
# a file and in WAL mode (each file checked by stock SQLite's integrity_check afterwards), and in memory
# with each executor forced alone.
#
#   corpus_slice.sh FLEETDB_SLT LIBRARY [FILES_PER_GROUP]
#
# The corpus is data and not part of this repository. It is looked for in $SQLLOGICTEST_CORPUS (a folder
# or corpus.tar.zst) and beside the checkout in shared/sqllogictest; without it the test is skipped (77).
set -euo pipefail
slt=$1
library=$2
per_group=${3:-1}

here=$(cd "$(dirname "$0")/../.." && pwd)
corpus=${SQLLOGICTEST_CORPUS:-$here/../shared/sqllogictest/corpus.tar.zst}
if [ ! -e "$corpus" ]; then
  echo "skipped: no corpus; set SQLLOGICTEST_CORPUS to a folder of *.test files or to corpus.tar.zst"
  exit 77
fi
if [ -f "$corpus" ]; then
  unpacked=$(dirname "$(dirname "$slt")")/sqllogictest
  if [ ! -f "$unpacked/complete" ]; then
    mkdir -p "$unpacked"
    zstd -d --long=27 -q -c "$corpus" | tar x -C "$unpacked"
    touch "$unpacked/complete"
  fi
  corpus=$unpacked/test
fi
run() { "$slt" --jobs 2 --per-group "$per_group" "$@" --library "$library" "$corpus" | tail -n 12; }
run
run --mode file --check-with libsqlite3.so.0
run --mode wal --check-with libsqlite3.so.0
run --pragma "PRAGMA fleet_executor=row"
run --pragma "PRAGMA fleet_executor=vector"
