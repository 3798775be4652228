# I1: the server died of a length below zero.
. "$(dirname "$0")/lib.sh"
send() { timeout 0.4 redis-cli -s "$sock" --pipe >/dev/null 2>&1; }
printf '*1\r\n$-5\r\nabc\r\n' | send; expect minus-five PONG PING
printf '*1\r\n$-1\r\n' | send; expect minus-one PONG PING
printf '*-7\r\n' | send; expect negative-count PONG PING
