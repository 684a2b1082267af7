"""Tokens per second of a training step of 124M parameters: `gpt2.py gpt2|same [compile]`.

gpt2: as published - LayerNorm, learned positions, GELU, biases. same: the network that method ar
trains - root mean square norms, rotary positions, normalised q and k, SwiGLU, no biases. Both tie
the two tables. F32 weights, bf16 autocast where the processor has bf16 products, fused AdamW.
"""
import os
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

B, T, V, WIDTH, DEPTH, HEADS = 4, 1024, 50257, 768, 12, 12
HIDDEN = 2048  # of SwiGLU
STEPS = int(os.environ.get("PEER_STEPS", 2))


def attend(q, k, v):
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return y.transpose(1, 2).reshape(y.shape[0], -1, WIDTH)


def split_heads(qkv):
    parts = qkv.split(WIDTH, dim=2)
    return (p.view(p.shape[0], -1, HEADS, WIDTH // HEADS).transpose(1, 2) for p in parts)


class Gpt2Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, h):
        h = h + self.out(attend(*split_heads(self.qkv(self.norm1(h)))))
        return h + self.down(F.gelu(self.up(self.norm2(h)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.positions = nn.Embedding(V, WIDTH), nn.Embedding(T, WIDTH)
        self.blocks = nn.ModuleList(Gpt2Block() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens, targets):
        h = self.table(tokens) + self.positions.weight
        for block in self.blocks:
            h = block(h)
        logits = F.linear(self.norm(h), self.table.weight)
        return F.cross_entropy(logits.view(-1, V), targets.view(-1))


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)


class RmsNorm(nn.Module):
    """In the type of its input, so that torch takes its fused kernel."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype))


class SameBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = RmsNorm(WIDTH), RmsNorm(WIDTH)
        self.q_norm, self.k_norm = RmsNorm(WIDTH // HEADS), RmsNorm(WIDTH // HEADS)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate_up = nn.Linear(WIDTH, 2 * HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, h, cos, sin):
        q, k, v = split_heads(self.qkv(self.norm1(h)))
        q, k = rotate(self.q_norm(q), cos, sin), rotate(self.k_norm(k), cos, sin)
        h = h + self.out(attend(q.to(v.dtype), k.to(v.dtype), v))
        gate, up = self.gate_up(self.norm2(h)).chunk(2, dim=-1)
        return h + self.down(F.silu(gate) * up)


class Same(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(V, WIDTH)
        self.blocks = nn.ModuleList(SameBlock() for _ in range(DEPTH))
        self.norm = RmsNorm(WIDTH)
        half = WIDTH // HEADS // 2
        angles = torch.outer(torch.arange(T), 10000.0 ** (-torch.arange(half) / half))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, tokens, targets):
        h = self.table(tokens)
        for block in self.blocks:
            h = block(h, self.cos, self.sin)
        logits = F.linear(self.norm(h), self.table.weight)
        return F.cross_entropy(logits.view(-1, V), targets.view(-1))


def main():
    torch.manual_seed(0)
    bf16 = " avx512_bf16" in open("/proc/cpuinfo").read()
    model = {"gpt2": Gpt2, "same": Same}[sys.argv[1]]()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    run = torch.compile(model) if "compile" in sys.argv else model
    tokens = torch.randint(V, (B, T + 1))

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            loss = run(tokens[:, :-1], tokens[:, 1:].contiguous())
        loss.backward()
        optimizer.step()

    best = 1e30
    for i in range(STEPS + 1):
        start = time.perf_counter()
        step()
        if i:
            best = min(best, time.perf_counter() - start)
    print("%.4g" % (B * T / best))


main()
