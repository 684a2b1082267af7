"""ELF's network and objective in PyTorch, in double, written from the paper (arXiv 2605.10938).

Three shapes: B cut to two layers, one layer of M (head width 66) and one of L (inner width 3413). Four
rows: denoised plainly, denoised with self-conditioning and guidance 2, decoded, and denoised with
self-conditioning and guidance 0.7. elf_*.inc: numbers as the comments in tests/golden/elf.c say;
elf_*_gradients.inc: name, projection and size of each parameter's gradient.
"""

import math

import torch
import torch.nn.functional as F

import values

E, S, ROWS = 512, 10, 4
TIME, GUIDANCE = (0.2, 0.35, 1.0, 0.6), (2.0, 2.0, 3.0, 0.7)
DECODE, DRAFT, LENGTHS = (0.0, 0.0, 1.0, 0.0), (False, True, False, True), (10, 7, 9, 10)
BOTTLENECK = 128

SHAPES = {
    "b": dict(width=768, heads=12, hidden=2048, depth=2, vocabulary=32100),
    "m": dict(width=1056, heads=16, hidden=2816, depth=1, vocabulary=320),
    "l": dict(width=1280, heads=16, hidden=3413, depth=1, vocabulary=320),
}


def parameter_shapes(width, heads, hidden, depth, vocabulary):
    shapes = {
        "self_cond_proj.weight": (E, 2 * E),
        "self_cond_proj.bias": (E,),
        "text_proj.proj1.weight": (BOTTLENECK, E),
        "text_proj.proj2.weight": (width, BOTTLENECK),
        "text_proj.proj2.bias": (width,),
    }
    for name in ("t_embedder", "self_cond_cfg_embedder"):
        shapes[name + ".mlp_0.weight"] = (width, 256)
        shapes[name + ".mlp_0.bias"] = (width,)
        shapes[name + ".mlp_2.weight"] = (width, width)
        shapes[name + ".mlp_2.bias"] = (width,)
    for name in ("t_emb_tokens", "self_cond_cfg_tokens", "mode_tokens"):
        shapes[name] = (1, 4, width)
    for i in range(depth):
        block = "blocks.%d." % i
        shapes[block + "norm1.weight"] = shapes[block + "norm2.weight"] = (width,)
        shapes[block + "attn.qkv.weight"] = (3 * width, width)
        shapes[block + "attn.qkv.bias"] = (3 * width,)
        shapes[block + "attn.q_norm.weight"] = (width // heads,)
        shapes[block + "attn.k_norm.weight"] = (width // heads,)
        shapes[block + "attn.proj.weight"] = (width, width)
        shapes[block + "attn.proj.bias"] = (width,)
        shapes[block + "mlp.w12.weight"] = (2 * hidden, width)
        shapes[block + "mlp.w12.bias"] = (2 * hidden,)
        shapes[block + "mlp.w3.weight"] = (width, hidden)
        shapes[block + "mlp.w3.bias"] = (width,)
    shapes["proj_kernel"] = (width, E)
    shapes["proj_bias"] = (E,)
    shapes["unembed_kernel"] = (E, vocabulary)
    shapes["unembed_bias"] = (vocabulary,)
    shapes["final_layer.norm_final.weight"] = (width,)
    shapes["final_layer.linear.weight"] = (E, width)
    shapes["final_layer.linear.bias"] = (E,)
    return shapes


def make_parameter(name, shape):
    if name.endswith("_kernel"):  # stored [in, out]: the scale is that of its inputs
        value = values.array(name, shape, (3.0 / shape[0]) ** 0.5)
    else:
        value = values.parameter(name, shape)
    return value.requires_grad_(True)


def rms_norm(x, gain):
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + 1e-6) * gain


def embed_scalar(p, name, scalars):
    k = torch.arange(128, dtype=torch.float64)
    angles = scalars[:, None] * torch.exp(-math.log(10000.0) * k / 128)[None]
    waves = torch.cat([angles.cos(), angles.sin()], -1)
    inner = F.silu(F.linear(waves, p[name + ".mlp_0.weight"], p[name + ".mlp_0.bias"]))
    return F.linear(inner, p[name + ".mlp_2.weight"], p[name + ".mlp_2.bias"])


def rotate(x, control):
    """x[B, H, T, D]; interleaved pairs; the first `control` positions stay."""
    positions, width = x.shape[2], x.shape[3]
    place = torch.clamp(torch.arange(positions, dtype=torch.float64) - control, min=0)
    frequency = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    turn = torch.polar(torch.ones(positions, width // 2, dtype=torch.float64), place[:, None] * frequency)
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], width // 2, 2).contiguous())
    return torch.view_as_real(pairs * turn).flatten(-2)


def attend(p, block, x, heads, control):
    batch, positions, width = x.shape
    qkv = F.linear(x, p[block + "attn.qkv.weight"], p[block + "attn.qkv.bias"])
    q, k, v = (
        part.reshape(batch, positions, heads, width // heads).transpose(1, 2)
        for part in qkv.split(width, -1)
    )
    q = rotate(rms_norm(q, p[block + "attn.q_norm.weight"]), control)
    k = rotate(rms_norm(k, p[block + "attn.k_norm.weight"]), control)
    scores = (q @ k.transpose(-1, -2) / math.sqrt(width // heads)).softmax(-1)
    mixed = (scores @ v).transpose(1, 2).reshape(batch, positions, width)
    return F.linear(mixed, p[block + "attn.proj.weight"], p[block + "attn.proj.bias"])


def feed(p, block, x):
    a, b = F.linear(x, p[block + "mlp.w12.weight"], p[block + "mlp.w12.bias"]).chunk(2, -1)
    return F.linear(F.silu(a) * b, p[block + "mlp.w3.weight"], p[block + "mlp.w3.bias"])


def trunk(p, shape, z, draft, rows, with_mode=True):
    """Hidden states of the given rows, z and draft [rows, S, E]."""
    time = torch.tensor([TIME[r] for r in rows], dtype=torch.float64)
    guidance = torch.tensor([GUIDANCE[r] for r in rows], dtype=torch.float64)
    mode = torch.tensor([DECODE[r] for r in rows], dtype=torch.float64)
    x = F.linear(torch.cat([z, draft], -1), p["self_cond_proj.weight"], p["self_cond_proj.bias"])
    x = F.linear(x, p["text_proj.proj1.weight"])
    x = F.linear(x, p["text_proj.proj2.weight"], p["text_proj.proj2.bias"])
    tokens = [
        p["t_emb_tokens"] + embed_scalar(p, "t_embedder", time)[:, None],
        p["self_cond_cfg_tokens"] + embed_scalar(p, "self_cond_cfg_embedder", guidance)[:, None],
    ]
    if with_mode:
        tokens.append(p["mode_tokens"] * mode[:, None, None])
    control = 4 * len(tokens)
    h = torch.cat(tokens + [x], 1)
    for i in range(shape["depth"]):
        block = "blocks.%d." % i
        h = h + attend(p, block, rms_norm(h, p[block + "norm1.weight"]), shape["heads"], control)
        h = h + feed(p, block, rms_norm(h, p[block + "norm2.weight"]))
    return h[:, control:]


def denoise(p, h):
    h = rms_norm(h, p["final_layer.norm_final.weight"])
    return F.linear(h, p["final_layer.linear.weight"], p["final_layer.linear.bias"])


def decode(p, h):
    h = F.gelu(h @ p["proj_kernel"] + p["proj_bias"], approximate="tanh")
    return h @ p["unembed_kernel"] + p["unembed_bias"]


def velocity(x, z, row):
    return (x - z) / max(1 - TIME[row], 0.05)


def objective(p, shape, z, data, tokens):
    """The published form: guidance from two passes of its own."""
    rows, denoised = range(ROWS), [r for r in range(ROWS) if not DECODE[r]]
    nothing = torch.zeros_like(z)
    with torch.no_grad():
        first = denoise(p, trunk(p, shape, z, nothing, rows))
        second = denoise(p, trunk(p, shape, z, first, rows))
    draft = torch.stack([first[r] if DRAFT[r] else nothing[r] for r in rows])
    hidden = trunk(p, shape, z, draft, rows)
    x = denoise(p, hidden)
    mse = torch.zeros((), dtype=torch.float64)
    for r in denoised:
        target = velocity(data[r], z[r], r)
        if DRAFT[r]:
            push = velocity(second[r], z[r], r) - velocity(first[r], z[r], r)
            target = target + (1 - 1 / GUIDANCE[r]) * push
        error = (velocity(x[r], z[r], r) - target).square().mean(-1)
        mse = mse + error[: LENGTHS[r]].sum()
    ce = torch.zeros((), dtype=torch.float64)
    for r in rows:
        if DECODE[r]:
            logits = decode(p, hidden[r])
            ce = ce + F.cross_entropy(logits[: LENGTHS[r]], tokens[r, : LENGTHS[r]], reduction="sum")
    return mse, ce, x, hidden


def absent_mode(p, shape, z):
    """What row 0 would give if its zero mode tokens were left out."""
    with torch.no_grad():
        return denoise(p, trunk(p, shape, z[:1], torch.zeros_like(z[:1]), [0], with_mode=False))[0]


def gradient_line(name, gradient):
    flat = gradient.reshape(-1)
    vector = torch.from_numpy(values.uniform("gradient." + name, flat.numel()))
    return '{"%s", %.9e, %.9e},\n' % (name, (flat @ vector).item(), flat.norm().item())


def make(name, shape):
    p = {key: make_parameter(key, size) for key, size in parameter_shapes(**shape).items()}
    z = values.array("z", (ROWS, S, E), 2.0)
    data = values.array("data", (ROWS, S, E), 1.7)
    tokens = torch.from_numpy(values.ids("tokens", ROWS * S, shape["vocabulary"])).reshape(ROWS, S)
    mse, ce, x, _ = objective(p, shape, z, data, tokens)
    ((mse + ce) / sum(LENGTHS)).backward()
    numbers = [mse.item(), ce.item()]
    numbers += values.projections("output", absent_mode(p, shape, z))[:1]
    numbers += values.projections("output", x.detach().reshape(ROWS * S, E))
    values.write("elf_%s.inc" % name, numbers)
    with open("elf_%s_gradients.inc" % name, "w") as out:
        for key, parameter in p.items():
            out.write(gradient_line(key, parameter.grad))


for name, shape in SHAPES.items():
    make(name, shape)
