# Stops, kills and two drivers at once: nothing runs twice, nothing blocks a restart (R-SLM-1,
# R-FS-4, R-DAT-5).
. "$ROOT/tests/common/tap.sh"
make_graph

wait_for() { # wait_for COMMAND...: up to a minute
  for _ in $(seq 1200); do "$@" >/dev/null 2>&1 && return 0; sleep 0.05; done
  return 1
}
started() { grep -qx "$1" runs/g/trace; }

FAKE="elf=sleep90" "$millrace" run g.yaml $fake >output 2>&1 &
driver=$!
wait_for started elf
kill -TERM $driver
wait $driver
check "TERM stops the node and the driver with 75" [ $? -eq 75 ]
check "the stage was asked, not killed" says "asked to stop"
check "no lease is left" [ ! -e runs/g/elf.lease ]

# two drivers of one run folder
FAKE="elf=sleep1 ar=sleep1" "$millrace" run g.yaml $fake >first 2>&1 &
first=$!
FAKE="elf=sleep1 ar=sleep1" "$millrace" run g.yaml $fake >second 2>&1 &
second=$!
wait $first; code=$?
wait $second; code=$code$?
cat first second >output
check "two drivers at once both succeed" [ "$code" = 00 ]
check "one waited for the other" says "waiting for process"
sort runs/g/trace | uniq -c | awk '$2 != "elf" && $1 != 1 || $2 == "elf" && $1 != 2' >twice
check "no node ran twice" [ ! -s twice ]

# another recipe under the same name while a node is at work
rm -r runs
FAKE="tokens=sleep90" "$millrace" run g.yaml $fake >first 2>&1 &
first=$!
wait_for started tokens
run g.yaml --set elf.steps=99
check "other options while a node is at work are refused" [ $? -eq 78 ]
check "and the holder is named" says "is at work (process"
kill -TERM $first
wait $first

# kill -9 of the driver alone, then of everything
rm -r runs
FAKE="elf=sleep90" setsid "$millrace" run g.yaml $fake >first 2>&1 &
driver=$!
wait_for started elf
kill -9 $driver
wait $driver 2>/dev/null
check "a killed driver leaves its lease" [ -e runs/g/elf.lease ]
run g.yaml
check "the next start ends what is left and goes on" says "all 7 nodes of 'g' are finished"
"$millrace" status >output 2>&1
check "the ledger knows both attempts" grep -q "^elf .*attempts 2, last exit 0" output

rm -r runs
for moment in 1 2 3 4 5; do
  FAKE="elf=sleep1 ar=sleep1" setsid "$millrace" run g.yaml $fake >first 2>&1 &
  driver=$!
  sleep "0.$((RANDOM % 9))"
  kill -9 -- -$driver 2>/dev/null
  wait $driver 2>/dev/null
done
run g.yaml
check "after five kills of the process group the run completes" [ $? -eq 0 ]

# a lease of a machine that is gone: another host, not touched for long
rm -r runs/g/ar
echo "elsewhere 00000000-0000 17 1" >runs/g/ar.lease
touch -d '1 hour ago' runs/g/ar.lease
run g.yaml
check "an old lease of another host does not block" says "all 7 nodes of 'g' are finished"
printf 'cut off' >runs/g/ar.lease
rm -r runs/g/ar
run g.yaml
check "a lease cut short by a crash does not block" says "all 7 nodes of 'g' are finished"
finish
