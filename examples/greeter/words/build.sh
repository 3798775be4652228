#!/bin/sh
set -eu
mkdir -p build
[ ! -e src/greet.sh ] || cp src/greet.sh build/greet
[ ! -e src/usage.txt ] || cp src/usage.txt build/usage.txt
