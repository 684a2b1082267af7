# R-ARC-1, R-DAT-4: what is damaged stops the node by name, or (damaged: quarantine) is left out, counted and
# listed with the reason, the same for any number of ranks.
. "$ROOT/tests/common/tap.sh"

mkdir -p in one
printf 'a\nb\n' >in/1-good.txt
printf 'no\0text' >in/2-binary
for i in $(seq 300); do echo "line $i of the first" >>one/first.txt; done
echo "the last" >one/last.txt
tar -C one -cf whole.tar first.txt last.txt
gzip -c whole.tar | head -c 300 >in/3-cut.tar.gz      # inside the gzip stream
head -c 7168 whole.tar >in/4-cut.tar                 # both entries are whole, the end mark is missing
printf 'z\n' >in/5-good.txt
cat >t.yaml <<'EOF2'
name: t
nodes:
  tokens: {run: tokenize, input: [in], boundary: line, tokenizer: byte, held_out: 0, sequence_length: 8}
EOF2
"$millrace" run t.yaml -np 1 >output 2>&1
check "damage stops the node" [ $? -eq 65 ]
check "and is named" says "in/2-binary"
rm in/2-binary
"$millrace" run t.yaml -np 1 >output 2>&1
check "so does a cut archive" [ $? -eq 65 ]
check "which is named with its reason" says "3-cut.tar.gz: first.txt: byte 0: the gzip stream was cut off"
printf 'no\0text' >in/2-binary

counts() { # of the run in the folder $1
  "$millrace" run t.yaml -np "$2" --runs "$1" --set tokens.damaged=quarantine >output 2>&1 || return 1
  sed -nE 's/^ *"(documents|refused_documents|refused_entries)": ([0-9]+).*/\1 \2/p' "$1/t/tokens/statistics.json" |
    head -4 >counts
}
for np in 1 2 3; do
  check "damaged: quarantine finishes on $np ranks" counts "r$np" $np
  mv counts "counts$np"
done
list=r1/t/tokens/quarantine.jsonl
cat counts1 "$list" >output
check "a file, an entry and what follows it, and the end of an archive are refused" says "refused_entries 4"
check "no document by itself" says "refused_documents 0"
check "each is listed by name" [ "$(grep -c -e '2-binary.*neither text' -e '3-cut.tar.gz.*' -e '4-cut.tar.*cut off here' $list)" -eq 4 ]
check "the list is the same for 2 ranks" cmp $list r2/t/tokens/quarantine.jsonl
check "and for 3" cmp $list r3/t/tokens/quarantine.jsonl
check "so are the rows" cmp r1/t/tokens/train-*.zst r3/t/tokens/train-*.zst
"$millrace" data verify r1/t/tokens >output 2>&1
check "the list is an output like others" says "quarantine.jsonl: sound"
check "the log says so" grep -q "0 documents and 4 entries or files are damaged" r1/t/tokens.log

mkdir lines
printf '{"a":{"b":"one"}}\n{"a":{"b":2}}\nnot JSON\n{"a":{"b":"two"}}\n' >lines/x.jsonl
cat >k.yaml <<'EOF2'
name: k
nodes:
  tokens: {run: tokenize, input: [lines], boundary: key, text_key: a.b, tokenizer: byte, held_out: 0, sequence_length: 8}
EOF2
"$millrace" run k.yaml -np 1 >output 2>&1
check "a JSON line without the key stops the node" [ $? -eq 78 ]
check "with the key and the byte" says "byte 18 has no string under the key 'a.b'"
"$millrace" run k.yaml -np 1 --set tokens.damaged=quarantine >output 2>&1
check "damaged: quarantine goes on" [ $? -eq 0 ]
sed -nE 's/.*"byte": ([0-9]+), "what": "([a-z]+)".*/\1 \2/p' runs/k/tokens/quarantine.jsonl >output
check "and lists both lines" [ "$(tr '\n' ' ' <output)" = "18 document 32 document " ]
"$millrace" data head runs/k/tokens tokens 3 >output 2>&1
check "the others are read" [ "$(grep -c '\[8\] ' output)" -ge 1 ]
finish
