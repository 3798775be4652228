#!/usr/bin/env bash
# A fork shares the record up to its point and then goes its own way to the same end.
. "$(dirname "$0")/lib.sh"
greeter one
[ "$(exit_code "$fleet" run --run one)" = 0 ] || fail "the first run: $(cat "$work/err")"
[ "$(exit_code "$fleet" fork one@120)" = 0 ] || fail "forking: $(cat "$work/err")"
cut=$(sed -n 's/shares events 1 to \([0-9]*\);.*/\1/p' "$work/out")
[ "$cut" -gt 60 ] || fail "the cut is at '$cut'"
[ "$(exit_code "$fleet" run --run one-fork)" = 0 ] || fail "the fork: $(cat "$work/err")"
"$fleet" ledger verify --run one-fork >/dev/null || fail "the chain of the fork is broken"
[ "$(state_of one-fork)" = "$(state_of one)" ] || fail "the fork came to another end"
first() { "$fleet" log --json --run "$1" | head -n "$cut" | sha256sum; }
[ "$(first one)" = "$(first one-fork)" ] || fail "the shared part differs"
[ "$(exit_code "$fleet" fork one@999999)" = 5 ] || fail "a point that is not there"
one_sentence "has events 1 to"
echo "ok: forked, went on, same end"
