#!/usr/bin/env bash
# One changed line in the recorded coder's work makes the run end red: exit code 2, criterion named. And a
# coder who writes outside the files of the task gets nothing of that merged.
. "$(dirname "$0")/lib.sh"
root=$(cd "$(dirname "$0")/../../.." && pwd)

cp -r "$root/examples/greeter" "$work/bad"
sed -i 's/exit 2/exit 1/' "$work/bad/words/greet2.sh"
[ "$(exit_code "$fleet" run --example "$work/bad")" = 2 ] || fail "a wrong exit status was accepted"
grep -q '^  C2  when called without a name' "$work/out" || fail "C2 is not named: $(tail -n 12 "$work/out")"

cp -r "$root/examples/greeter" "$work/cheat"
sed -i 's|sh src/greet.sh Bob|echo exit 0 > build.sh; mkdir -p gates; echo x > gates/plain.json; sh src/greet.sh Bob|' "$work/cheat/team.json"
[ "$(exit_code "$fleet" run --example "$work/cheat")" = 0 ] || fail "the cheat changed the outcome"
grep -q 'changes outside its files were refused: gates/plain.json' "$work/out" ||
  fail "the cheat was not noticed"
echo "ok: red when it must be red"
