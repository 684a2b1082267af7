"""The part of tokenizer_exactness that runs the references in Python.

  tokenizer_ids.py file KIND RANKS OUT   a tokenizer.json with the tokens of a .tiktoken file
  tokenizer_ids.py ids KIND MODEL        documents of standard input (four bytes of length, and the
                                         bytes): a line each, number of ids and CRC-32

KIND: gpt2 or o200k for tiktoken with its own rules; huggingface for a tokenizer.json."""

import array
import base64
import struct
import sys
import zlib

import tiktoken
import tiktoken_ext.openai_public as public
import tokenizers

FAMILIES = {"gpt2": public.r50k_base, "o200k": public.o200k_base}
BATCH = 20000


def read_ranks(path):
    with open(path, "rb") as lines:
        return {base64.b64decode(a): int(b) for a, b in (line.split() for line in lines if line.strip())}


def specification(kind, path):
    public.load_tiktoken_bpe = lambda *_, **__: read_ranks(path)
    return FAMILIES[kind]()


def merge(ranks, token):
    """The two tokens that a token is made of, by merging its bytes with what comes before it."""
    parts = [bytes([byte]) for byte in token]
    while len(parts) > 2:
        found = [(ranks.get(a + b, 1 << 40), i) for i, (a, b) in enumerate(zip(parts, parts[1:]))]
        rank, i = min(found)
        assert rank < ranks[token]
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts


def alphabet():
    printable = [b for b in range(256) if 33 <= b <= 126 or (b >= 161 and b != 173)]
    other = [b for b in range(256) if b not in printable]
    return {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(other)}


def write_file(kind, path, out):
    spec = specification(kind, path)
    ranks = spec["mergeable_ranks"]
    letters = alphabet()
    text = {token: "".join(letters[byte] for byte in token) for token in ranks}
    ordered = sorted(ranks, key=ranks.get)
    merges = [tuple(text[part] for part in merge(ranks, token)) for token in ordered if len(token) > 1]
    model = tokenizers.models.BPE(vocab={text[token]: rank for token, rank in ranks.items()}, merges=merges)
    tokenizer = tokenizers.Tokenizer(model)
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=kind == "gpt2")
    if kind != "gpt2":
        split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(spec["pat_str"]), "isolated")
        byte_level = tokenizers.pre_tokenizers.Sequence([split, byte_level])
    tokenizer.pre_tokenizer = byte_level
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens([tokenizers.AddedToken("<|endoftext|>", special=True, normalized=False)])
    tokenizer.save(out)


def encoder(kind, path):
    if kind == "huggingface":
        tokenizer = tokenizers.Tokenizer.from_file(path)
        tokenizer.encode_special_tokens = True
        return lambda batch: [e.ids for e in tokenizer.encode_batch_fast(batch, add_special_tokens=False)]
    encoding = tiktoken.Encoding(**specification(kind, path))
    return lambda batch: encoding.encode_ordinary_batch(batch, num_threads=2)


def documents(stream):
    while head := stream.read(4):
        yield stream.read(struct.unpack("<I", head)[0]).decode()


def write_ids(kind, path):
    encode, batch = encoder(kind, path), []

    def flush():
        for ids in encode(batch):
            sys.stdout.write(f"{len(ids)} {zlib.crc32(array.array('i', ids).tobytes()):08x}\n")
        batch.clear()

    for document in documents(sys.stdin.buffer):
        batch.append(document)
        if len(batch) == BATCH:
            flush()
    flush()


if sys.argv[1] == "file":
    write_file(*sys.argv[2:])
else:
    write_ids(*sys.argv[2:])
