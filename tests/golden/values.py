"""Arrays made from a name by a formula, the same as tests/common/golden.c makes them."""

import numpy as np
import torch

MASK = (1 << 64) - 1


def name_key(name):
    """FNV-1a, 64 bits."""
    key = 0xCBF29CE484222325
    for byte in name.encode():
        key = ((key ^ byte) * 0x100000001B3) & MASK
    return key


def uniform(name, count):
    """Numbers in [-1, 1) with 24 bits: splitmix64 of the name's key and the index."""
    with np.errstate(over="ignore"):
        x = np.uint64(name_key(name)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(
            0x9E3779B97F4A7C15
        )
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return (x >> np.uint64(40)).astype(np.float64) / 8388608.0 - 1.0


def array(name, shape, scale, offset=0.0):
    """offset + scale * uniform, rounded to single precision, as doubles."""
    count = int(np.prod(shape))
    values = (offset + scale * uniform(name, count)).astype(np.float32)
    return torch.from_numpy(values.astype(np.float64)).reshape(shape)


def parameter(name, shape):
    """Vectors: 1 +- 0.1 for norms, +- 0.1 for biases; matrices: unit variance through the map."""
    if len(shape) == 1:
        return array(name, shape, 0.1, 1.0 if "norm" in name else 0.0)
    if "relative_attention_bias" in name:
        return array(name, shape, 1.0)
    if name == "shared.weight":
        return array(name, shape, 1.7)
    scale = (3.0 / shape[-1]) ** 0.5
    return array(name, shape, scale / 8 if ".q." in name else scale)


def ids(name, count, vocabulary):
    return np.floor((uniform(name, count) + 1) / 2 * vocabulary).astype(np.int64)


def projections(name, rows):
    """Product of each row of [n, c] with one fixed vector."""
    vector = torch.from_numpy(uniform(name, rows.shape[1]))
    return (rows @ vector).tolist()


def write(path, numbers):
    with open(path, "w") as out:
        for number in numbers:
            out.write("%.9e,\n" % number)
