cd / || exit 1
[ "$(sh "$1" 'Ann  Lee')" = "Hello, Ann  Lee." ] && echo "ok spaces" || echo "not ok spaces"
[ "$(sh "$1" '*')" = "Hello, *." ] && echo "ok star" || echo "not ok star"
