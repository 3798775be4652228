# C5: input that is not the protocol; the server must go on serving others.
. "$(dirname "$0")/lib.sh"
send() { timeout 0.4 redis-cli -s "$sock" --pipe >/dev/null 2>&1; }
alive() { expect "$1" PONG PING; }
printf 'GARBAGE \001\002\003\r\n' | send; alive garbage
printf '*abc\r\n' | send; alive bad-count
printf '*2\r\n$abc\r\n' | send; alive bad-length
printf '*99999999999\r\n' | send; alive huge-count
printf '*1\r\n$99999999999\r\n' | send; alive huge-length
printf '*1\r\n+OK\r\n' | send; alive wrong-type
printf '*1\r\n$3\r\nabcXY' | send; alive no-crlf
printf '\r\n\r\n' | send; alive empty-lines
awk 'BEGIN { srand(7); for (i = 0; i < 4000; i++) printf "%c", int(rand() * 255) + 1 }' | send; alive noise
