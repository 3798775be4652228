#!/bin/sh
if [ $# -eq 0 ]; then
  cat "$(dirname "$0")/usage.txt"
  exit 2
fi
echo Hello, $1.
