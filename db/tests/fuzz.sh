#!/bin/sh
# Fuzzes what FleetDB reads from strangers (SQL, database files, WALs, journals) for SECONDS each (60
# unless given), and runs the differential and the metamorphic fuzzer, all under the address and
# undefined-behaviour sanitizers: db/tests/fuzz.sh [SECONDS [TARGET...]]. Findings lie in
# build/fuzz/findings. FUZZ_ORACLE names the stock libsqlite3 (its full path); FUZZ_TIMEOUT is how many
# seconds one input may take.
set -eu
seconds=${1:-60}
[ $# -eq 0 ] || shift
cd "$(dirname "$0")/../.."
targets=${*:-parser_fuzz malformed_sql_fuzz malformed_file_fuzz db_differential_fuzz db_metamorphic_fuzz}
oracle=${FUZZ_ORACLE:-$(ldconfig -p | awk '/libsqlite3\.so\.0 /{print $NF; exit}')}
cmake --preset fuzz -DFLEET_PARTS=db -DFLEET_TESTS=ON > /dev/null
# shellcheck disable=SC2086
cmake --build --preset fuzz -j2 --target db_fuzz_seeds fleetdb_shared $targets > build/fuzz/build.log
build/fuzz/bin/db_fuzz_seeds build/fuzz/corpus
mkdir -p build/fuzz/findings
library=build/fuzz/lib/fleetdb/libsqlite3.so.0
export UBSAN_OPTIONS=print_stacktrace=1

# Statements of one seed after the other until the time is over.
repeat() {
  end=$(($(date +%s) + seconds))
  seed=1000
  while [ "$(date +%s)" -lt $end ]; do
    seed=$((seed + 1))
    ASAN_OPTIONS=detect_leaks=0 "$@" $seed || return 1
  done
}

failed=0
for target in $targets; do
  program=$(find build/fuzz -type f -name "$target" -perm -u+x | head -n 1)
  log=build/fuzz/$target.log
  case $target in
    db_differential_fuzz) set -- repeat "$program" "$library" "$oracle" 3000 ;;
    db_metamorphic_fuzz) set -- repeat "$program" "$library" 600 ;;
    *)
      mkdir -p "build/fuzz/corpus/$target"
      longest=8192
      [ "$target" != malformed_file_fuzz ] || longest=160000
      set -- "$program" -max_total_time="$seconds" -max_len="$longest" -timeout="${FUZZ_TIMEOUT:-30}" \
        -rss_limit_mb=3072 -detect_leaks=1 -artifact_prefix="$PWD/build/fuzz/findings/$target-"
      # The targets change their folder, so paths are whole.
      set -- "$@" "$PWD/build/fuzz/corpus/$target"
      for checked_in in "$PWD"/db/*/"$target".corpus; do
        [ ! -d "$checked_in" ] || set -- "$@" "$checked_in"
      done
      ;;
  esac
  if "$@" > "$log" 2>&1; then
    echo "$target: $(tail -n 1 "$log")"
  else
    echo "$target: FOUND SOMETHING, see $log"
    failed=1
  fi
done
exit $failed
