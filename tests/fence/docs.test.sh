#!/usr/bin/env bash
# Each top folder has a README of one page, and the files that documents and comments name exist.
. "$ROOT/tests/common/tap.sh"
cd "$ROOT" || exit 1
for folder in pipeline sharding monitoring stages jobs tests; do
  check "$folder/README.md is there, of one page" [ "$(wc -l <$folder/README.md)" -le 70 ]
done

links() { grep -noE '\]\([^)#]+' "$1" | sed 's/\](//' | grep -v ':http'; }
# `folder/file.ext` in documents; folder/file.md anywhere
named() { grep -noE '`[a-z_]+/[a-zA-Z0-9_./*-]+\.(md|c|h|def|yaml|sh|inc)`' "$1" | tr -d '`'; }
mentioned() { grep -rnoE '[a-z_]+/[a-zA-Z0-9_./-]+\.md' pipeline sharding monitoring stages jobs --include=*.[ch] --include=*.inc \
  --include=*.def --include=*.sh --include=*.yaml; }
exists() { # exists FILE PATH: from the root, beside the document, or in the folder the document is about
  local place
  for place in . "$(dirname "$1")" pipeline stages stages/model; do
    compgen -G "$place/$2" >/dev/null && return
  done
  return 1
}
missing=$(mktemp)
for file in README.md */README.md pipeline/docs/*.md pipeline/docs/decisions/*.md; do
  { links "$file"; named "$file"; } | while IFS=: read -r line path; do
    exists "$file" "$path" || echo "$file:$line: $path"
  done
done >"$missing"
mentioned | while IFS=: read -r file line path; do
  exists "$file" "$path" || echo "$file:$line: $path"
done >>"$missing"
if [ -s "$missing" ]; then not_ok "what is named exists" "$missing"; else ok "what is named exists"; fi
rm -f "$missing"
finish
