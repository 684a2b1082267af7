"""Whole T5 models of Hugging Face transformers, in double, on weights of values.py.

t5_tied.inc (v1.0 feed-forward, tokens predicted with their own table) and t5_untied.inc (v1.1): the projection of
each of the first text's 140 rows that the head takes, then the loss of each of the second's 140 targets. The second
text has 37 tokens, the rest of its input is padding.
"""

import torch
from transformers import T5Config, T5ForConditionalGeneration

import values

BATCH, INPUTS, TARGETS, LENGTHS, VOCABULARY = 2, 150, 140, (150, 37), 1000

SHAPES = {
    "t5_tied": dict(d_ff=384, feed_forward_proj="relu", tie_word_embeddings=True),
    "t5_untied": dict(d_ff=320, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
}


def ids(name, count):
    return torch.from_numpy(values.ids(name, BATCH * count, VOCABULARY)).reshape(BATCH, count)


def run(shape):
    config = T5Config(vocab_size=VOCABULARY, d_model=128, d_kv=32, num_heads=4, num_layers=3, num_decoder_layers=2,
                      dropout_rate=0.0, decoder_start_token_id=0, **shape)
    model = T5ForConditionalGeneration(config).eval().double()
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.copy_(values.parameter(name, tuple(tensor.shape)))
    if not shape["tie_word_embeddings"]:  # some versions tie all the same
        head = values.parameter("lm_head.weight", (VOCABULARY, config.d_model))
        model.lm_head.weight = torch.nn.Parameter(head)
    mask = torch.zeros(BATCH, INPUTS, dtype=torch.int64)
    for row, length in enumerate(LENGTHS):
        mask[row, :length] = 1
    labels = ids("targets", TARGETS)
    with torch.no_grad():
        output = model(input_ids=ids("tokens", INPUTS), attention_mask=mask, labels=labels, output_hidden_states=True)
    states = output.decoder_hidden_states[-1]
    if shape["tie_word_embeddings"]:
        states = states * config.d_model**-0.5
    losses = torch.nn.functional.cross_entropy(output.logits.reshape(-1, VOCABULARY), labels.reshape(-1),
                                               reduction="none")
    return states.reshape(BATCH * TARGETS, -1), losses


for name, shape in SHAPES.items():
    rows, losses = run(shape)
    values.write(name + ".inc", values.projections("output", rows[:TARGETS]) + losses[TARGETS:].tolist())
