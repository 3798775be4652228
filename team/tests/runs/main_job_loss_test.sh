#!/usr/bin/env bash
# The main job with a worker, a gate run or a sandbox lost in the middle: it ends like one left in peace. What
# the run measures (experiments) may come out differently, so what is compared is what it built and judged:
# the tasks' merged changes, criteria, mutants, incidents and their fixes, and the money of the calls.
. "$(dirname "$0")/lib.sh"
command -v redis-cli >/dev/null || fail "redis-cli is missing; install redis-tools"

ask() { sqlite3 "$FLEET_HOME/runs/$1/ledger.db" "$2"; }
# job NAME: a new run of it, on a port of its own, with one agent so that its order is the same each time.
job() {
  "$fleet" new --example kv-server --run "$1" >/dev/null
  sed -i "s/\"port\": 7379/\"port\": $((20000 + RANDOM % 20000))/; s/\"agents\": [0-9]*/\"agents\": 1/
          s/\"lease_ms\": [0-9]*/\"lease_ms\": 3000/" "$FLEET_HOME/runs/$1/run.json"
}
built() {
  ask "$1" "SELECT stream, type, body FROM event
              WHERE type IN ('task.submitted', 'task.bounced', 'task.done', 'mutant.killed', 'mutant.survived',
                             'incident.open', 'incident.resolved', 'artifact.released')
                AND body NOT LIKE '%\"id\":\"X%' ORDER BY stream, ver" |
    sed 's/"evidence":"E[0-9]*"//; s/"commit":"[0-9a-f]*"//; s/"change":"[0-9a-f]*"//; s/[0-9.]* ms//g'
  "$fleet" status --run "$1" --json | grep -A1 '"id": "C' | tr -d ' \n'
  ask "$1" "SELECT count(*), sum(cost_nusd) FROM usage"
}
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
