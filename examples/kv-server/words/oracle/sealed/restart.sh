# C4: what was stored is there after a restart, what was deleted is not.
. "$(dirname "$0")/lib.sh"
for ((i = 0; i < 40; i++)); do echo "SET key$i value$i"; done | cli >/dev/null
cli DEL key3 key7 >/dev/null
cli INCR visits >/dev/null
cli INCR visits >/dev/null
control kill
control start
expect stored value39 GET key39
expect deleted 0 EXISTS key3 key7
expect counted 2 GET visits
expect all 39 DBSIZE
cli SET after restart >/dev/null
control stop
control start
expect again restart GET after
