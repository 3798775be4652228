#!/usr/bin/env bash
# The upper rungs of the bounce ladder, each with a recorded team: another model mends what the first could
# not; a task is cut anew and its parts land; the decider says once more; the run goes on without a task and
# ends red; a person is asked, the run waits with exit code 4, and goes on with the answer.
. "$(dirname "$0")/lib.sh"
root=$(cd "$(dirname "$0")/../../.." && pwd)
command -v python3 >/dev/null || fail "python3 is missing"

# team NAME: the greeter whose coder hands in the same wrong usage line for T2 until the rules read from
# standard input (a JSON list; they come first) say otherwise.
team() {
  cp -r "$root/examples/greeter" "$work/$1"
  cat >"$work/rules.json"
  python3 - "$work/$1" "$work/rules.json" <<'PY'
import json, sys
folder, rules = sys.argv[1], json.load(open(sys.argv[2]))
path = folder + "/team.json"
script = json.load(open(path))
spec = json.load(open(folder + "/words/plan.json"))
# T2 must pass its gate by itself, so that it is T2 that comes back.
for task in spec["tasks"]:
    if task["id"] == "T2":
        task["gates"] = ["usage"]
        task["needs"] = ["T1"]
json.dump(spec, open(folder + "/words/plan.json", "w"))
own = [r for r in script["rules"] if r["when"].get("task") != "T2"]
wrong = []
for turn in range(0, 40, 2):
    wrong.append({"when": {"task": "T2", "turn": turn},
                  "reply": {"tools": [{"name": "write", "arguments": {"path": "src/usage.txt", "content": "nonsense\n"}}]}})
    wrong.append({"when": {"task": "T2", "turn": turn + 1},
                  "reply": {"tools": [{"name": "submit", "arguments": {"summary": "a usage line"}}]}})
script["rules"] = rules + own + wrong
json.dump(script, open(path, "w"))
PY
}
right='{"tools": [{"name": "write", "arguments": {"path": "src/usage.txt", "content": "@file:words/usage.txt"}}]}'
submit='{"tools": [{"name": "submit", "arguments": {"summary": "done"}}]}'
# decide CHOICE ADVICE: rules of the decider at the end of the ladder.
decide() {
  printf '{"when": {"task": "T2-escalation", "turn": 0}, "reply": {"tools": [{"name": "write", "arguments": {"path": "decision.json", "content": "{\\"choice\\": \\"%s\\", \\"advice\\": \\"%s\\", \\"why\\": \\"it is stuck\\"}"}}]}},
  {"when": {"task": "T2-escalation", "turn": 1}, "reply": %s}' "$1" "$2" "$submit"
}
run() { exit_code "$fleet" run --example "$work/$1" --run "$1"; }
events() { sqlite3 "$FLEET_HOME/runs/$1/ledger.db" "SELECT count(*) FROM event WHERE $2"; }
steps() { sqlite3 "$FLEET_HOME/runs/$1/ledger.db" "SELECT body FROM event WHERE type = 'task.bounced'" | grep '"id":"T2' | grep -o '"step":"[^"]*"' | tr -d '"' | cut -d: -f2 | tr '\n' ','; }
sound() {
  "$fleet" ledger verify --run "$1" >/dev/null || fail "$1: the chain is broken"
  "$fleet" replay --run "$1" >/dev/null || [ $? = 2 ] || fail "$1: it does not replay"
}

# Rung 3: the other model, and only then.
team other <<<"[{\"when\": {\"task\": \"T2\", \"turn\": 0, \"model\": \"second-team\"}, \"reply\": $right}]"
sed -i 's/"model": "recorded-team",/"model": "recorded-team", "other_model": "second-team",/' "$work/other/example.json"
[ "$(run other)" = 0 ] || fail "rung 3: $(tail -n 3 "$work/out") $(cat "$work/err")"
[ "$(steps other)" = "same context,fresh context,other model," ] || fail "rung 3: the steps were $(steps other)"
"$fleet" cost --by model --run other --json | grep -q second-team || fail "rung 3: the other model is not in the books"
[ "$(events other "type = 'usage.booked' AND body LIKE '%\"model_asked\":\"second-team\"%' AND stream != 'T2.a4'")" = 0 ] ||
  fail "rung 3: the other model was asked elsewhere"
sound other

