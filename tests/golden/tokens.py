"""Digests of the ids that tiktoken gives for the texts of ../shared/data, written to tokens.inc.
Needs the package tiktoken; the ranks are those of ../shared/data/tokenizers."""

import base64
import gzip
import pathlib

import tiktoken
import tiktoken_ext.openai_public as public

data = pathlib.Path(__file__).parent / "../../../shared/data"
texts = ["multi30k/train.de.gz", "multi30k/train.en.gz", "text/tinyshakespeare.txt"]
families = {"gpt2": ("gpt2", public.r50k_base), "o200k": ("o200k_base", public.o200k_base)}


def encoding(name):
    file, spec = families[name]
    lines = (data / f"tokenizers/{file}.tiktoken").read_bytes().splitlines()
    ranks = {base64.b64decode(a): int(b) for a, b in (line.split() for line in lines if line)}
    public.load_tiktoken_bpe = lambda *_, **__: ranks
    return tiktoken.Encoding(**spec())


def digest(ids):
    """FNV-1a, 64 bits, over the ids as 32-bit words."""
    key = 0xCBF29CE484222325
    for number in ids:
        key = ((key ^ number) * 0x100000001B3) & ((1 << 64) - 1)
    return key


with open(pathlib.Path(__file__).parent / "tokens.inc", "w") as out:
    out.write("/* Made by tokens.py with tiktoken. TOKENS(kind, model, text, ids, digest) */\n")
    for kind, (file, _) in families.items():
        encoder = encoding(kind)
        for text in texts:
            raw = (data / text).read_bytes()
            ids = encoder.encode_ordinary((gzip.decompress(raw) if text.endswith("gz") else raw).decode())
            out.write(f'TOKENS("{kind}", "{file}.tiktoken", "{text}", {len(ids)}, {digest(ids):#x})\n')
