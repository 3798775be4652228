[ "$(sh "$1" Ann)" = "Hello, Ann." ] && echo "ok ann" || echo "not ok ann"
