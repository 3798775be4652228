#!/usr/bin/env bash
# A run recorded on a cassette is repeated from it without any model, strictly; and what is wrong with a
# cassette, a price or a setting is one sentence.
. "$(dirname "$0")/lib.sh"
root=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$work"

one_agent() { sed -i 's/"agents": 2/"agents": 1/' "$FLEET_HOME/runs/$1/run.json"; }
"$fleet" new --example "$root/examples/greeter" --run live --record words.jsonl >/dev/null || fail "recording"
one_agent live
[ "$(exit_code "$fleet" run --run live)" = 0 ] || fail "the recorded run: $(cat "$work/err")"
head -n 1 words.jsonl | grep -q '"about".*greets people' || fail "the cassette does not say what it is"
"$fleet" new --replay words.jsonl --strict --run again >/dev/null || fail "replaying"
one_agent again
[ "$(exit_code "$fleet" run --run again)" = 0 ] || fail "the replayed run: $(cat "$work/err")"
grep -q "words were recorded" "$work/out" || fail "the replay passes itself off as live"
commit() { sqlite3 "$FLEET_HOME/runs/$1/ledger.db" "SELECT body FROM event WHERE type = 'run.met'" | grep -o '"commit":"[0-9a-f]*"'; }
[ "$(commit live)" = "$(commit again)" ] || fail "another product: $(commit live) $(commit again)"
total() { "$fleet" cost --json --run "$1" | tr -d ' \n' | grep -o '"cost_nusd":[0-9]*' | tail -n 1; }
[ "$(total live)" = "$(total again)" ] || fail "another cost"

# Killed while it records: the resumed run goes on recording, and the whole replays.
"$fleet" new --example "$root/examples/greeter" --run cut --record cut.jsonl >/dev/null
one_agent cut
[ "$(FLEET_CRASH_AT=90:after exit_code "$fleet" run --run cut)" = 137 ] || fail "it was not killed"
[ "$(exit_code "$fleet" run --run cut)" = 0 ] || fail "resuming a recording: $(cat "$work/err")"
"$fleet" new --replay cut.jsonl --run cut2 >/dev/null
one_agent cut2
[ "$(exit_code "$fleet" run --run cut2)" = 0 ] || fail "replaying a cut recording: $(cat "$work/err")"

# Left over: the run took another way.
cp words.jsonl more.jsonl
sed -n 3p words.jsonl >>more.jsonl
"$fleet" new --replay more.jsonl --strict --run more >/dev/null
one_agent more
[ "$(exit_code "$fleet" run --run more --quiet)" = 4 ] || fail "left-overs: $(cat "$work/err")"
one_sentence "1 of .* exchanges on the cassette were not asked for"

# Broken, missing, foreign.
bad() {
  local status
  status=$(exit_code "$fleet" run --quiet "${@:2}")
  [ "$status" = 5 ] || fail "${*:2}: exit $status, $(cat "$work/err")"
  one_sentence "$1"
}
head -c 3000 words.jsonl >torn.jsonl
bad "torn.jsonl, line .* the cassette is damaged, record it again" --replay torn.jsonl
sed 's/greets/beats/' words.jsonl >changed.jsonl
bad "the key does not match the request; the cassette is damaged" --replay changed.jsonl
echo hello >none.jsonl
bad "none.jsonl, line 1" --replay none.jsonl
: >empty.jsonl
bad "holds no exchange" --replay empty.jsonl
bad "no cassette at nowhere.jsonl" --replay nowhere.jsonl
bad "there is a file at words.jsonl already" --example "$root/examples/greeter" --record words.jsonl
bad "add --replay" --example "$root/examples/greeter" --strict
sed '4d' words.jsonl >gap.jsonl
bad "no recording.*the nearest one differs in\|no recording" --replay gap.jsonl --strict --run gap

# Settings and prices.
setting() { printf '%s' "$1" >fleet.json; }
live() { FLEET_MODEL_URL=https://models.invalid/v1 FLEET_MODEL=glm-x exit_code "$fleet" new "a thing" --run "$1"; }
[ "$(live unpriced)" = 5 ] || fail "a model without a price"
one_sentence 'the price of model glm-x is not known.*fleet.json'
setting '{"prices": {"glm-x": {"input": 0.6, "cached": 0.11, "output": 2.2}}, "budget_usd": 3}'
[ "$(live priced)" = 0 ] || fail "a priced model: $(cat "$work/err")"
grep -q '"in_nusd": 600' "$FLEET_HOME/runs/priced/run.json" || fail "input price"
grep -q '"cached_nusd": 110' "$FLEET_HOME/runs/priced/run.json" || fail "cached price"
grep -q '"out_nusd": 2200' "$FLEET_HOME/runs/priced/run.json" || fail "output price"
grep -q '"budget_nusd": 3000000000' "$FLEET_HOME/runs/priced/run.json" || fail "budget"
for wrong in '{"pricse": {}}|unknown key .pricse.' '{"prices": {"m": {"input": 1}}}|needs input and output' \
  '{"prices": {"m": {"input": "1", "output": 2}}}|must be US dollars per million' '{"agents": 0}|from 1 to 64' \
  '{"prices": {"m": {"input": 1, "ouput": 2}}}|unknown key .ouput.' '{"api": "x"}|openai or anthropic' '{"a": |fleet.json'; do
  setting "${wrong%%|*}"
  [ "$(live wrong)" = 5 ] || fail "accepted: ${wrong%%|*}"
  one_sentence "fleet.json.*${wrong#*|}\|${wrong#*|}"
done

# A priced model over real HTTP is booked at its price.
setting '{"prices": {"recorded-team": {"input": 1, "cached": 1, "output": 10}}}'
python3 - "$root/examples/greeter" "$work/team.json" <<'PY'
import json, sys
folder, out = sys.argv[1:]
def fill(x):
    if isinstance(x, str) and x.startswith("@file:"): return open(folder + "/" + x[6:]).read()
    if isinstance(x, list): return [fill(i) for i in x]
    if isinstance(x, dict): return {k: fill(v) for k, v in x.items()}
    return x
json.dump(fill(json.load(open(folder + "/team.json"))), open(out, "w"))
PY
"$fleet" script-server team.json >server.log 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true; rm -rf "$work"' EXIT
for _ in $(seq 100); do grep -q http server.log && break; read -rt 0.1 <> <(:) || true; done
url=$(grep -o 'http://[0-9.:]*' server.log | head -n 1)
[ "$(FLEET_MODEL_URL=$url/v1 FLEET_MODEL=recorded-team exit_code "$fleet" run --run http "Build a command that greets people by name")" = 0 ] ||
  fail "a live run: $(tail -n 3 "$work/out") $(cat "$work/err")"
"$fleet" cost --json --run http >cost.json
python3 - cost.json <<'PY' || fail "the price was not applied: $(cat cost.json)"
import json, sys
total = json.load(open(sys.argv[1]))[-1]
u = total["usage"]
want = 1000 * (u["in_fresh"] + u["in_cached"] + u["in_written"]) + 10000 * (u["out_text"] + u["out_reason"])
assert total["cost_nusd"] == want > 0, (total, want)
PY
echo "ok: recorded, replayed, priced"
