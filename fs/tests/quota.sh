#!/bin/sh
# A quota stays with its workspace, holds in a running mount at once, and refuses with the errors
# that programs know: ENOSPC for bytes, EDQUOT for files.
set -eu
agentfs=${FLEET_BUILD:-build/dev}/bin/agentfs
[ -w /dev/fuse ] || { echo "skipped: no /dev/fuse"; exit 0; }
place=$(mktemp -d)
trap 'umount -l "$place/mnt" 2>/dev/null || true; rm -rf "$place"' EXIT
fail() { echo "quota: $1" >&2; exit 1; }
says() { echo "$1" | grep -q "$2" || fail "'$1' does not say '$2'"; }

mkdir "$place/mnt"
"$agentfs" format "$place/store" > /dev/null
says "$("$agentfs" quota "$place/store")" "inodes  1 of no limit"
"$agentfs" quota "$place/store" --bytes 100000 > /dev/null
"$agentfs" mount "$place/store" "$place/mnt"
head -c 60000 /dev/zero > "$place/mnt/a"
says "$(head -c 60000 /dev/zero 2>&1 > "$place/mnt/b" && sync "$place/mnt/b" || true
  cp "$place/mnt/a" "$place/mnt/c" 2>&1 || true)" "No space left"
rm "$place/mnt/b" "$place/mnt/c"
head -c 30000 /dev/zero > "$place/mnt/b" || fail "what fits is refused"
"$agentfs" quota "$place/store" --inodes 4 > /dev/null
touch "$place/mnt/d"
says "$(touch "$place/mnt/e" 2>&1 || true)" "quota exceeded"
"$agentfs" umount "$place/mnt"
says "$("$agentfs" quota "$place/store")" "bytes   90000 of 100000"
says "$("$agentfs" quota "$place/store" --bytes 0)" "bytes   90000 of no limit"
"$agentfs" mount "$place/store" "$place/mnt"
head -c 300000 /dev/zero > "$place/mnt/b" || fail "the limit is still there"
says "$(mkdir "$place/mnt/e" 2>&1 || true)" "quota exceeded"
"$agentfs" umount "$place/mnt"
"$agentfs" fsck "$place/store" > /dev/null
echo "quota: ok"
