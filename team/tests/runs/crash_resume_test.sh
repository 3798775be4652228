#!/usr/bin/env bash
# Kills the orchestrator with SIGKILL at commits of its ledger, before and after the commit, resumes, and
# compares: same final state, hash chain intact, no effect twice, at most one call in doubt, no process
# left over. A sample spread over the run, each kill in a run of its own; crash_chain_test.sh tries every commit.
. "$(dirname "$0")/lib.sh"

greeter golden
[ "$(exit_code "$fleet" run --run golden)" = 0 ] || fail "the golden run: $(cat "$work/err")"
golden=$(state_of golden)

tried=0
for point in 1 40 97 203; do
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
