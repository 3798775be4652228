#!/usr/bin/env bash
# Production reopens three decisions of the key-value server's design. One is changed: a task follows, a second
# version is compared with the first and replaces it. One is changed but nobody can do the work: it is
# what it was. One gets no usable answer: it stands as it was. The answers that are refused say why.
. "$(dirname "$0")/lib.sh"
command -v redis-cli >/dev/null || fail "redis-cli is missing; install redis-tools"
command -v python3 >/dev/null || fail "python3 is missing"
root=$(cd "$(dirname "$0")/../../.." && pwd)
cp -r "$root/examples/kv-server" "$work/kv-server"
python3 - "$work/kv-server" <<'PY'
import json, sys
folder = sys.argv[1]

def change(path, edit):
    data = json.load(open(folder + "/" + path))
    edit(data)
    json.dump(data, open(folder + "/" + path, "w"))

def wanted(design):
    design["decisions"] = [
        {"id": "D1", "question": "How large is a read?", "options": ["64 KiB", "256 KiB"], "choice": "64 KiB",
         "why": "enough", "trigger": "memory above 1 kB"},
        {"id": "D2", "question": "Which allocator?", "options": ["libc's", "an arena"], "choice": "libc's",
         "why": "it is there", "trigger": "answers above 0"},
        {"id": "D3", "question": "A standby?", "options": ["none", "one"], "choice": "none", "why": "simple",
         "trigger": "restarts above 0"}]

def tool(name, **arguments):
    return {"name": name, "arguments": arguments}

def document(task, turn, said):
    return {"when": {"task": task, "turn": turn},
            "reply": {"tools": [tool("write", path="decision.json", content=json.dumps(said))]}}

def say(task, turn, *tools):
    return {"when": {"task": task, "turn": turn}, "reply": {"tools": list(tools)}}

def done(task, turn):
    return say(task, turn, tool("submit", summary="done"))

patch = open(folder + "/words/X2/read_buffer.patch").read()
review = open(folder + "/words/review_ok.json").read()
rules = [
    # D1: first an option that is none, then another choice with its work.
    {"when": {"task": "D1-again", "turn": 0, "any": "Attempt: 2\\b"},
     "reply": {"tools": [tool("write", path="decision.json", content=json.dumps(
         {"choice": "256 KiB", "why": "fewer calls", "trigger": "memory above 64 MB",
          "work": {"title": "Read 256 KiB at once", "brief": "Change Server::read_from."}}))]}},
    document("D1-again", 0, {"choice": "1 GiB", "why": "more", "trigger": "never"}), done("D1-again", 1),
    say("T-D1", 0, tool("patch", patch=patch)), done("T-D1", 1),
    say("T-D1-review", 0, tool("write", path="review.json", content=review)), done("T-D1-review", 1),
    # D2: another choice, whose work nobody can do.
    document("D2-again", 0, {"choice": "an arena", "why": "faster", "trigger": "never",
                             "work": {"title": "An arena", "brief": "Write one."}}), done("D2-again", 1),
    # D3: kept with a trigger that fires at once again, both times.
    document("D3-again", 0, {"choice": "none", "why": "simple", "trigger": "restarts above 0"}),
    done("D3-again", 1)]

change("words/design/design.json", wanted)
change("words/spec2.json", lambda spec: spec["interface"].update(experiments_max=0))
change("words/faults.json", lambda f: f.update(faults=[x for x in f["faults"] if x["id"] in ("F1", "F6")]))
change("team.json", lambda script: script.update(rules=rules + script["rules"]))
PY
"$fleet" new --example "$work/kv-server" --run job >/dev/null
sed -i "s/\"port\": 7379/\"port\": $((20000 + RANDOM % 20000))/; s/\"attempts_max\": [0-9]*/\"attempts_max\": 2/" "$FLEET_HOME/runs/job/run.json"
[ "$(exit_code "$fleet" run --run job)" = 0 ] || fail "the run: $(tail -n 20 "$work/out") $(cat "$work/err")"
saw() { grep -qE "$1" "$work/out" || fail "the viewer did not see: $1: $(grep -n ' D[0-9] ' "$work/out")"; }
saw 'D1 +open again: memory was .* above'
saw 'D1 +changed: 256 KiB'
saw 'T-D1 +merged as'
saw 'D2 +changed: an arena'
saw 'D2 +open again: T-D2 was given up'
saw "D2 +changed: libc's"
saw 'D3 +kept: none +\(reopens when restarts above 0\)'
saw 'A2 +released'
events() { ask job "SELECT count(*) FROM event WHERE $1"; }
[ "$(events "type = 'attempt.created' AND stream = 'D1-again.a2'")" = 1 ] || fail "an option that is none was taken"
[ "$(events "type = 'attempt.created' AND stream = 'D3-again.a2'")" = 1 ] || fail "a trigger that fires at once was taken"
[ "$(events "type = 'artifact.retired' AND body LIKE '%\"A1\"%'")" = 1 ] || fail "A1 still counts as released"
[ "$(events "type = 'task.abandoned' AND body LIKE '%T-D2%'")" = 1 ] || fail "T-D2 is not abandoned"
[ "$(events "type = 'decision.revisited'")" = 4 ] || fail "not each decision was reopened once, and D2 again"
"$fleet" why D1 --run job >"$work/why"
grep -q '256 KiB' "$work/why" || fail "fleet why does not tell: $(cat "$work/why")"
grep -q 'reopened and changed' "$FLEET_HOME/runs/job/report.html" || fail "the report does not show the change"
"$fleet" replay --run job >/dev/null || fail "it does not replay"
"$fleet" ledger verify --run job >/dev/null || fail "the ledger is damaged"
echo "ok: decisions are decided again"
