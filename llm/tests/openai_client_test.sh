#!/bin/sh
# Starts fleetlm serve on a real model and lets the official openai npm client talk to it.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${FLEET_BUILD:-$root/build/dev}
model=$("$root"/llm/tests/fetch_smollm2.sh)
home=$root/build/oracles/openai
mkdir -p "$home"
[ -d "$home/node_modules/openai" ] || (cd "$home" && npm install --silent --no-audit --no-fund openai@6 >&2)
cp "$root"/llm/tests/openai_client.mjs "$home"/client.mjs
log=$home/serve.log
"$build"/bin/fleetlm serve "$model" --port 0 --api-key test-key >"$log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
for _ in $(seq 100); do
  url=$(sed -n 's/.* at \(http[^ ]*\).*/\1/p' "$log")
  [ -n "$url" ] && break
  sleep 0.2
done
BASE_URL=$url/v1 API_KEY=test-key node "$home"/client.mjs
kill -TERM $server
wait $server
