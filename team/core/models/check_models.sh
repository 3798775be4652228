#!/usr/bin/env bash
# Checks the protocol models with Spin, exhaustively, and prints how many states each has.
set -euo pipefail
models=$(cd "$(dirname "$0")" && pwd)
if ! command -v spin >/dev/null; then
  echo "check_models: spin is not installed; install the package 'spin'" >&2
  exit 5
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for model in "$models"/*.pml; do
  name=$(basename "$model" .pml)
  spin -a "$model" >spin.out 2>&1 || { cat spin.out; echo "not ok $name cannot be read"; exit 1; }
  claim=$(sed -n 's/^ltl \([a-z_]*\).*/\1/p' "$model")
  gcc -O1 -w -o pan pan.c
  # Assertions and dead ends on all states, then the liveness or safety claim under weak fairness.
  gcc -O1 -w -DSAFETY -DNOCLAIM -o pan_safe pan.c
  ./pan_safe -m1000000 >safe.out
  ./pan -a -f -m1000000 >live.out
  for out in safe.out live.out; do
    if ! grep -q 'errors: 0' $out || grep -q 'max search depth too small' $out; then
      cat $out
      echo "not ok $name"
      exit 1
    fi
  done
  states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' safe.out | head -n 1)
  echo "ok $name  $states states, no error; claim '$claim' holds"
done

# A model that cannot fail proves nothing: each of these breaks must be found.
broken() {
  local name=$1 edit=$2
  sed "$edit" "$models/$name.pml" >broken.pml
  cmp -s broken.pml "$models/$name.pml" && { echo "not ok $name: the edit changes nothing"; exit 1; }
  spin -a broken.pml >spin.out 2>&1
  gcc -O1 -w -DSAFETY -DNOCLAIM -o pan_broken pan.c
  ./pan_broken -m1000000 >broken.out
  if grep -q 'errors: 0' broken.out; then
    echo "not ok $name-broken: Spin does not notice: $edit"
    exit 1
  fi
  echo "ok $name-broken  noticed"
}
broken lease 's/leased && token\[me\] == fence/leased/'
broken effect 's/external_done == 0 -> external_done++/true -> external_done++/'
broken merge 's/ok = ok \&\& !bad\[i\]/ok = true/'
