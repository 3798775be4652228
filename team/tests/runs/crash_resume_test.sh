#!/usr/bin/env bash
# Kills the orchestrator with SIGKILL at commits of its ledger, before and after the commit, resumes, and
# compares: same final state, hash chain intact, no effect twice, at most one call in doubt, no process
# left over. `crash_resume_test.sh all` tries every commit; else a sample spread over the run.
. "$(dirname "$0")/lib.sh"

greeter golden
[ "$(exit_code "$fleet" run --run golden)" = 0 ] || fail "the golden run: $(cat "$work/err")"
golden=$(state_of golden)
calls() { "$fleet" cost --run "$1" --json | tr ',{' '\n\n' | grep -c '"outcome"' || true; }

# One more than the number of commits: the run must end without being killed.
commits() {
  local low=1 high=400 middle
  while [ $((high - low)) -gt 1 ]; do
    middle=$(((low + high) / 2))
    rm -rf "$FLEET_HOME/runs/probe"
    greeter probe
    if [ "$(FLEET_CRASH_AT=$middle:before exit_code "$fleet" run --run probe)" = 0 ]; then
      high=$middle
    else
      low=$middle
    fi
  done
  echo "$low"
}

if [ "${1:-}" = all ]; then
  points=$(seq 1 "$(commits)")
else
  points="1 40 97 203"
fi
tried=0
for point in $points; do
  for side in before after; do
    name=c$point-$side
    greeter "$name"
    status=$(FLEET_CRASH_AT=$point:$side exit_code "$fleet" run --run "$name")
    [ "$status" = 137 ] || fail "commit $point $side: the process was not killed but ended with $status"
    [ "$(exit_code "$fleet" run --run "$name")" = 0 ] || fail "commit $point $side: $(cat "$work/err")"
    "$fleet" ledger verify --run "$name" >/dev/null || fail "commit $point $side: the chain is broken"
    [ "$(state_of "$name")" = "$golden" ] || fail "commit $point $side: another final state"
    "$fleet" replay --run "$name" >/dev/null || fail "commit $point $side: it does not replay"
    doubt=$("$fleet" cost --run "$name" | awk '$1 == "(in" { print $3 }')
    [ "${doubt:-0}" -le 1 ] || fail "commit $point $side: $doubt calls in doubt"
    ! pgrep -f "$FLEET_HOME/runs/$name/" >/dev/null || fail "commit $point $side: a process is left over"
    rm -rf "$FLEET_HOME/runs/$name"
    tried=$((tried + 1))
  done
done
echo "ok: $tried kills, every one resumed to the same state"
