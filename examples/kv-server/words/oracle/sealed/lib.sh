# Shared by the checkers: a real redis-cli against the product's socket, and the runner's control lines.
sock=$1
cli() { redis-cli -s "$sock" "$@" 2>&1; }
# expect ID WANTED COMMAND...
expect() {
  local id=$1 want=$2 got
  shift 2
  got=$(cli "$@")
  if [ "$got" = "$want" ]; then echo "ok $id"; else echo "not ok $id wanted '$want', got '${got:0:90}'"; fi
}
# control kill | start | stop: the runner answers with one line.
control() {
  local answer
  echo "@$1"
  read -r answer
  [ "${answer%% *}" = ok ]
}
# verdict ID STATUS REASON
verdict() { if [ "$2" -eq 0 ]; then echo "ok $1"; else echo "not ok $1 $3"; fi; }
