# C6: the log cannot grow any more (the runner limits file sizes); refuse, keep what was acknowledged.
. "$(dirname "$0")/lib.sh"
cd /tmp || exit 1
value=$(printf '%01000d' 7)
for ((i = 0; i < 400; i++)); do echo "SET full$i $value"; done | cli >answers
kept=$(grep -c '^OK' answers)
grep -q '^ERR\|^MISCONF' answers; verdict refused $? "400 kB were accepted into a file of 256 kB"
expect serves PONG PING
check() { for ((i = 0; i < kept; i++)); do echo "EXISTS full$i"; done | cli | grep -c '^1'; }
[ "$(check)" = "$kept" ]; verdict readable $? "acknowledged writes cannot be read"
control kill
control start; verdict restarts $? "it does not start on a full disk"
[ "$(check)" = "$kept" ]; verdict kept $? "of $kept acknowledged writes some are lost"
