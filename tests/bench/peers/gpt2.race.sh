# A whole training step, 4 sequences of 1024 tokens in bf16: forward, loss, backward, AdamW. Ours
# is the network of 124M parameters of method ar: root mean square norms, rotary positions,
# normalised q and k, SwiGLU. Rows gpt2_*: the network that GPT-2 published, which is less work
# beside the same products. Rows same_network_*: the network that we train. llm_c needs LLM_C, a
# folder with a built checkout of llm.c.
torch=$(version_of torch)
ours() { "$OUT/tests/bench/step" gpt2_124m | value_of step_gpt2_124m_tokens; }
gpt2_eager() { "$PYTHON" "$peers/gpt2.py" gpt2; }
gpt2_compile() { "$PYTHON" "$peers/gpt2.py" gpt2 compile; }
same_eager() { "$PYTHON" "$peers/gpt2.py" same; }
same_compile() { "$PYTHON" "$peers/gpt2.py" same compile; }
race tokens/s ours "gpt2_124m_eager=gpt2_eager:$torch eager" "gpt2_124m_compile=gpt2_compile:$torch compile" \
  "same_network_eager=same_eager:$torch eager" "same_network_compile=same_compile:$torch compile"
