out=$(sh "$1")
status=$?
case $out in usage:*) echo "ok line" ;; *) echo "not ok line" ;; esac
[ $status -eq 2 ] && echo "ok status" || echo "not ok status"
