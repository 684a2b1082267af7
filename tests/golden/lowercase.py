"""Makes stages/evaluate/lowercase.def: runs of characters whose lower case is another one, as Python's
str.lower gives it for a character by itself. RUN(first, last, step, difference)."""

import unicodedata

runs = []
for code in range(0x80, 0x110000):
    low = chr(code).lower()
    if 0xD800 <= code < 0xE000 or len(low) != 1 or ord(low) == code:
        continue
    difference = ord(low) - code
    if runs and runs[-1][3] == difference:
        first, last, step, _ = runs[-1]
        if (first == last and code - last <= 2) or code - last == step:
            runs[-1] = (first, code, code - last, difference)
            continue
    runs.append((code, code, 1, difference))
with open("../../stages/evaluate/lowercase.def", "w") as out:
    out.write("/* Runs of characters with a lower case, Unicode %s (tests/golden/lowercase.py).\n" % unicodedata.unidata_version)
    out.write(" * RUN(first, last, step, difference)\n */\n")
    for run in runs:
        out.write("RUN(0x%04X, 0x%04X, %d, %d)\n" % run)
