#!/usr/bin/env bash
# Matrix products keep their promises (values, threads, rows) where the library may use less than the
# processor has: there we take its products instead of our tiles, and it takes other paths, and refuses
# bf16.
number=0
echo 1..3
for isa in AVX512_CORE_BF16 AVX2 SSE41; do
  number=$((number + 1))
  if DNNL_MAX_CPU_ISA=$isa ONEDNN_MAX_CPU_ISA=$isa "$OUT/tests/unit/stages/model/product" >log 2>&1; then
    echo "ok $number - products with $isa"
  else
    sed 's/^/# /' log
    echo "not ok $number - products with $isa"
  fi
done
