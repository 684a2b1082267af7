"""Digests of the ids that tiktoken, and Hugging Face's tokenizers for T5, give for the texts of
../shared/data, written to tokens.inc. Needs both packages; the models are those of
../shared/data/tokenizers."""

import base64
import gzip
import pathlib

import tiktoken
import tokenizers
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


def encode_t5():
    """Ids of a text without the end that the post-processor adds; no text has special tokens."""
    tokenizer = tokenizers.Tokenizer.from_file(str(data / "tokenizers/t5-tokenizer.json"))
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


models = [("gpt2", "gpt2.tiktoken", encoding("gpt2").encode_ordinary)]
models.append(("o200k", "o200k_base.tiktoken", encoding("o200k").encode_ordinary))
models.append(("huggingface", "t5-tokenizer.json", encode_t5()))
with open(pathlib.Path(__file__).parent / "tokens.inc", "w") as out:
    out.write("/* Made by tokens.py with tiktoken and tokenizers. TOKENS(kind, model, text, ids, digest) */\n")
    for kind, file, encode in models:
        for text in texts:
            raw = (data / text).read_bytes()
            ids = encode((gzip.decompress(raw) if text.endswith("gz") else raw).decode())
            out.write(f'TOKENS("{kind}", "{file}", "{text}", {len(ids)}, {digest(ids):#x})\n')
