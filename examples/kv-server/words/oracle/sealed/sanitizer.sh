# C5: a build in which any undefined behaviour ends the program; whatever comes, it must go on serving.
. "$(dirname "$0")/lib.sh"
send() { timeout 0.4 redis-cli -s "$sock" --pipe >/dev/null 2>&1; }
expect starts PONG PING
for ((i = 0; i < 60; i++)); do echo "SET s$((i % 9)) $i"; echo "INCR n"; echo "DEL s$((i % 5)) s$((i % 7))"; echo "GET s$i"; done | cli >/dev/null
expect commands 60 GET n
printf '*2\r\n$4\r\nEC' | send
printf '*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$900\r\nshort' | send
expect pieces PONG PING
for bad in '*abc' '*2\r\n$abc' '*99999999999' '*1\r\n$99999999999' '*1\r\n+OK' '*1\r\n$3\r\nabcXY'; do printf "$bad\r\n" | send; done
awk 'BEGIN { srand(11); for (i = 0; i < 4000; i++) printf "%c", int(rand() * 255) + 1 }' | send
expect noise PONG PING
control kill
control start
expect restart 60 GET n
