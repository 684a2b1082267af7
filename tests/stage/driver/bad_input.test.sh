# Wrong recipes, command lines and rank counts: a one-line reason, where, and the exit code (issue 2,
# "Bad input"; R-DLM-10, R-ELA-4, R-SLM-6).
. "$ROOT/tests/common/tap.sh"
make_graph

ends() { # ends NAME CODE MESSAGE ARGUMENTS...
  local name=$1 code=$2 message=$3 got
  shift 3
  "$millrace" "$@" >output 2>&1
  got=$?
  check "$name" [ "$got" -eq "$code" -a "$(grep -cF -- "$message" output)" -gt 0 ]
}

ends "unknown command" 64 "did you mean 'status'" sttus
ends "unknown flag" 64 "did you mean '--set'" run g.yaml --st elf.steps=3
ends "flag without value" 64 "--set needs a value" run g.yaml --set
ends "no recipe" 64 "expected one recipe" run
ends "missing recipe" 78 "cannot open 'no.yaml'" run no.yaml
ends "unknown option, nearest and place" 78 "unknown option 'stps'; did you mean 'steps'" \
  run g.yaml --set elf.stps=3
ends "rank count that the batch does not admit lists those it does" 78 \
  "admissible counts are 1 2 4" run g.yaml $fake -np 3
sed 's/input: a.txt/input: b.txt/' g.yaml >b.yaml
ends "missing file" 78 "node 'tokens': input: cannot look at '$PWD/b.txt'" run b.yaml $fake
sed 's/from: \[text, ar\]/from: [text, report]/' g.yaml >c.yaml
ends "input of a kind that cannot be read" 78 "c.yaml:10: from: node 'scores' runs evaluate" run c.yaml
ends "missing stage program" 69 "cannot find 'nowhere'" run g.yaml --stage-program nowhere
ends "no runs yet" 78 "there are no runs in 'runs'" status
ends "unknown kind" 64 "did you mean 'pretrain'" options pretran
ends "options of a kind" 0 "learning_rate" options pretrain
ends "help" 0 "RECIPE" help

FAKE="elf=exit65" run g.yaml
code=$?
check "the exit code of a failed node is the driver's" [ $code -eq 65 ]
check "the log is named" says "log: $PWD/runs/g/elf.log"
check "the next command is named" says "Next: restore or remake the named file: $millrace run g.yaml"
check "nothing after it ran" traced "tokens latents elf"
FAKE="elf=nothing" run g.yaml
check "a stage that publishes nothing is an internal error" [ $? -eq 70 ]
FAKE="elf=kill9" run g.yaml
check "a killed rank is the environment's fault" [ $? -eq 69 ]
run g.yaml
check "the same command resumes" says "all 7 nodes of 'g' are finished"
check "and said that it did" grep -q "elf .*resuming" output
finish
