# C4, held out: bytes that a careless log would trip over, through a restart.
. "$(dirname "$0")/../lib.sh"
cd /tmp || exit 1
printf 'one\ntwo\n' >newline
printf 'left\tright' >tab
printf 'a\r\nb' >crlf
printf '' >empty
printf 'x\0y\0' >nul
printf '\377\376\001' >high
printf 'plain' >plain
for name in newline tab crlf empty nul high plain; do cli -x SET "k:$name" <"$name" >/dev/null; done
cli SET 'key with spaces' s >/dev/null
control kill
control start
for name in newline tab crlf empty nul high plain; do
  cli GET "k:$name" >got
  { cat "$name"; echo; } | cmp -s - got
  verdict "$name" $? "the bytes changed"
done
expect spaces s GET 'key with spaces'
