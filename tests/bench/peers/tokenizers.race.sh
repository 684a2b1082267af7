# Text to ids on one thread with an empty cache: English paragraphs. Needs the models of
# ../shared/data.
ours() { # ours KIND
  [ -d "$ROOT/../shared/data" ] || { echo "SKIP no models in ../shared/data"; return; }
  "$OUT/tests/bench/tokenizer" "$1" | value_of "tok_$1"
}
our_t5() { ours t5; }
our_gpt2() { ours gpt2; }
our_o200k() { ours o200k; }
theirs() { "$PYTHON" "$peers/ids_of_text.py" "$1" "$2"; }
sentencepiece_t5() { theirs sentencepiece t5; }
huggingface_t5() { theirs huggingface t5; }
tiktoken_gpt2() { theirs tiktoken gpt2; }
tiktoken_o200k() { theirs tiktoken o200k; }
gigatoken_gpt2() { theirs gigatoken gpt2; }
gigatoken_o200k() { theirs gigatoken o200k; }
sentencepiece=$(version_of sentencepiece) huggingface=$(version_of tokenizers)
tiktoken=$(version_of tiktoken) gigatoken=$(version_of gigatoken)
race MB/s our_t5 "tok_t5_sentencepiece=sentencepiece_t5:$sentencepiece" "tok_t5_tokenizers=huggingface_t5:$huggingface" &&
  race MB/s our_gpt2 "tok_gpt2_tiktoken=tiktoken_gpt2:$tiktoken" "tok_gpt2_gigatoken=gigatoken_gpt2:$gigatoken" &&
  race MB/s our_o200k "tok_o200k_tiktoken=tiktoken_o200k:$tiktoken" "tok_o200k_gigatoken=gigatoken_o200k:$gigatoken"
