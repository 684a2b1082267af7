# What runs again and what does not; what `why` and `status` say (issue 2, bars; R-DLM-10).
. "$ROOT/tests/common/tap.sh"
make_graph

run g.yaml
check "a fresh run makes every node in order" traced "tokens latents elf ar text scores report"
start=$(date +%s%N)
run g.yaml
elapsed=$((($(date +%s%N) - start) / 1000000))
check "a finished run has nothing to do" says "nothing to do: all 7 nodes of 'g' are finished"
check "and says so in under two seconds" [ "$elapsed" -lt 2000 ]

: >runs/g/trace
run g.yaml --set elf.steps=20
check "a changed option reruns its node and the dependents only" traced "elf text scores report"
check "the reason is said" says "elf            pretrain on 2 ranks again: steps: 10 -> 20"

: >runs/g/trace
run g.yaml --set elf.steps=20 --set elf.log_every=3 --set elf.checkpoint_every=7 -np 1
check "options that cannot change results rerun nothing" says "nothing to do"

"$millrace" why scores g.yaml >output 2>&1
check "why leads from a node to the option" says "      steps: 20 -> 10"
"$millrace" why ar >output 2>&1
check "why of a finished node says that it is finished" says "ar is finished"
"$millrace" why arr >output 2>&1
check "why of an unknown node names the nearest" says "did you mean 'ar'?"

sed -i '/^rules: /d' runs/g/text/fingerprint
: >runs/g/trace
run g.yaml --set elf.steps=20
check "what was drawn by earlier rules is drawn again, and what was trained stays" traced "text"
check "the reason is said, too" says "again: rules: 2 is new"

touch -d '2001-01-01' a.txt
run g.yaml --set elf.steps=20
check "a touched corpus with the same content is the same" says "nothing to do"
echo "another text" >a.txt
: >runs/g/trace
run g.yaml --set elf.steps=20
check "a changed corpus reruns everything" traced "tokens latents elf ar text scores report"
check "and the reason names the input" says "again: input[0]: its content changed"

"$millrace" plan g.yaml --set elf.steps=20 --set ar.steps=11 $fake >output 2>&1
check "plan counts what would run" says "3 of 7 nodes to make"
check "plan shows the launch line" says "fake_stage pretrain --run $PWD/runs/g --node ar"
: >runs/g/trace
run g.yaml --set elf.steps=20
check "plan changes nothing" says "nothing to do"

rm runs/g/ar/out.txt
"$millrace" status >output 2>&1
check "status shows a damaged node" grep -q "^ar .*blocked .*out.txt" output
run g.yaml --set elf.steps=20
check "a finished node that lost a file is damage, exit 65" says "(exit 65)"
rm -r runs/g/ar
run g.yaml --set elf.steps=20
check "removing its folder makes it again" says "ar             finished"

"$millrace" status runs/g >output 2>&1
check "status reads a run folder" says "report         report     finished"
cp runs/g/resolved.yaml again.yaml
run again.yaml
check "and running it has nothing to do" says "nothing to do"
finish
