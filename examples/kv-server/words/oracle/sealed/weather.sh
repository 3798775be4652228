# C2: the same promises over a bad connection and a slow disk.
. "$(dirname "$0")/lib.sh"
faulty=${sock%/*}/faulty
far() { timeout 20 redis-cli -s "$faulty" "$@" 2>&1; }
control "net chop"
[ "$(far SET w:chop 1)" = OK ] && [ "$(far GET w:chop)" = 1 ]; verdict chopped $? "commands in single bytes are not understood"
control "net delay 40"
[ "$(far GET w:chop)" = 1 ]; verdict late $? "a late packet is not waited for"
control "net loss 30"
got=$(for ((i = 0; i < 12; i++)); do echo "INCR w:lossy"; done | far | tail -n 1)
[ "$got" = 12 ]; verdict lossy $? "got '$got' after twelve increments"
control "net cut 5"
far SET w:cut 1 >/dev/null
control "net ok"
[ "$(far EXISTS w:cut)" = 0 ] && [ "$(cli GET w:lossy)" = 12 ]; verdict cut $? "half a command had an effect"
control stop
control "disk slow 30"
control start
[ "$(cli SET w:slow 1)" = OK ]; verdict slow-disk $? "it gives up on a slow disk"
control "disk ok"
control kill
control start
[ "$(cli GET w:slow)" = 1 ]; verdict kept $? "a write on a slow disk is lost"
