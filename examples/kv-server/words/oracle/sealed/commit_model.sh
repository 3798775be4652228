# C3: the commit protocol as the design models it, against every order of steps and crashes.
cd /tmp || exit 1
cp /sealed/commit_check.pml /product/model/commit.pml . 2>/dev/null ||
  { echo "not ok no-acknowledged-write-lost there is no model/commit.pml"; echo "not ok a-wrong-order-is-found"; exit; }
# explore NAME FLAG: prints what the search found.
explore() {
  mkdir "$1" && cp ./*.pml "$1" && cd "$1" || exit 1
  spin $2 -a commit_check.pml >spin.out 2>&1 && gcc -O0 -DSAFETY -o pan pan.c 2>>spin.out && ./pan -m100000
  cat spin.out
  cd ..
}
right=$(explore right "")
wrong=$(explore wrong -DWRONG)
if grep -q 'errors: 0' <<<"$right" && ! grep -q 'max search depth too small' <<<"$right"; then
  echo "ok no-acknowledged-write-lost"
else
  echo "not ok no-acknowledged-write-lost $(grep -m1 -E 'assertion|rror' <<<"$right")"
fi
grep -q 'assertion violated' <<<"$wrong" && echo "ok a-wrong-order-is-found" ||
  echo "not ok a-wrong-order-is-found the search does not notice a reply before the sync"
awk '/states, stored/ { print "metric states", $1 + 0; exit }' <<<"$right"
