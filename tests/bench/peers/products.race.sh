# One matrix product and one attention, forward and backward, of 8 sequences of 1024 tokens, 768
# channels, 12 heads, in bf16 (F32 where this machine has no bf16 products).
torch=$(version_of torch)
our_product() { "$OUT/tests/bench/kernels" products | value_of gemm_wrapper; }
our_attention() { "$OUT/tests/bench/kernels" attention | value_of attention_1024x64; }
torch_product() { "$PYTHON" "$peers/products.py" product; }
torch_attention() { "$PYTHON" "$peers/products.py" attention; }
race GFLOP/s our_product "gemm=torch_product:$torch mm" &&
  race GFLOP/s our_attention "attention=torch_attention:$torch scaled_dot_product_attention"
