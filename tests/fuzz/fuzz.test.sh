# Every fuzz target on its seeds and half a second of changed ones (R-SFT-1, R-ZST-1, R-TOK-1); make
# soak-fuzz goes on for longer.
. "$ROOT/tests/common/tap.sh"

for source in "$ROOT"/tests/fuzz/*.c; do
  target=$(basename "$source" .c)
  [ "$target" = driver ] && continue
  "$OUT/tests/fuzz/$target" -seconds="${FUZZ_SECONDS:-0.5}" >output 2>&1
  check "fuzz target $target holds its laws" [ $? -eq 0 ]
done
finish
