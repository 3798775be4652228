#!/usr/bin/env bash
# The two minutes of fs/README.md, command by command, with what each must do. Shows the real output, so
# that the README can be checked against it.
set -euo pipefail

build=$(cd "${FLEET_BUILD:-build/release}" && pwd)
export PATH=$build/bin:$PATH
if [ ! -w /dev/fuse ]; then
  echo "start: skipped, this machine cannot mount FUSE"
  exit 0
fi
scratch=$(mktemp -d)
finish() {
  for folder in work one; do agentfs umount --lazy "$scratch/$folder" 2>/dev/null || true; done
  rm -rf "$scratch"
}
trap finish EXIT
cd "$scratch"
export HOME=$scratch GIT_CONFIG_NOSYSTEM=1

fail() { echo "start: FAILED: $*" >&2; exit 1; }
run() { echo "\$ $*"; "$@"; }

git init -q -b main project
for i in $(seq 200); do mkdir -p "project/src/d$((i % 9))"; echo "line $i" >"project/src/d$((i % 9))/f$i"; done
git -C project add -A
git -C project -c user.name=a -c user.email=a@example.org commit -qm first

run agentfs format store
mkdir work one
run agentfs mount store work
run git clone -q project work/project
# git takes a file for changed when it is as young as the index, by the second.
sleep 1.1
git -C work/project status --short
run agentfs fork store main agent-1
run agentfs mount store one -w agent-1
command -v strace >/dev/null || fail "strace is not installed; tools/setup test installs it"
reads=$(strace -f -e trace=openat git -C one/project status --short 2>&1 | grep -c '"src/d./f' || true)
[ "$reads" = 0 ] || fail "git status in a fork read $reads files again"
echo hello >one/project/NOTES
run agentfs umount one
out=$(run agentfs diff store main agent-1 | tee /dev/stderr)
grep -q "^A /project/NOTES$" <<<"$out" || fail "diff does not show the new file"
run agentfs snapshot store main@good
run rm -rf work/project
run agentfs umount work
run agentfs rollback store main@good
run agentfs mount store work
[ -z "$(git -C work/project status --short)" ] || fail "rollback did not bring the clone back"
run agentfs umount work
run agentfs log store agent-1 | tail -n 1
run agentfs sql store "select op, count(*), sum(bytes) from fs_event group by 1 order by 2 desc limit 3"
[ "$(agentfs sql store "select count(*) from fs_event where op = 'mkdir' and path = '/project'")" = 1 ] ||
  fail "the audit trail does not know the folder"
[ "$(agentfs --json list store | python3 -c 'import json,sys; print(len(json.load(sys.stdin)))')" = 2 ] ||
  fail "list --json does not show two workspaces"
run agentfs gc store
run agentfs fsck store
out=$(agentfs mount store "$scratch/none" 2>&1) && fail "mounting on a missing folder succeeded"
grep -q "^agentfs: " <<<"$out" || fail "an error must be one sentence: $out"
echo "1 passed, 0 failed"
