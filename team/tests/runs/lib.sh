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
