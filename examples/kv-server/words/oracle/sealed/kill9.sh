# C3: SIGKILL while four clients write; every write that was answered with OK must be there afterwards.
. "$(dirname "$0")/lib.sh"
cd /tmp || exit 1
for round in 1 2 3; do
  writers=()
  for client in 1 2 3 4; do
    for ((i = 0; i < 20000; i++)); do echo "SET r$round-c$client-$i v$i"; done |
      redis-cli -s "$sock" >"acks-$client" 2>/dev/null &
    writers+=($!)
  done
  # A hundred answers first, however slow the machine is; then strike at a moment nobody chose.
  for ((tick = 0; tick < 40; tick++)); do
    [ "$(cat acks-? | wc -l)" -ge 120 ] && break
    sleep 0.08
  done
  sleep "0.$((RANDOM % 20 + 10))"
  control kill
  kill "${writers[@]}" 2>/dev/null
  wait "${writers[@]}" 2>/dev/null
  control start || { echo "not ok round-$round the server did not come back"; continue; }
  acknowledged=0
  lost=0
  for client in 1 2 3 4; do
    count=$(grep -c '^OK' "acks-$client")
    acknowledged=$((acknowledged + count))
    bad=$(for ((i = 0; i < count; i++)); do echo "GET r$round-c$client-$i"; done |
      redis-cli -s "$sock" 2>&1 | awk '$0 != "v" (NR - 1) { bad++ } END { print bad + 0 }')
    lost=$((lost + bad))
  done
  echo "metric acknowledged_$round $acknowledged"
  [ "$acknowledged" -gt 0 ] && [ "$lost" -eq 0 ]
  verdict "round-$round" $? "$lost of $acknowledged acknowledged writes are lost"
done
