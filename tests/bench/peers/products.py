"""GFLOP/s of one product, or of attention forward and backward: the shapes of tests/bench/kernels.c."""
import sys
import time

import torch
import torch.nn.functional as F

B, T, WIDTH, HIDDEN, HEADS = 8, 1024, 768, 2048, 12
ROUNDS = 6


def element():
    bf16 = " avx512_bf16" in open("/proc/cpuinfo").read()
    return torch.bfloat16 if bf16 else torch.float32


def seconds(work):
    """The best of a few rounds after one that does not count."""
    work()
    best = 1e30
    for _ in range(ROUNDS):
        start, runs = time.perf_counter(), 0
        while runs == 0 or time.perf_counter() - start < 0.02:
            work()
            runs += 1
        best = min(best, (time.perf_counter() - start) / runs)
    return best


def product():
    x = torch.randn(B * T, WIDTH).to(element())
    w = torch.randn(2 * HIDDEN, WIDTH).to(element())
    y = torch.empty(B * T, 2 * HIDDEN, dtype=element())
    flop = 2.0 * B * T * WIDTH * 2 * HIDDEN
    with torch.no_grad():
        return flop / seconds(lambda: torch.mm(x, w.t(), out=y))


def attention():
    """Two products forward and four backward count."""
    shape = (B, HEADS, T, WIDTH // HEADS)
    q, k, v = (torch.randn(shape).to(element()).requires_grad_() for _ in range(3))
    dy = torch.randn(shape).to(element())

    def both():
        q.grad = k.grad = v.grad = None
        F.scaled_dot_product_attention(q, k, v).backward(dy)

    return 12.0 * B * HEADS * T * T * (WIDTH // HEADS) / seconds(both)


torch.manual_seed(0)
print("%.4g" % ({"product": product, "attention": attention}[sys.argv[1]]() / 1e9))
