"""MB/s of another tokenizer on one thread: ids_of_text.py PACKAGE KIND. The documents are those of
tests/bench/tokenizer.c: the paragraphs of tiny Shakespeare, over and over, each time with another
number. Each tokenizer is new, so that its cache is empty; loading it is not counted. Counted is processor
time, so that what else this machine does is not held against it."""

import os
import pathlib
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
TEXT_BYTES = 24 << 20
data = pathlib.Path(os.environ["ROOT"]) / "../shared/data"
models = data / "tokenizers"
RANKS = {"gpt2": "gpt2.tiktoken", "o200k": "o200k_base.tiktoken"}


def documents():
    paragraphs = (data / "text/tinyshakespeare.txt").read_text().split("\n\n")[:-1]
    found, size, number = [], 0, 0
    while size < TEXT_BYTES:
        found += [f"{paragraph} {number}" for paragraph in paragraphs]
        size = sum(len(text) + 1 for text in found)
        number += 1
    return found, size


def sentencepiece(_):
    import sentencepiece as library

    processor = library.SentencePieceProcessor(model_file=str(models / "t5-spiece.model"))
    return lambda texts: processor.encode(texts, num_threads=1)


def huggingface(_):
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(models / "t5-tokenizer.json"))
    return lambda texts: tokenizer.encode_batch_fast(texts, add_special_tokens=False)


def tiktoken(kind):
    import tiktoken as library
    import tiktoken.load
    import tiktoken_ext.openai_public as public

    ranks = tiktoken.load.load_tiktoken_bpe(str(models / RANKS[kind]))
    public.load_tiktoken_bpe = lambda *_, **__: ranks
    encoding = library.Encoding(**{"gpt2": public.r50k_base, "o200k": public.o200k_base}[kind]())
    return lambda texts: [encoding.encode_ordinary(text) for text in texts]


def gigatoken(kind):
    import gigatoken as library

    tokenizer = library.Tokenizer.from_tiktoken(str(models / RANKS[kind]), pretokenizer=kind)
    return lambda source: tokenizer.encode_batch(source, parallel=False)


package, kind = sys.argv[1:]
if not data.is_dir():
    print(f"SKIP no models in {data}")
    sys.exit()
texts, size = documents()
if package == "gigatoken":
    import gigatoken as library

    texts = library.BytesSource(["\0".join(texts).encode()], separator=b"\0")
best, spent = float("inf"), 0
while spent < 3:  # seconds; the first turn also touches memory for the first time
    encode = globals()[package](kind)
    begun = time.process_time()
    result = encode(texts)
    seconds = time.process_time() - begun
    best, spent = min(best, seconds), spent + max(seconds, 0.5)
print(size / 1e6 / best)
