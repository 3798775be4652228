# Every shell script of the repository parses.
cd /product || exit 1
while IFS= read -r script; do
  name=${script#./}
  if problem=$(bash -n "$script" 2>&1); then echo "ok $name"; else echo "not ok $name $problem"; fi
done < <({ find . -name '*.sh' -type f; grep -rlIE '^#!.*\b(ba)?sh$' --include='*' run test tools .ci 2>/dev/null | sed 's|^|./|'; } | sort -u)
