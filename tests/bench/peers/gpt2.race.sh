# A whole training step, 4 sequences of 1024 tokens in bf16: forward, loss, backward, AdamW. Ours
# is the network of 124M parameters of method ar: root mean square norms, rotary positions,
# normalised q and k, SwiGLU. Rows gpt2_*: the network that GPT-2 published, which is less work
# beside the same products. Rows same_network_*: the network that we train. Row gpt2_llm_c
# needs LLM_C, a checkout of llm.c with train_gpt2 built and its starter pack fetched.
torch=$(version_of torch)
ours() { "$OUT/tests/bench/step" gpt2_124m | value_of step_gpt2_124m_tokens; }
gpt2_eager() { "$PYTHON" "$peers/gpt2.py" gpt2; }
gpt2_compile() { "$PYTHON" "$peers/gpt2.py" gpt2 compile; }
same_eager() { "$PYTHON" "$peers/gpt2.py" same; }
same_compile() { "$PYTHON" "$peers/gpt2.py" same compile; }
# Its rows are 64 long, which spares it most of the attention.
llm_c() {
  [ -x "${LLM_C:-}/train_gpt2" ] || { echo "SKIP: LLM_C names no folder with a built train_gpt2 and its starter pack"; return; }
  (cd "$LLM_C" && timeout "${LLM_C_SECONDS:-90}" stdbuf -oL ./train_gpt2) |
    sed -nE 's/.*took ([0-9.]+) ms.*/\1/p' | sort -g | awk 'NR == 1 {print 4 * 64 * 1000 / $1}'
}
race tokens/s ours "gpt2_124m_eager=gpt2_eager:$torch eager" "gpt2_124m_compile=gpt2_compile:$torch compile" \
  "same_network_eager=same_eager:$torch eager" "same_network_compile=same_compile:$torch compile" \
  "gpt2_llm_c=llm_c:llm.c train_gpt2 on CPU"
