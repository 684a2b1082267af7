#!/usr/bin/env bash
# `make help` lists every target.
. "$ROOT/tests/common/tap.sh"
make -C "$ROOT" --no-print-directory help >output
for target in $(sed -n 's/^\.PHONY: *//p' "$ROOT/Makefile"); do
  [ "$target" = FORCE ] || check "$target is listed with what it does" grep -qE "^  make $target +[a-z]" output
done
finish
