"""Three updates of optax.contrib.muon behind a clipped global norm, in double: what ELF's released
code trains with (arXiv 2605.10938). muon.inc: name, step, projection and size of each parameter's
change since the start, divided by the learning rate. Matrices are [in, out] here."""

import jax
import numpy as np
import optax

import values

jax.config.update("jax_enable_x64", True)
RATE = 0.002
SHAPES = {"qkv": (8, 24), "down": (21, 8), "unembed": (8, 40), "tokens": (1, 4, 8), "bias": (8,)}


def array(name, shape, scale):
    """Filled in the order of [out, in]."""
    kept = shape[::-1] if len(shape) == 2 else shape
    flat = (scale * values.uniform(name, int(np.prod(shape)))).astype(np.float32).astype(np.float64)
    return flat.reshape(kept).T if len(shape) == 2 else flat.reshape(kept)


def flatten(x):
    return (x.T if x.ndim == 2 else x).reshape(-1)


weights = {name: array("zero", shape, 0.0) for name, shape in SHAPES.items()}
rule = optax.chain(optax.clip_by_global_norm(1.0), optax.contrib.muon(RATE, adam_learning_rate=RATE))
state = rule.init(weights)
with open("muon.inc", "w") as out:
    for step in (1, 2, 3):
        scale = (0.4, 0.01, 3.0)[step - 1]
        gradients = {n: array("gradient.%d.%s" % (step, n), s, scale) for n, s in SHAPES.items()}
        updates, state = rule.update(gradients, state, weights)
        weights = optax.apply_updates(weights, updates)
        for name in SHAPES:
            way = flatten(np.asarray(weights[name])) / RATE
            vector = values.uniform("way." + name, way.size)
            out.write('{"%s", %d, %.9e, %.9e},\n' % (name, step, way @ vector, np.linalg.norm(way)))
