#!/usr/bin/env bash
# The fence itself: a tree that keeps the rules passes; each broken rule is found and named.
. "$ROOT/tests/common/tap.sh"
make_tree() { # the smallest tree with a file of each layer
  rm -rf tree
  mkdir -p tree/{pipeline/base,sharding,monitoring,tests} tree/stages/{model/kernels,model/layers,flow,train,sample}
  local file guard
  for file in pipeline/base/low sharding/comm monitoring/log stages/model/kernels/k stages/model/layers/l \
    stages/flow/flow stages/train/train stages/sample/sample; do
    guard=$(echo "$file.h" | tr a-z/. A-Z__)
    printf '#ifndef %s\n#define %s\nint %s(void);\n#endif\n' "$guard" "$guard" "${file##*/}" >"tree/$file.h"
    printf '#include "%s.h"\n\nint %s(void) {\n  return 0;\n}\n' "$file" "${file##*/}" >"tree/$file.c"
  done
}
fence() { "$ROOT/tests/fence/fence" tree >output 2>&1; }
lines() { "$ROOT/tests/fence/lines" tree >output 2>&1; }
refuses() { # refuses NAME CHECK MESSAGE: the tree as it was just changed
  "$2"
  if [ $? -ne 0 ] && says "$3"; then ok "$1"; else not_ok "$1" output; fi
  make_tree
}
put() { echo "$2" >>"tree/$1"; }

make_tree
check "a tree that keeps the rules passes the fence" fence
check "and the lengths" lines
put pipeline/base/low.c '#include "sharding/comm.h"'
refuses "pipeline must not include sharding" fence "pipeline/base/low.c:6: includes \"sharding/comm.h\", which is of a higher layer"
put sharding/comm.h '#include "monitoring/log.h"'
refuses "sharding must not include monitoring" fence "sharding/comm.h:5"
put monitoring/log.c '#include "stages/flow/flow.h"'
refuses "monitoring must not include stages" fence "monitoring/log.c:6"
put stages/model/kernels/k.c '#include "stages/model/layers/l.h"'
refuses "kernels must not include layers" fence "kernels/k.c:6"
put stages/flow/flow.c '#include "stages/train/train.h"'
refuses "flow must not include a stage folder" fence "flow/flow.c:6"
put stages/train/train.c '#include "stages/sample/sample.h"'
refuses "stage folders must not include one another" fence "of another stage folder"
put stages/model/kernels/k.inc '#include "stages/flow/flow.h"'
refuses "included code is code" fence "kernels/k.inc:1"
put stages/train/train.c '#include "train.h"'
refuses "paths are full" fence "not a full path from the root"
put monitoring/log.c 'int x = MPI_COMM_WORLD;'
refuses "MPI stays in sharding" fence "monitoring/log.c:6: MPI or ScaLAPACK outside sharding"
put stages/train/train.c 'void pdgemm_(int);'
refuses "ScaLAPACK stays in sharding" fence "MPI or ScaLAPACK outside sharding"
put sharding/comm.c 'void f(void) { exit(1); }'
refuses "nothing exits below the programs" fence "exits, reads the environment or prints"
sed -i s/SHARDING_COMM_H/COMM_H/ tree/sharding/comm.h
refuses "guards are paths" fence "guard SHARDING_COMM_H is missing"
sed -i 's/int comm/size_t comm/' tree/sharding/comm.h
refuses "headers compile on their own" fence "sharding/comm.h does not compile on its own"

body() { for _ in $(seq "$1"); do echo "  x++;"; done; }
{ echo "int long_one(int x) {"; body 59; echo "  return x;"; echo "}"; } >>tree/stages/flow/flow.c
refuses "a function of more than 60 lines" lines "long_one has 62 lines, the limit is 60"
for i in $(seq 396); do echo "extern int v$i;"; done >>tree/pipeline/base/low.c
refuses "a file of more than 400 lines" lines "pipeline/base/low.c: 401 lines, the limit is 400"
for i in $(seq 9); do { echo "int f$i(int x) {"; body 13; echo "  return x;"; echo "}"; }; done >>tree/stages/train/train.c
lines
check "a median of more than 12 lines" [ $? -ne 0 ]
finish
