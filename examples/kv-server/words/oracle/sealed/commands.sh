# C1: the commands, as a real redis-cli sees them.
. "$(dirname "$0")/lib.sh"
expect ping PONG PING
expect ping-text hello PING hello
expect echo 'two words' ECHO 'two words'
expect set OK SET a 1
expect get 1 GET a
expect get-missing '' GET nothing
cli SET a 2 >/dev/null
expect overwrite 2 GET a
cli SET b x >/dev/null
expect exists 2 EXISTS a b missing
expect dbsize 2 DBSIZE
expect del 2 DEL a b missing
expect del-gone 0 EXISTS a
expect incr-new 1 INCR n
expect incr 2 INCR n
cli SET text abc >/dev/null
expect incr-text 'ERR value is not an integer or out of range' INCR text
expect any-case OK sEt c 3
expect arity "ERR wrong number of arguments for 'get' command" GET
got=$(cli NOSUCH thing)
case $got in "ERR unknown command 'NOSUCH'"*) echo "ok unknown" ;; *) echo "not ok unknown got '$got'" ;; esac
