# Writes a second with 24 clients, measured by redis-benchmark. Measures, does not judge.
. "$(dirname "$0")/lib.sh"
rps=$(redis-benchmark -s "$sock" -t set -n 600 -c 24 -d 32 --csv 2>/dev/null | awk -F'"' '/^"SET"/ { print $4 }')
[ -n "$rps" ]; verdict measured $? "redis-benchmark said nothing"
echo "metric rps $rps"
