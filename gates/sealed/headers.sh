# The pure core: each header compiles on its own and includes nothing that does I/O.
cd /product || exit 1
for header in team/core/*.h; do
  name=$(basename "$header" .h)
  if grep -qE '#include <(fstream|iostream|sys/|unistd|thread|chrono|filesystem)' "$header" "${header%.h}.cc" 2>/dev/null; then
    echo "not ok $name does I/O, takes time or starts threads"
  elif problem=$(echo "#include \"$header\"" | g++ -std=gnu++20 -Wall -Wextra -Werror -I. -fsyntax-only -x c++ - 2>&1); then
    echo "ok $name"
  else
    echo "not ok $name $(head -n 1 <<<"$problem")"
  fi
done
