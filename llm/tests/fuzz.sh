#!/bin/sh
# Fuzzes what FleetLM reads from strangers (model files, tokenizers, templates, schemas, requests, raw
# connections) for SECONDS each (60 unless given), under the address and undefined-behaviour
# sanitizers: llm/tests/fuzz.sh [SECONDS [TARGET...]]. Findings lie in build/fuzz/findings.
set -eu
seconds=${1:-60}
[ $# -eq 0 ] || shift
cd "$(dirname "$0")/../.."
targets=${*:-gguf_fuzz safetensors_fuzz hf_folder_fuzz tokenizer_json_fuzz chat_fuzz json_schema_fuzz server_fuzz connection_fuzz}
cmake --preset fuzz -DFLEET_PARTS=llm -DFLEET_TESTS=ON > /dev/null
# shellcheck disable=SC2086
cmake --build --preset fuzz -j2 --target llm_fuzz_seeds $targets > build/fuzz/build.log
build/fuzz/bin/llm_fuzz_seeds build/fuzz/corpus
mkdir -p build/fuzz/findings
failed=0
for target in $targets; do
  mkdir -p "build/fuzz/corpus/$target"
  program=$(find build/fuzz -type f -name "$target" -perm -u+x | head -n 1)
  checked_in=$(find llm -type d -name "$target.corpus")
  # A server's threads hold memory between inputs, for which libFuzzer would look for leaks each time.
  leaks=1
  case $target in server_fuzz | connection_fuzz) leaks=0 ;; esac
  if "$program" -detect_leaks=$leaks -max_total_time="$seconds" -max_len=16384 -timeout=20 -rss_limit_mb=3072 \
      -artifact_prefix="build/fuzz/findings/$target-" "build/fuzz/corpus/$target" $checked_in \
      > "build/fuzz/$target.log" 2>&1; then
    echo "$target: $(grep -E '^Done|DONE' "build/fuzz/$target.log" | tail -n 1)"
  else
    echo "$target: FOUND SOMETHING, see build/fuzz/$target.log"
    failed=1
  fi
done
exit $failed
