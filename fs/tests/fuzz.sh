#!/bin/sh
# Fuzzes every decoder of AgentFS for SECONDS each (60 unless given), under the address and
# undefined-behaviour sanitizers: fs/tests/fuzz.sh [SECONDS]. Findings lie in build/fuzz/findings.
set -eu
seconds=${1:-60}
cd "$(dirname "$0")/../.."
targets="state_fuzz record_fuzz journal_fuzz page_fuzz pack_fuzz apply_fuzz wire_fuzz request_fuzz"
cmake --preset fuzz -DFLEET_PARTS=fs > /dev/null
# shellcheck disable=SC2086
cmake --build --preset fuzz -j2 --target agentfs-fuzz-seeds $targets > build/fuzz/build.log
build/fuzz/bin/agentfs-fuzz-seeds build/fuzz/corpus
mkdir -p build/fuzz/findings
failed=0
for target in $targets; do
  mkdir -p "build/fuzz/corpus/$target"
  program=$(find build/fuzz -type f -name "$target" -perm -u+x | head -n 1)
  if "$program" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=2048 \
      -artifact_prefix="build/fuzz/findings/$target-" "build/fuzz/corpus/$target" \
      > "build/fuzz/$target.log" 2>&1; then
    echo "$target: $(grep -E '^Done|DONE' "build/fuzz/$target.log" | tail -n 1)"
  else
    echo "$target: FOUND SOMETHING, see build/fuzz/$target.log"
    failed=1
  fi
done
exit $failed
