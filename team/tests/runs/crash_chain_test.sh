#!/usr/bin/env bash
# One run that is killed with SIGKILL at every commit of its ledger, before it and after it, and resumed
# each time: the final state is that of a run that was left in peace, the hash chain is intact, and every
# call that was under way when the process died is booked as in doubt, so the money is exact.
# `crash_chain_test.sh main-job` does it to the main job: what it built and judged is compared, not what it measured.
. "$(dirname "$0")/lib.sh"
example=${1:-greeter}
end_of() { if [ "$example" = greeter ]; then state_of "$1"; else built "$1" | sed '$d'; fi; }

# The budget must hold three doubtful calls for each real one.
rich() {
  if [ "$example" = greeter ]; then greeter "$1"; else job "$1"; fi
  sed -i 's/"\(budget\|cap\)_nusd": [0-9]*/"\1_nusd": 100000000000/' "$FLEET_HOME/runs/$1/run.json"
}
rich golden
[ "$(exit_code "$fleet" run --run golden)" = 0 ] || fail "the golden run: $(cat "$work/err")"
calls=$("$fleet" cost --run golden --json | grep -o '"calls": *[0-9]*' | tail -n 1 | grep -o '[0-9]*$')
rich chain

# What a resumed run writes before it comes to the next step: a fresh lease when an attempt is under way ...
leased() {
  ask chain "SELECT count(*) FROM event l WHERE l.type = 'lease.granted'
         AND NOT EXISTS (SELECT 1 FROM event n WHERE n.stream = l.stream AND n.ver > l.ver)
         AND COALESCE((SELECT type FROM event a WHERE a.stream = substr(l.stream, 7) ORDER BY ver DESC LIMIT 1),
                      '') NOT IN ('attempt.submitted', 'attempt.gave_up', 'attempt.model_failed')"
}
# ... and, for a call that was under way: doubt, and the intent again. 1: for the first time.
in_doubt() {
  ask chain "SELECT CASE WHEN e.type != 'effect.intended' OR e.body NOT LIKE '%reserve_nusd%' THEN 0
                   WHEN EXISTS (SELECT 1 FROM event p WHERE p.stream = e.stream AND p.ver = e.ver - 1
                                AND p.body LIKE '%\"ambiguous\"%') THEN 2 ELSE 1 END
         FROM event e WHERE e.stream NOT LIKE 'lease/%' ORDER BY seq DESC LIMIT 1"
}
kills=0 over=0
# kill_at N SIDE: over=1 when the run ended instead.
kill_at() {
  local status
  status=$(FLEET_CRASH_AT=$1:$2 exit_code "$fleet" run --run chain --quiet)
  case $status in
    137) kills=$((kills + 1)) ;;
    0) over=1 ;;
    *) fail "after $kills kills, at commit $1 $2: $(tail -n 3 "$work/out") $(cat "$work/err")" ;;
  esac
  [ $((kills % 100)) != 0 ] || echo "$kills kills, the ledger has $(ask chain "SELECT max(seq) FROM event") events"
}
while [ "$over" = 0 ]; do
  next=$(($(leased) + 1))
  # A call would be asked for ever if it were killed each time before its result is in: let it pass the second time.
  [ "$(in_doubt)" != 2 ] || next=$((next + 2))
  kill_at "$next" before
  [ "$over" = 1 ] || kill_at "$next" after
done
"$fleet" ledger verify --run chain >/dev/null || fail "the chain is broken after $kills kills"
diff <(end_of golden) <(end_of chain) >"$work/diff" ||
  fail "another final state after $kills kills: $(head -c 800 "$work/diff")"
"$fleet" replay --run chain >/dev/null || fail "it does not replay after $kills kills"
doubt=$("$fleet" cost --run chain | awk '$1 == "(in" { print $3 }')
[ "$doubt" = "$((3 * calls))" ] || fail "$doubt calls in doubt, not three for each of the $calls"
commits=$((kills / 2))
[ "$commits" -gt 150 ] || fail "only $commits commits were tried"
echo "ok: killed $kills times, before and after each of $commits commits, and came to the same end"