# Rung 4: cut anew into two parts.
team split <<<"[
  {\"when\": {\"task\": \"T2-split\", \"turn\": 0}, \"reply\": {\"tools\": [{\"name\": \"write\", \"arguments\": {\"path\": \"plan.json\", \"content\": \"{\\\"tasks\\\": [{\\\"id\\\": \\\"T2.1\\\", \\\"title\\\": \\\"Notes\\\", \\\"brief\\\": \\\"Write src/notes.txt.\\\", \\\"touches\\\": [\\\"src/notes.txt\\\"]}, {\\\"id\\\": \\\"T2.2\\\", \\\"title\\\": \\\"Usage\\\", \\\"brief\\\": \\\"Write it.\\\", \\\"needs\\\": [\\\"T2.1\\\"], \\\"touches\\\": [\\\"src/usage.txt\\\"], \\\"covers\\\": [\\\"C2\\\"], \\\"gates\\\": [\\\"usage\\\"]}]}\"}}]}},
  {\"when\": {\"task\": \"T2-split\", \"turn\": 1}, \"reply\": $submit},
  {\"when\": {\"task\": \"T2.1\", \"turn\": 0}, \"reply\": {\"tools\": [{\"name\": \"write\", \"arguments\": {\"path\": \"src/notes.txt\", \"content\": \"usage goes to usage.txt\"}}]}},
  {\"when\": {\"task\": \"T2.1\", \"turn\": 1}, \"reply\": $submit},
  {\"when\": {\"task\": \"T2.2\", \"turn\": 0}, \"reply\": $right},
  {\"when\": {\"task\": \"T2.2\", \"turn\": 1}, \"reply\": $submit},
  {\"when\": {\"any\": \"Task: T2[.].-review\", \"turn\": 0}, \"reply\": {\"tools\": [{\"name\": \"write\", \"arguments\": {\"path\": \"review.json\", \"content\": \"@file:words/review.json\"}}]}},
  {\"when\": {\"any\": \"Task: T2[.].-review\", \"turn\": 1}, \"reply\": $submit}]"
[ "$(run split)" = 0 ] || fail "rung 4: $(tail -n 3 "$work/out") $(cat "$work/err")"
[ "$(steps split)" = "same context,fresh context,other model,split," ] || fail "rung 4: the steps were $(steps split)"
[ "$(events split "type = 'task.split' AND body LIKE '%T2.1%T2.2%'")" = 1 ] || fail "rung 4: nothing was split"
[ "$(events split "type = 'task.merged' AND body LIKE '%\"id\":\"T2.%'")" = 2 ] || fail "rung 4: not both parts landed"
[ "$(events split "type = 'task.leased' AND body LIKE '%\"id\":\"T2\"%'")" = 4 ] || fail "rung 4: not four attempts before"
sound split

# Rung 5, the decider: once more, with advice that helps.
team retry <<<"[$(decide retry "print the usage line of the specification"),
  {\"when\": {\"task\": \"T2\", \"turn\": 0, \"any\": \"print the usage line of the specification\"}, \"reply\": $right}]"
[ "$(run retry)" = 0 ] || fail "rung 5, once more: $(tail -n 3 "$work/out") $(cat "$work/err")"
[ "$(events retry "type = 'task.escalated'")" = 1 ] || fail "rung 5: not escalated once"
[ "$(events retry "type = 'decision.decided' AND body LIKE '%once more: print%'")" = 1 ] || fail "rung 5: no decision"
sound retry

# Rung 5: without it; red, and the criterion is named.
team without <<<"[$(decide without "")]"
[ "$(run without)" = 2 ] || fail "rung 5, without: $(tail -n 3 "$work/out") $(cat "$work/err")"
grep -q 'C2' "$work/out" || fail "rung 5: C2 is not named: $(tail -n 9 "$work/out")"
[ "$(events without "type = 'task.abandoned'")" = 1 ] || fail "rung 5: the task is not abandoned"
sound without

# Rung 5: a person. The run waits; a wrong id is refused; the answer is taken up.
team person <<<"[$(decide person "May the usage line be shorter?"),
  {\"when\": {\"task\": \"T2\", \"turn\": 0, \"any\": \"No, print all of it\"}, \"reply\": $right}]"
[ "$(run person)" = 4 ] || fail "rung 5, a person: $(tail -n 3 "$work/out") $(cat "$work/err")"
one_sentence "decision T2.e1: May the usage line be shorter?"
[ "$(exit_code "$fleet" run --run person --quiet)" = 4 ] || fail "rung 5: it did not wait"
[ "$(exit_code "$fleet" answer T9 yes --run person)" = 5 ] || fail "rung 5: an answer to nothing"
one_sentence "these do: T2.e1"
[ "$(exit_code "$fleet" answer T2.e1 --run person)" = 5 ] || fail "rung 5: an empty answer"
[ "$(exit_code "$fleet" answer T2.e1 "No, print all of it." --run person)" = 0 ] || fail "rung 5: $(cat "$work/err")"
[ "$(exit_code "$fleet" answer T2.e1 "Or not." --run person)" = 5 ] || fail "rung 5: answered twice"
[ "$(exit_code "$fleet" run --run person)" = 0 ] || fail "rung 5, answered: $(tail -n 3 "$work/out") $(cat "$work/err")"
sound person
echo "ok: every rung was climbed"
