# C2: many commands at once and commands in pieces; replies in order.
. "$(dirname "$0")/lib.sh"
pipe() { timeout 10 redis-cli -s "$sock" --pipe 2>&1 | tail -n 1; }
bulk() { printf '*%d\r\n' $#; for word in "$@"; do printf '$%d\r\n%s\r\n' ${#word} "$word"; done; }
got=$(for ((i = 0; i < 200; i++)); do bulk INCR counter; done | pipe)
[ "$got" = "errors: 0, replies: 200" ]; verdict burst $? "got '$got'"
expect burst-counted 200 GET counter
got=$({ printf '*3\r\n$3\r\nSE'; sleep 0.05; printf 'T\r\n$5\r\nspl'; sleep 0.05; printf 'it\r\n$2\r\nok\r\n'; } | pipe)
[ "$got" = "errors: 0, replies: 1" ]; verdict pieces $? "got '$got'"
expect pieces-stored ok GET split
got=$(printf 'SET inl 5\r\nGET inl\r\n' | pipe)
[ "$got" = "errors: 0, replies: 2" ]; verdict inline $? "got '$got'"
