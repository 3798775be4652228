#!/bin/sh
# Builds build/kvd from src/*.cc. CXXFLAGS are added at the end. Same sources, same bytes.
set -eu
mkdir -p build/objects
rm -f build/kvd build/objects/*
failed=0
pids=
for source in src/*.cc; do
  [ -e "$source" ] || continue
  g++ -std=c++20 -O1 -Wall -Wextra -Werror ${CXXFLAGS:-} -c "$source" \
    -o "build/objects/$(basename "$source" .cc).o" &
  pids="$pids $!"
done
for pid in $pids; do wait "$pid" || failed=1; done
[ $failed -eq 0 ] || exit 1
[ -e src/server.cc ] || exit 0
g++ ${CXXFLAGS:-} build/objects/*.o -o build/kvd
