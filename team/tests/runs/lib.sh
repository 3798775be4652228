# Shared by the whole-run tests: a private FLEET_HOME, the built program, assertions.
set -euo pipefail
build=${FLEET_BUILD:?set FLEET_BUILD to a build folder}
fleet=$build/bin/fleet
work=$(mktemp -d)
export FLEET_HOME=$work/home
trap 'rm -rf "$work"' EXIT
unset FLEET_MODEL_URL FLEET_MODEL FLEET_MODEL_KEY FLEET_CRASH_AT

fail() {
  echo "not ok: $*" >&2
  exit 1
}
# exit_code COMMAND...: runs it quietly and prints its exit status; output in $work/out and $work/err.
exit_code() {
  local status=0
  "$@" >"$work/out" 2>"$work/err" || status=$?
  echo "$status"
}
# one_sentence PATTERN: standard error must be one line of ours that matches.
one_sentence() {
  [ "$(wc -l <"$work/err")" -eq 1 ] || fail "wanted one sentence, got: $(cat "$work/err")"
  grep -q "^fleet: .*$1" "$work/err" || fail "wanted '$1', got: $(cat "$work/err")"
}
# greeter NAME: a new run of the small example, made comparable: one agent, so that its order is the same
# each time, and one id.
greeter() {
  "$fleet" new --example greeter --run "$1" >/dev/null
  sed -i "s/\"agents\": 2/\"agents\": 1/; s/\"id\": \"$1\"/\"id\": \"greeter\"/" "$FLEET_HOME/runs/$1/run.json"
}
state_of() { "$fleet" ledger verify --json --run "$1" | sed 's/.*"state":"\([0-9a-f]*\)".*/\1/'; }
# ask RUN SQL: of its ledger; 0 while there is no answer.
ask() {
  local ledger=$FLEET_HOME/runs/$1/ledger.db answer=
  [ ! -f "$ledger" ] || answer=$(sqlite3 "$ledger" "$2" 2>/dev/null || true)
  echo "${answer:-0}"
}
# job NAME: a new run of the main job, on a port of its own, with one agent so that its order is the same each time.
job() {
  "$fleet" new --example kv-server --run "$1" >/dev/null
  sed -i "s/\"port\": 7379/\"port\": $((20000 + RANDOM % 20000))/; s/\"agents\": [0-9]*/\"agents\": 1/
          s/\"lease_ms\": [0-9]*/\"lease_ms\": 3000/" "$FLEET_HOME/runs/$1/run.json"
}
# built NAME: what it built and judged, without what it measured.
built() {
  ask "$1" "SELECT stream, type, CASE WHEN type = 'incident.open' THEN json_remove(body, '\$.text') ELSE body END FROM event
              WHERE type IN ('task.submitted', 'task.bounced', 'task.done', 'mutant.killed', 'mutant.survived',
                             'incident.open', 'incident.resolved', 'artifact.released')
                AND body NOT LIKE '%\"id\":\"X%' ORDER BY stream, ver" |
    sed 's/"evidence":"E[0-9]*"//; s/"commit":"[0-9a-f]*"//; s/"change":"[0-9a-f]*"//; s/[0-9.]* ms//g'
  "$fleet" status --run "$1" --json | grep -A1 '"id": "C' | tr -d ' \n'
  ask "$1" "SELECT count(*), sum(cost_nusd) FROM usage"
}
