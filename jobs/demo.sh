#!/usr/bin/env bash
# The main job, as `make run` calls it. Environment: OUT the folder of the built programs, NP ranks,
# CORPUS a text of your own (BOUNDARY says what ends a document in it), SET more settings:
#   make run CORPUS=novels.txt SET="elf.steps=2000 cfm.steps=900"
# Running it again goes on where it stopped, or says that there is nothing to do.
set -eu
cd "$(dirname "$0")/.."
arguments=(run jobs/recipes/demo.yaml -np "${NP:-2}")
if [ -n "${CORPUS:-}" ]; then
  arguments+=(--set "tokens.input=$CORPUS" --set "tokens.boundary=${BOUNDARY:-blank_line}")
else
  jobs/corpus.sh runs/corpus/packages.txt
fi
for setting in ${SET:-}; do arguments+=(--set "$setting"); done
exec "${OUT:?set OUT to the folder of the built programs}/millrace" "${arguments[@]}"
