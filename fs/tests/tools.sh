#!/usr/bin/env bash
# The tools that agents live on, on a mount: git, sqlite in both journal modes, cmake, pip, npm.
# Usage: fs/tests/tools.sh [FOLDER]   (without one it mounts a workspace of its own)
# Every check compares with what the same tool says elsewhere, or with the tool's own check.
set -euo pipefail

agentfs=${FLEET_BUILD:-build/release}/bin/agentfs
scratch=$(mktemp -d)
mounted=
finish() {
  if [ -n "$mounted" ]; then "$agentfs" umount --lazy "$mounted" || true; fi
  rm -rf "$scratch"
}
trap finish EXIT

if [ $# -gt 0 ]; then
  root=$1/tools.$$
  mkdir "$root"
else
  if [ ! -w /dev/fuse ]; then
    echo "tools: skipped, this machine cannot mount FUSE"
    exit 0
  fi
  mkdir "$scratch/mnt"
  if "$agentfs" format "$scratch/store" >"$scratch/format.log" 2>&1; then
    "$agentfs" mount "$scratch/store" "$scratch/mnt"
  else
    "$agentfs" mount --memory "$scratch/mnt"
  fi
  mounted=$scratch/mnt
  root=$scratch/mnt/tools
  mkdir "$root"
fi
export HOME=$scratch GIT_CONFIG_NOSYSTEM=1
git config --global user.name Tester
git config --global user.email tester@example.org
git config --global init.defaultBranch main
git config --global advice.detachedHead false

fail() { echo "tools: FAILED: $*" >&2; exit 1; }
step() { echo "tools: $*"; }

step "git: commit, clone, branch, merge, rebase, stash, worktree, gc, fsck"
git init -q "$root/repo"
cd "$root/repo"
for d in $(seq 20); do
  mkdir -p "src/d$d"
  for f in $(seq 15); do echo "file $d $f" >"src/d$d/f$f.txt"; done
done
git add -A && git commit -qm "first"
git clone -q "$root/repo" "$root/clone"
cd "$root/clone"
[ "$(git ls-files | wc -l)" = 300 ] || fail "the clone misses files"
git checkout -q -b feature && echo changed >src/d1/f1.txt && git commit -qam "feature"
git checkout -q main && echo other >src/d2/f2.txt && git commit -qam "main"
git merge -q --no-edit feature
git checkout -q -b topic HEAD~1 && echo topic >src/d3/f3.txt && git commit -qam "topic"
git rebase -q main
echo dirty >src/d4/f4.txt
git stash -q && [ -z "$(git status --porcelain)" ] || fail "stash left changes"
git stash pop -q && [ "$(git status --porcelain)" = " M src/d4/f4.txt" ] || fail "stash pop"
git checkout -q . && git worktree add -q "$root/tree" main && git -C "$root/tree" status --porcelain
git gc -q && git fsck --full --strict 2>&1 | grep -vE "^(dangling|notice)" && fail "git fsck complains"
[ -z "$(git status --porcelain)" ] || fail "git status is not clean"
git mv src/d5 src/moved && git commit -qm "move" && git log --oneline --follow src/moved/f1.txt >"$scratch/follow"
rm -rf "$root/tree" && git worktree prune

step "sqlite: three writers at once, rollback journal and WAL"
for mode in delete wal; do
  db=$root/$mode.db
  sqlite3 "$db" "pragma journal_mode=$mode; create table t(writer int, n int);" >"$scratch/mode"
  for writer in 1 2 3; do
    (for n in $(seq 40); do
      echo "insert into t values($writer,$n);"
    done) | sqlite3 -cmd ".timeout 20000" "$db" &
  done
  wait
  [ "$(sqlite3 "$db" 'select count(*), count(distinct writer*1000+n) from t')" = "120|120" ] ||
    fail "sqlite $mode lost rows"
  [ "$(sqlite3 "$db" 'pragma integrity_check')" = ok ] || fail "sqlite $mode is corrupt"
done

if command -v cmake >/dev/null && command -v ninja >/dev/null; then
  step "cmake: configure, build, run, build again without work"
  mkdir "$root/c"
  cd "$root/c"
  printf 'cmake_minimum_required(VERSION 3.13)\nproject(t C)\nadd_library(a a.c)\nadd_executable(t t.c)\ntarget_link_libraries(t a)\n' >CMakeLists.txt
  echo 'int a(void) { return 42; }' >a.c
  echo 'int a(void); int main(void) { return a() == 42 ? 0 : 1; }' >t.c
  cmake -G Ninja -B out . >"$scratch/cmake.log"
  cmake --build out >>"$scratch/cmake.log"
  ./out/t || fail "the built program does not work"
  [[ $(cmake --build out) == *"no work to do"* ]] || fail "ninja builds again: time stamps are wrong"
  sleep 0.01
  echo '/* touched */' >>a.c
  [[ $(cmake --build out) == *Linking* ]] || fail "ninja does not see a change"
fi

if python3 -m pip --version >/dev/null 2>&1; then
  step "pip: install a wheel, import it, uninstall"
  cd "$root"
  python3 - "$scratch/demo-1.0-py3-none-any.whl" <<'PY'
import base64, hashlib, sys, zipfile
files = {f"demo/m{i}.py": f"value = {i}\n" for i in range(200)}
files["demo/__init__.py"] = ""
info = "demo-1.0.dist-info"
files[f"{info}/METADATA"] = "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"
files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
def digest(text):
    raw = hashlib.sha256(text.encode()).digest()
    return "sha256=" + base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
record = "".join(f"{n},{digest(t)},{len(t)}\n" for n, t in files.items()) + f"{info}/RECORD,,\n"
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    for name, text in files.items():
        wheel.writestr(name, text)
    wheel.writestr(f"{info}/RECORD", record)
PY
  python3 -m pip install -q --no-index --no-cache-dir --disable-pip-version-check \
    --root-user-action=ignore --target "$root/site" "$scratch/demo-1.0-py3-none-any.whl"
  [ "$(PYTHONPATH=$root/site python3 -c 'import demo.m7; print(demo.m7.value)')" = 7 ] ||
    fail "the installed package does not import"
fi

if command -v npm >/dev/null; then
  step "npm: ci from a lock file"
  mkdir "$scratch/dep" "$root/app"
  cd "$scratch/dep"
  echo '{"name":"dep","version":"1.0.0","main":"index.js"}' >package.json
  echo 'module.exports = 42;' >index.js
  for i in $(seq 100); do echo "module.exports = $i;" >"m$i.js"; done
  npm pack --silent --pack-destination "$root/app" >"$scratch/npm.log"
  cd "$root/app"
  echo '{"name":"app","version":"1.0.0","dependencies":{"dep":"file:dep-1.0.0.tgz"}}' >package.json
  npm install --silent --offline --no-audit --no-fund --package-lock-only
  npm ci --silent --offline --no-audit --no-fund
  [ "$(node -e 'console.log(require("dep") + require("dep/m58"))')" = 100 ] || fail "npm ci"
fi

step "rm -rf of everything"
cd /
rm -rf "$root"
[ ! -e "$root" ] || fail "something is left"
echo "1 passed, 0 failed"
