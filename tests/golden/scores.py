"""BLEU by sacreBLEU (lower case, 13a, effective order) and ROUGE by rouge-score (stemmed) of pairs of texts, and
stems by NLTK: scores_texts.inc holds the texts, scores.inc the numbers, scores_stems.inc words and stems."""

import random

from nltk.stem.porter import PorterStemmer
from rouge_score import rouge_scorer
from sacrebleu.metrics import BLEU

WORDS = """a the two men are cooking running on street 3.5 1,000 U.S. don't well-known 10-year (with) "quoted" ... end.
Ärger ÉTUDE Straße naïve Ωmega МОСКВА $5 50% C++ e.g. x&y &amp; &quot; <b> dogs played happily relational conditional
rationally valency digitizer conformably radically differently analogously vietnamization predication operator feudalism
decisiveness hopefulness callousness formality sensitivity sensibility triplicate formative formalize electricity
electrical goodness revival allowance inference airliner gyroscopic adjustable defensible irritant replacement
adjustment dependent adoption homologous communism activate angularity effective bowdlerize rate cease controlling
rolling flies dies mules denied died agreed plastered bled motoring sing conflated troubled sized hopping tanned falling
hissing fizzed failing filing sky happy skies dying news inning proceed technologically logically fully apologies
theology y by sayings enjoy enjoyed flying tied tying tie lies lied oed ied ing bed red feed seed need eeed ational""".split()


def make(generator, length):
    words = [generator.choice(WORDS) for _ in range(length)]
    return generator.choice([" ", "  ", "\\u00a0"]).encode().decode("unicode_escape").join(words)


def vary(generator, text):
    words = text.split(" ")
    for _ in range(generator.randrange(4)):
        words[generator.randrange(len(words))] = generator.choice(WORDS)
    if generator.random() < 0.3:
        words = words[: max(1, len(words) - 3)]
    return " ".join(words) + generator.choice(["", ".", " !", " -", ", ", "...", "-", "\n"])


def quote(text):
    return '"%s"' % "".join(
        chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else "\\%03o" % b for b in text.encode()
    )


generator = random.Random(5)
references = [make(generator, generator.randrange(1, 24)) for _ in range(60)] + ["Only one.", "", "nothing alike"]
texts = [vary(generator, r) for r in references[:60]] + ["ONLY one .", "text", "the other words"]
metric = BLEU(lowercase=True, effective_order=True)
scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
with open("scores_texts.inc", "w") as out:
    for text, reference in zip(texts, references):
        out.write("{%s, %s},\n" % (quote(text), quote(reference)))
numbers = []
for count in (1, 2, 10, len(texts)):
    numbers.append(metric.corpus_score(texts[:count], [references[:count]]).score)
numbers.append(metric.corpus_score(texts[60:61], [references[60:61]]).score)
numbers.append(metric.corpus_score(texts[62:], [references[62:]]).score)
for text, reference in zip(texts, references):
    score = scorer.score(reference, text)
    numbers += [score[kind].fmeasure for kind in ("rouge1", "rouge2", "rougeL")]
with open("scores.inc", "w") as out:
    for number in numbers:
        out.write("%.12e,\n" % number)
stemmer = PorterStemmer()
stems = sorted({w.lower() for w in WORDS if w.isascii() and w.isalnum()})
for _ in range(280):  # any letters
    stems.append("".join(generator.choice("aeiouybcdgilnrstz") for _ in range(generator.randrange(3, 9))) +
                 generator.choice(["", "s", "ed", "ing", "ational", "alli", "logi", "ion", "ies", "ied", "ll", "y", "e", "iveness"]))
with open("scores_stems.inc", "w") as out:
    for word in stems:
        out.write('{"%s", "%s"},\n' % (word, stemmer.stem(word)))
