# The ward of the demo: every room of the house must be finished.
status=0
for room in rooms/*.txt; do
  [ -e "$room" ] || continue
  if grep -q TODO "$room"; then
    echo "$room:1:1: error: there is still something TODO in it" >&2
    status=1
  fi
done
exit $status
