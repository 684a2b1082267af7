#!/usr/bin/env python3
"""Makes stages/tokenize/unicode_classes.def from UnicodeData.txt and PropList.txt (Debian package
unicode-data): the classes of characters that pre-tokenisers distinguish, as ranges.

usage: unicode_classes.py /usr/share/unicode >stages/tokenize/unicode_classes.def"""
import sys

folder = sys.argv[1]
version = open(f"{folder}/PropList.txt").readline().split("-")[1].removesuffix(".txt\n")
names = {"Lu": "UPPER", "Lt": "UPPER", "Ll": "LOWER", "Lm": "LETTER", "Lo": "LETTER",
         "Mn": "MARK", "Mc": "MARK", "Me": "MARK", "Nd": "NUMBER", "Nl": "NUMBER", "No": "NUMBER"}
classes = ["OTHER"] * 0x110000
first = None
for line in open(f"{folder}/UnicodeData.txt"):
    code, name, category = line.split(";")[:3]
    code = int(code, 16)
    begin = first if name.endswith(", Last>") else code
    first = code
    for c in range(begin, code + 1):
        classes[c] = names.get(category, "OTHER")
for line in open(f"{folder}/PropList.txt"):
    if "; White_Space" in line:
        begin, _, end = line.split(";")[0].strip().partition("..")
        for c in range(int(begin, 16), int(end or begin, 16) + 1):
            classes[c] = "SPACE"

ranges = []  # (first, last, class); neighbours that alternate UPPER, LOWER become one CASED range
c = 0
while c < 0x110000:
    end = c
    while end + 1 < 0x110000 and classes[end + 1] == classes[c]:
        end += 1
    cased = c
    while classes[cased:cased + 2] == ["UPPER", "LOWER"]:
        cased += 2
    if cased - c >= 4:
        ranges.append((c, cased - 1, "CASED"))
        end = cased - 1
    elif classes[c] != "OTHER":
        ranges.append((c, end, classes[c]))
    c = end + 1

print(f"""/* Classes of characters, Unicode {version}; what is in no range is OTHER. Made by
 * tests/golden/unicode_classes.py. RANGE(first, last, class); CASED alternates UPPER and LOWER.
 * UPPER Lu Lt, LOWER Ll, LETTER Lm Lo, MARK M, NUMBER N, SPACE White_Space. */
#define UNICODE_VERSION "{version}\"""")
line = ""
for begin, end, name in ranges:
    item = f"RANGE({begin:#x}, {end:#x}, {name})"
    if len(line) + len(item) > 126:  # a table of less than 400 lines
        print(line.rstrip())
        line = ""
    line += item + " "
print(line.rstrip())
