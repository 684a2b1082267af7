#!/usr/bin/env bash
# Writes real English prose to the file named by the first argument: the descriptions of all Debian
# packages, as a package list (boundary: package). A file that is there already is kept.
#
# The long descriptions are in the translation lists of apt. Where the machine keeps none (container
# images often do not), they are fetched into a folder of our own with apt-get update; where that is
# not possible, the one-line synopses of `apt-cache dumpavail` must do.
set -u
out=${1:?usage: corpus.sh FILE}
[ -s "$out" ] && exit 0
part=$out.$$.part
lists=$(mktemp -d)
trap 'rm -rf "$lists" "$part"' EXIT
least=$((5 << 20)) # bytes; less is not a list of all packages

show() { # show FOLDER: the English translation lists in it, whatever their compression
  local file
  for file in "$1"/*_i18n_Translation-en*; do
    [ -f "$file" ] && /usr/lib/apt/apt-helper cat-file "$file" && echo
  done
}

enough() { [ "$(stat -c %s "$part" 2>/dev/null || echo 0)" -ge "$least" ]; }

mkdir -p "$(dirname "$out")" || exit 73
show /var/lib/apt/lists >"$part" 2>/dev/null
if ! enough; then
  mkdir -p "$lists/partial"
  apt-get -qq -o Acquire::Languages=en -o Dir::State::lists="$lists" -o Dir::Cache::pkgcache= \
    -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root update >/dev/null 2>&1
  show "$lists" >"$part" 2>/dev/null
fi
enough || apt-cache dumpavail >"$part" 2>/dev/null
if ! enough; then
  echo "corpus: found no package descriptions on this machine; name a text with CORPUS=path" >&2
  exit 78
fi
mv "$part" "$out"
