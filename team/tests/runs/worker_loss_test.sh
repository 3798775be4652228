#!/usr/bin/env bash
# Kills what works for the orchestrator, with SIGKILL, or makes it hang: a worker in the middle of an
# effect, the worker of a gate run, the sandbox (bubblewrap outside, and its init inside). The run must go
# on by itself to the same final state: hash chain intact, nothing twice, money exact to the nano-dollar, no
# process and no folder left over. `worker_loss_test.sh all` tries every point; else a sample.
. "$(dirname "$0")/lib.sh"

greeter golden
[ "$(exit_code "$fleet" run --run golden)" = 0 ] || fail "the golden run: $(cat "$work/err")"
golden=$(state_of golden)
golden_cost=$("$fleet" cost --run golden --json)
events() { sqlite3 "$FLEET_HOME/runs/$1/ledger.db" "SELECT count(*) FROM event WHERE $2"; }
golden_effects=$(events golden "type LIKE 'effect.%'")

tried=0
# loss WHAT: one run with that blow. Returns 1 when there was nothing left to hit.
loss() {
  local what=$1 name=w${1//:/-}
  greeter "$name"
  sed -i 's/"lease_ms": [0-9]*/"lease_ms": 2000/' "$FLEET_HOME/runs/$name/run.json"
  [ "$(FLEET_KILL=$what exit_code "$fleet" run --run "$name")" = 0 ] || fail "$what: $(cat "$work/err")"
  if ! grep -q "^crash test: hit" "$work/err"; then
    rm -rf "$FLEET_HOME/runs/$name"
    return 1
  fi
  "$fleet" ledger verify --run "$name" >/dev/null || fail "$what: the chain is broken"
  [ "$(state_of "$name")" = "$golden" ] || fail "$what: another final state"
  [ "$("$fleet" cost --run "$name" --json)" = "$golden_cost" ] || fail "$what: the money differs"
  [ "$(events "$name" "type LIKE 'effect.%'")" = "$golden_effects" ] || fail "$what: an effect was recorded twice"
  case $what in worker:*)
    [ "$(events "$name" "type = 'lease.lost'")" = 1 ] || fail "$what: no lease was lost"
    [ "$(events "$name" "type = 'lease.granted'")" = "$(($(events golden "type = 'lease.granted'") + 1))" ] ||
      fail "$what: not one fresh worker" ;;
  esac
  "$fleet" replay --run "$name" >/dev/null || fail "$what: it does not replay"
  ! pgrep -f "$FLEET_HOME/runs/$name/" >/dev/null || fail "$what: a process is left over"
  [ -z "$(ls "$FLEET_HOME/runs/$name/scratch" "$FLEET_HOME/runs/$name/snapshots")" ] ||
    [ -z "$(ls "$FLEET_HOME/runs/$name/scratch")" ] || fail "$what: a folder is left over"
  rm -rf "$FLEET_HOME/runs/$name"
  tried=$((tried + 1))
}

# A tool call that ends whoever runs it, three times, is answered for it; the agent goes on.
thrice() {
  greeter thrice
  [ "$(FLEET_KILL=tool.run:1:thrice exit_code "$fleet" run --run thrice)" = 0 ] || fail "thrice: $(cat "$work/err")"
  [ "$(grep -c '^crash test: hit' "$work/err")" = 3 ] || fail "thrice: not three blows: $(cat "$work/err")"
  [ "$(events thrice "type = 'lease.lost'")" = 3 ] || fail "thrice: not three workers lost"
  [ "$(events thrice "type = 'effect.done' AND body LIKE '%ended the process that ran it, three times%'")" = 1 ] ||
    fail "thrice: the agent was not told once"
  [ "$("$fleet" cost --run thrice --json)" = "$golden_cost" ] || fail "thrice: the money differs"
  "$fleet" ledger verify --run thrice >/dev/null || fail "thrice: the chain is broken"
  "$fleet" replay --run thrice >/dev/null || fail "thrice: it does not replay"
}
thrice

if [ "${1:-}" = all ]; then
  for kind in worker:N worker:N:stop gate:N gate:N:stop sandbox:N sandbox:N:init; do
    point=1
    while loss "${kind/N/$point}"; do point=$((point + 1)); done
    [ "$point" -gt 1 ] || fail "$kind: never hit anything"
    echo "$kind: $((point - 1)) points"
  done
else
  for what in worker:4 worker:17 worker:30:stop gate:2 gate:9 gate:6:stop sandbox:3 sandbox:5:init; do
    loss "$what" || fail "$what: hit nothing"
  done
fi
echo "ok: $tried workers, gates and sandboxes lost, every run came to the same end by itself"
