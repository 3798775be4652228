#!/usr/bin/env bash
# The main job, whole: the recorded team builds a server, gates of every kind judge it, a held-out failure is
# bounced and mended, mutants are caught, one experiment is kept and one rejected, an incident is reproduced
# and mended, the new version is compared with the one before, a decision whose trigger fires is decided
# again, the artefact serves. Then the record is replayed and the ledger checked.
. "$(dirname "$0")/lib.sh"
command -v redis-cli >/dev/null || fail "redis-cli is missing; install redis-tools"
command -v redis-server >/dev/null || fail "redis-server is missing; install it"
"$fleet" new --example kv-server --run job >/dev/null
port=$((20000 + RANDOM % 20000))
sed -i "s/\"port\": 7379/\"port\": $port/" "$FLEET_HOME/runs/job/run.json"
[ "$(exit_code "$fleet" run --run job)" = 0 ] || fail "the run: $(tail -n 20 "$work/out") $(cat "$work/err")"
saw() { grep -qE "$1" "$work/out" || fail "the viewer did not see: $1"; }
saw 'critique .* 1 blocking'
saw 'C3 .* counts: its gates fail on the empty and on the do-nothing program'
saw 'FAIL composed .* held-out'
saw 'T2 .* bounced back, rung 1: .* \(held out: counts only\)'
saw 'M1 .* mutant caught'
for gate in parser-unit commands differential pipeline malformed sanitizer kill9 disk-full weather commit-model; do
  saw "ok   $gate +pass"
done
# On a machine that differs from itself no experiment is made, and the run says so.
saw 'X1 .* (kept|rejected)|too noisy'
saw 'X2 .* (kept|rejected)|too noisy'
saw 'D1.F3 .* died of signal 6'
saw 'ok   D2.F4 .*full disk'
saw 'ok   D2.F5 .*packets'
saw 'D2 .* beside A1 not shown to be worse'
saw 'D2 .* serves: [0-9]+ answers, .* p99'
saw 'D4 .* open again: restarts was [0-9]+, above 0'
saw 'D4 .* kept: one process'
saw 'I1 .* reproduced by gate repro-I1'
saw 'I1 .* resolved'
saw 'A2 .* released'
"$fleet" replay --run job >/dev/null || fail "it does not replay"
"$fleet" ledger verify --run job >/dev/null || fail "the ledger is damaged"
grep -q 'words are <b>recorded</b>' "$FLEET_HOME/runs/job/report.html" || fail "the report hides the recording"
[ "$("$fleet" status --run job --json | grep -c '"state": "passing"')" = 6 ] || fail "not six criteria"

"$fleet" why D4 --run job >"$work/why"
grep -q 'decision.revisited .*restarts was' "$work/why" || fail "fleet why does not tell: $(head -c 500 "$work/why")"
[ "$(wc -l <"$work/why")" = 5 ] || fail "fleet why tells of other things: $(head -c 500 "$work/why")"
"$fleet" status --run job | grep -qE 'D2 +serving .* p99 ' || fail "fleet status shows no latencies"
"$fleet" perf --run job | grep -qE '% .*kv::' || grep -q 'too noisy' "$work/out" || fail "fleet perf shows no profile"

# What was released serves a real client, and comes back when it is killed.
"$fleet" deploy --run job --port "$port" >"$work/deploy" 2>&1 &
deploy=$!
trap 'kill $deploy 2>/dev/null || true; wait $deploy 2>/dev/null || true; rm -rf "$work"' EXIT
for _ in $(seq 100); do grep -q serves "$work/deploy" && break; read -rt 0.1 <> <(:) || true; done
[ "$(redis-cli -p "$port" SET town Delft)" = OK ] || fail "SET: $(cat "$work/deploy")"
pkill -9 -P "$deploy"
for _ in $(seq 100); do [ "$(redis-cli -p "$port" GET town 2>/dev/null)" = Delft ] && break; read -rt 0.1 <> <(:) || true; done
[ "$(redis-cli -p "$port" GET town)" = Delft ] || fail "an acknowledged write is lost"
kill -TERM "$deploy"
wait "$deploy" || fail "deploy ended badly: $(cat "$work/deploy")"
"$fleet" status --run job | grep -qE 'live +stopped .* [1-9][0-9]* restarts' || fail "what happened live is not told"
"$fleet" ledger verify --run job >/dev/null || fail "the ledger is damaged after the deployment"
echo "ok: the main job"
