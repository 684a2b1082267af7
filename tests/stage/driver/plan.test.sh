#!/usr/bin/env bash
# `millrace plan` says what a training takes, and plan and run refuse what does not fit, naming the
# account; the recipes of the 0.4B and 1.7B models hold what their first lines say.
. "$ROOT/tests/common/tap.sh"
echo "some text" >x.txt
cat >g.yaml <<'EOT'
name: toy
nodes:
  tokens: {run: tokenize, input: x.txt, vocabulary_size: 8192, sequence_length: 64}
  cfm: {run: pretrain, method: cfm, from: tokens, width: 256, batch: 8, micro_shards: 4}
EOT
"$millrace" plan g.yaml -np 2 >output 2>&1
[ $? -eq 0 ] && grep -q "parameters .* tables .* layers .* rest" output &&
  grep -q "memory of a rank .* weights .* moments .* gradients .* activations" output &&
  grep -q "GFLOP a token, .* sent by each rank" output && ok "plan prints parameters, memory and costs" ||
  not_ok "plan prints parameters, memory and costs" output
"$millrace" plan g.yaml -np 2 --memory 64MiB >output 2>&1
[ $? -eq 78 ] && says "most of it for" && says "g.yaml:4" &&
  ok "plan refuses what does not fit a host, naming the account" ||
  not_ok "plan refuses what does not fit a host, naming the account" output
"$millrace" run g.yaml --memory 64MiB >output 2>&1
[ $? -eq 78 ] && [ ! -e runs ] && ok "so does run, before it makes anything" ||
  not_ok "so does run, before it makes anything" output
"$millrace" plan g.yaml -np 4 --hosts 4 --memory 4GiB >output 2>&1 && ok "hosts share the ranks" ||
  not_ok "hosts share the ranks" output
"$millrace" plan g.yaml --memory lots >output 2>&1
[ $? -eq 64 ] && says "found 'lots'" && ok "a size that is none is refused" ||
  not_ok "a size that is none is refused" output
mkdir rates
printf 'name,value,unit,ratio,against\ngemm_wrapper,200,GFLOP/s,1,oneDNN\n' >rates/kernels.csv
printf 'name,value,unit,ratio,against\nstep_cfm_400m,90,GFLOP/s,0.45,gemm\n' >rates/step.csv
"$millrace" plan g.yaml --cores 2 --rates rates >output 2>&1
says "by measured rates: 100 GFLOP/s a core, of which steps reach 0.45" && ok "rates come from the tables of make bench" ||
  not_ok "rates come from the tables of make bench" output

size() { # size RECIPE: parameters in millions
  "$millrace" plan "$ROOT/jobs/recipes/$1.yaml" --set tokens.input=x.txt --set tokens.tokenizer_model=x.txt >output 2>&1
  sed -nE 's/^  parameters ([0-9.]+) M:.*/\1/p' output
}
[ "$(size cfm-1.7b)" = 1722 ] && ok "cfm-1.7b has 1.72B parameters" || not_ok "cfm-1.7b has 1.72B parameters" output
[ "$(size cfm-1.7b-wide)" = 2518 ] && ok "cfm-1.7b-wide has 2.5B with its tables" || not_ok "cfm-1.7b-wide has 2.5B with its tables" output
[ "$(size cfm-400m)" = 866.2 ] && ok "cfm-400m has 0.87B with its tables" || not_ok "cfm-400m has 0.87B with its tables" output

# On one machine of 24 GiB, 2 ranks that share the tables and 2 rows a step.
on_one_machine() { # on_one_machine RECIPE POSITIONS
  "$millrace" plan "$ROOT/jobs/recipes/$1.yaml" --set tokens.input=x.txt --set tokens.tokenizer_model=x.txt \
    --set "tokens.sequence_length=$2" -np 2 --set cfm.vocabulary_group=2 --set cfm.batch=2 \
    --set cfm.micro_shards=2 --memory 24GiB >output 2>&1
}
for positions in 1024 2048; do
  for recipe in cfm-400m cfm-1.7b; do
    check "$recipe with rows of $positions fits one machine" on_one_machine $recipe $positions
  done
  on_one_machine cfm-1.7b-wide $positions
  [ $? -eq 78 ] && says "most of it for moments, of the optimizer" &&
    ok "cfm-1.7b-wide with rows of $positions does not, and the account is named" ||
    not_ok "cfm-1.7b-wide with rows of $positions does not, and the account is named" output
done
activations() { sed -nE 's/.*activations ([0-9.]+) MiB.*/\1/p' output; }
on_one_machine cfm-400m 1024
short=$(activations)
on_one_machine cfm-400m 2048
check "activations grow with the rows" awk -v a="$short" -v b="$(activations)" 'BEGIN {exit !(b > 1.9 * a && b < 2.1 * a)}'
elf_size() { # elf_size RECIPE
  "$millrace" plan "$ROOT/jobs/recipes/$1.yaml" --node elf >output 2>&1
  sed -nE 's/^  parameters ([0-9.]+) M:.*/\1/p' output
}
for pair in b-owt:104.6 m-owt:342.5 l-owt:652.1 b-wmt14-de-en:104.6 b-xsum:104.6; do
  [ "$(elf_size "elf-${pair%:*}" | head -1)" = "${pair#*:}" ] && ok "elf-${pair%:*} has ${pair#*:}M parameters" ||
    not_ok "elf-${pair%:*} has ${pair#*:}M parameters" output
done
"$millrace" plan "$ROOT/jobs/recipes/cfm-sweep.yaml" --set tokens.input=x.txt >output 2>&1
check "cfm-sweep has 18 configurations" says "18 configurations, 0 of them finished: 17 trainings"
many="settings.grid=[base.cfm_lambda=[0,.5,.75,.9,1],base.seed=[1,2,3,4,5,6,7],base.cfm_prefix=[0,.1,.25,.5,1]]"
"$millrace" plan "$ROOT/jobs/recipes/cfm-sweep.yaml" --set tokens.input=x.txt --set "$many" >output 2>&1
check "hundreds of configurations can be planned" says "525 configurations, 0 of them finished: 524 trainings"
for recipe in uncond deen summary; do
  "$millrace" plan "$ROOT/jobs/recipes/elf-tiny-$recipe.yaml" --memory 4GiB >output 2>&1 &&
    ok "elf-tiny-$recipe fits two cores" || not_ok "elf-tiny-$recipe fits two cores" output
done
finish
