# C1: random commands to the product and to a real Redis; every line of the answers must be the same.
. "$(dirname "$0")/lib.sh"
cd /tmp || exit 1
oracle=/tmp/oracle.sock
redis-server --port 0 --unixsocket "$oracle" --save '' --appendonly no --dir /tmp >redis.log 2>&1 &
redis=$!
trap 'kill $redis || true' EXIT
for ((tick = 0; tick < 100; tick++)); do redis-cli -s "$oracle" PING >/dev/null 2>&1 && break; sleep 0.05; done
# commands KIND: the same ones each time.
commands() {
  awk -v kind="$1" -v seed="${#1}" '
    function any(list,   words, n) { n = split(list, words, ","); return words[int(rand() * n) + 1] }
    function key() { return any("a,b,c,d,e,key:with:colons,0") }
    function text() { return any("x,hello,\"two words\",\"tab\\there\",\"new\\nline\",\"\",\"\\xff\\x00\",longer-value-0123456789") }
    function number() { return any("0,1,-1,41,-7,007,-0,+5,1.5,9223372036854775806,9223372036854775807,9223372036854775808,\" 3\"") }
    function noun() { return any("PING,ECHO,SET,GET,DEL,EXISTS,INCR,DBSIZE,ping,Get") }
    BEGIN {
      srand(seed)
      for (i = 0; i < 150; i++) {
        if (kind == "strings") print any("SET " key() " " text() ",GET " key() ",DEL " key() " " key() ",EXISTS " key() " " key() " " key() ",DBSIZE,ECHO " text())
        if (kind == "counters") print any("SET " key() " " number() ",INCR " key() ",INCR " key() ",GET " key())
        if (kind == "arguments") { line = noun(); for (n = int(rand() * 4); n > 0; n--) line = line " " key(); print line }
      }
    }'
}
for kind in strings counters arguments; do
  commands "$kind" >"$kind"
  redis-cli -s "$oracle" FLUSHALL >/dev/null
  cli DEL a b c d e key:with:colons 0 >/dev/null
  redis-cli -s "$oracle" <"$kind" >"$kind.redis" 2>&1
  cli <"$kind" >"$kind.kvd"
  if [ -s "$kind.redis" ] && cmp -s "$kind.redis" "$kind.kvd"; then echo "ok $kind"; else
    echo "not ok $kind $(diff "$kind.redis" "$kind.kvd" | head -n 3 | tr '\n' ' ')"
  fi
done
