#!/usr/bin/env bash
# Bad input gets one clear sentence and the right exit code, and nothing is lost.
. "$(dirname "$0")/lib.sh"
root=$(cd "$(dirname "$0")/../../.." && pwd)

[ "$(exit_code "$fleet" run "build something")" = 5 ] || fail "a run without a model"
one_sentence "no model"
[ "$(exit_code "$fleet" run --example nowhere)" = 5 ] || fail "an example that is not there"
one_sentence "no example 'nowhere'"
[ "$(exit_code "$fleet" status)" = 5 ] || fail "status without a run"
one_sentence "no run yet"
[ "$(FLEET_MODEL_URL=http://127.0.0.1:1 exit_code "$fleet" new x)" = 5 ] || fail "half an endpoint"
one_sentence "set both"

cp -r "$root/examples/greeter" "$work/odd"
sed -i 's/"agents"/"agnets"/' "$work/odd/example.json"
[ "$(exit_code "$fleet" run --example "$work/odd")" = 5 ] || fail "an unknown key"
one_sentence "unknown key 'agnets'"

# A model that is busy for longer than we ask: the run halts, and goes on when it is free.
cp -r "$root/examples/greeter" "$work/busy"
sed -i 's|^"rules": \[|&\n {"when": {"task": "spec", "turn": 0}, "reply": {"faults": [{"kind": "status", "status": 429, "headers": {"retry-after-ms": "5"}}]}},|' "$work/busy/team.json"
[ "$(exit_code "$fleet" run --example "$work/busy" --run busy)" = 5 ] || fail "a busy model: $(tail -n 2 "$work/out") $(cat "$work/err")"
one_sentence "rate limited.*resume"
cp "$root/examples/greeter/team.json" "$work/busy/team.json"
[ "$(exit_code "$fleet" run --run busy)" = 0 ] || fail "no longer busy: $(tail -n 2 "$work/out") $(cat "$work/err")"

rm -rf "$work/odd"
cp -r "$root/examples/greeter" "$work/odd"
echo '{"rules": [' >"$work/odd/team.json"
[ "$(exit_code "$fleet" run --example "$work/odd")" = 5 ] || fail "a broken recording"
one_sentence "team.json"

# An endpoint that is gone: exit 5, and the same run goes on once there is one again.
greeter gone
cp "$FLEET_HOME/runs/gone/run.json" "$work/good.json"
sed -i 's|"script": "[^"]*"|"script": ""|; s|"url": ""|"url": "http://127.0.0.1:9/v1"|' "$FLEET_HOME/runs/gone/run.json"
[ "$(exit_code "$fleet" run --run gone --quiet)" = 5 ] || fail "an endpoint that is gone"
one_sentence "the model cannot be used"

greeter good
[ "$(exit_code "$fleet" run --run good)" = 0 ] || fail "the good run: $(cat "$work/err")"
cp -r "$FLEET_HOME/runs/good" "$FLEET_HOME/runs/untouched"
ledger=$FLEET_HOME/runs/good/ledger.db
cp "$ledger" "$work/ledger.db"

# One changed byte in a stored event.
sqlite3 "$ledger" "UPDATE event SET body = replace(body, 'greets', 'beats') WHERE type = 'intent.received'"
[ "$(exit_code "$fleet" ledger verify --run good)" = 6 ] || fail "a changed event"
one_sentence "was changed after it was written"
# A torn file.
head -c 20000 "$work/ledger.db" >"$ledger"
rm -f "$ledger-wal" "$ledger-shm"
[ "$(exit_code "$fleet" run --run good)" = 6 ] || fail "a torn ledger: $(cat "$work/err")"
one_sentence "damaged"

# A ledger that is gone, or empty, is not a run to begin anew.
cp -r "$FLEET_HOME/runs/untouched" "$FLEET_HOME/runs/lost"
for how in "rm -f" "truncate -s 0"; do
  rm -f "$FLEET_HOME/runs/lost/ledger.db"-*
  $how "$FLEET_HOME/runs/lost/ledger.db"
  [ "$(exit_code "$fleet" run --run lost)" = 6 ] || fail "a ledger that is gone: $(cat "$work/err")"
  one_sentence "its ledger is gone; restore"
done
[ "$(exit_code "$fleet" status --run lost)" = 6 ] || fail "an empty ledger: $(cat "$work/err")"
one_sentence "holds no ledger"
# A damaged page that holds no event.
cp -r "$FLEET_HOME/runs/untouched" "$FLEET_HOME/runs/page"
page=$FLEET_HOME/runs/page/ledger.db
sqlite3 "$page" "PRAGMA wal_checkpoint(TRUNCATE)" >/dev/null
root_page=$(sqlite3 "$page" "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = 'usage'")
head -c 4096 /dev/zero | tr '\0' 'x' | dd of="$page" bs=4096 seek=$((root_page - 1)) conv=notrunc 2>/dev/null
[ "$(exit_code "$fleet" ledger verify --run page)" = 6 ] || fail "a damaged page: $(cat "$work/out")"
# Commands and points that are not there.
[ "$(exit_code "$fleet" runn)" = 5 ] || fail "a command that is not there"
one_sentence "no command 'runn'"
[ "$(exit_code "$fleet" fork untouched@5x)" = 5 ] || fail "a point that is no number"
one_sentence "'5x' is no event's number"

# A run that somebody else is working on.
greeter held
(exec 9>"$FLEET_HOME/runs/held/run.lock" && flock 9 && echo 4711 >"$FLEET_HOME/runs/held/run.lock" && exec sleep 60) &
holder=$!
for _ in $(seq 50); do [ -s "$FLEET_HOME/runs/held/run.lock" ] && break; read -rt 0.1 <> <(:) || true; done
[ "$(exit_code "$fleet" run --run held)" = 5 ] || fail "two orchestrators on one run"
one_sentence "is being worked on by process 4711"
kill "$holder"
wait "$holder" 2>/dev/null || true
# Workers are not for people.
[ "$(exit_code "$fleet" worker </dev/null)" = 5 ] || fail "a worker started by hand"
one_sentence "is started by 'fleet run' itself"

# A budget that is too small: exit 3, nothing is sent beyond it.
greeter poor
sed -i 's/"\(budget\|cap\)_nusd": [0-9]*/"\1_nusd": 1000/' "$FLEET_HOME/runs/poor/run.json"
[ "$(exit_code "$fleet" run --run poor)" = 3 ] || fail "a budget that is too small: $(cat "$work/err")"
one_sentence "budget"
[ "$("$fleet" status --run poor --json | grep -c '"spent_nusd": 0')" = 1 ] || fail "money was spent"
sed -i 's/"budget_nusd": 1000,/"budget_nusd": 1000000000,/' "$FLEET_HOME/runs/poor/run.json"
[ "$(exit_code "$fleet" run --run poor)" = 0 ] || fail "a raised budget: $(cat "$work/err")"
# A ledger that cannot grow: exit 5, nothing acknowledged is lost, and the run goes on when there is room.
greeter full
full() { (ulimit -f 300 && exec "$fleet" run --run full --quiet); }
[ "$(exit_code full)" = 5 ] || fail "a ledger that cannot grow: $(cat "$work/out" "$work/err")"
"$fleet" ledger verify --run full >/dev/null || fail "the ledger was damaged by a full disk"
[ "$(exit_code "$fleet" run --run full --quiet)" = 0 ] || fail "it does not go on: $(cat "$work/err")"
[ "$(state_of full)" = "$(state_of untouched)" ] || fail "another end than without the full disk"
echo "ok: every problem is one sentence"
