"""T5 encoders of Hugging Face transformers, in double, on weights of values.py.

t5_v1_0.inc and t5_v1_1.inc: the projection of each of the 2 * 160 output rows, then the size of all of
them together. The second text has 37 tokens, the rest of it is padding.
"""

import torch
from transformers import T5Config, T5EncoderModel

import values

BATCH, POSITIONS, LENGTHS, VOCABULARY = 2, 160, (160, 37), 32128

SHAPES = {
    "t5_v1_0": dict(d_ff=2048, num_layers=6, num_heads=8, feed_forward_proj="relu"),
    "t5_v1_1": dict(d_ff=1024, num_layers=8, num_heads=6, feed_forward_proj="gated-gelu"),
}


def encode(shape):
    config = T5Config(vocab_size=VOCABULARY, d_model=512, d_kv=64, dropout_rate=0.0, **shape)
    model = T5EncoderModel(config).eval().double()
    state = {
        name: values.parameter(name, tuple(tensor.shape))
        for name, tensor in model.state_dict().items()
    }
    state["encoder.embed_tokens.weight"] = state["shared.weight"]
    model.load_state_dict(state, strict=False)
    tokens = torch.from_numpy(values.ids("tokens", BATCH * POSITIONS, VOCABULARY))
    mask = torch.zeros(BATCH, POSITIONS, dtype=torch.int64)
    for row, length in enumerate(LENGTHS):
        mask[row, :length] = 1
    with torch.no_grad():
        output = model(input_ids=tokens.reshape(BATCH, POSITIONS), attention_mask=mask)
    return output.last_hidden_state.reshape(BATCH * POSITIONS, -1)


for name, shape in SHAPES.items():
    rows = encode(shape)
    values.write(name + ".inc", values.projections("output", rows) + [rows.norm().item()])
