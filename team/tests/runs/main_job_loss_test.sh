#!/usr/bin/env bash
# The main job with a worker, a gate run or a sandbox lost in the middle: it ends like one left in peace. What
# the run measures (experiments) may come out differently, so what is compared is what it built and judged:
# the tasks' merged changes, criteria, mutants, incidents and their fixes, and the money of the calls.
. "$(dirname "$0")/lib.sh"
command -v redis-cli >/dev/null || fail "redis-cli is missing; install redis-tools"

job golden
[ "$(exit_code "$fleet" run --run golden)" = 0 ] || fail "the golden run: $(tail -n 5 "$work/out") $(cat "$work/err")"
golden=$(built golden)
for what in worker:12 worker:25 worker:31:stop gate:7 gate:15 gate:20:stop sandbox:9 sandbox:21 sandbox:14:init; do
  name=j${what//:/-}
  job "$name"
  [ "$(FLEET_KILL=$what exit_code "$fleet" run --run "$name")" = 0 ] || fail "$what: $(tail -n 5 "$work/out") $(cat "$work/err")"
  grep -q "^crash test: hit" "$work/err" || fail "$what: hit nothing"
  "$fleet" ledger verify --run "$name" >/dev/null || fail "$what: the chain is broken"
  "$fleet" replay --run "$name" >/dev/null || fail "$what: it does not replay"
  diff <(echo "$golden") <(built "$name") >"$work/diff" || fail "$what: another end: $(head -c 800 "$work/diff")"
  [ "$(ask "$name" "SELECT count(*) FROM event WHERE type = 'effect.ambiguous'")" = 0 ] || fail "$what: money in doubt"
  ! pgrep -f "$FLEET_HOME/runs/$name/" >/dev/null || fail "$what: a process is left over"
  rm -rf "$FLEET_HOME/runs/$name"
done
echo "ok: nine losses in the middle of the main job changed nothing"
