# Millrace. `make help` lists the targets.
#
#   MODE   fast (default) | debug | asan | fuzz   CC   gcc | clang (sets the C++ compiler too)
#   BUILD  where everything is built              NP   ranks of the main job
#   WERROR=1  warnings are errors                 V=1  print whole commands
#   CORPUS text for the main job                  TESTS  only tests whose path contains this
#   FUZZ_SECONDS  of processor time for each fuzz target of make soak-fuzz

MODE ?= fast
BUILD ?= build
NP ?= 2
CORPUS ?=
TESTS ?=
FUZZ_SECONDS ?= 600
ifneq ($(origin CC),command line)
  CC := gcc
endif
CXX := $(if $(findstring clang,$(CC)),clang++,g++)

OUT := $(BUILD)/$(MODE)-$(notdir $(CC))
LAYERS := pipeline sharding monitoring stages
PROGRAMS := millrace millrace-stage millrace-report

# --- flags ------------------------------------------------------------------------------------
WARNINGS := $(if $(WERROR),-Werror) -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef
C_WARNINGS := $(WARNINGS) -Wstrict-prototypes -Wmissing-prototypes -Wvla-larger-than=0
ifneq ($(findstring clang,$(CC)),)
  C_WARNINGS := $(filter-out -Wvla-larger-than=0,$(C_WARNINGS))
endif
MODE_debug := -O1 -g
MODE_fast := -O3 -g -fno-math-errno -fno-trapping-math
MODE_asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
# For fuzz targets under clang's libFuzzer, which brings its own main.
MODE_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -DFUZZ_LIBRARY
OPTIMISE := $(MODE_$(MODE))
ifeq ($(OPTIMISE),)
  $(error MODE=$(MODE) is not one of: fast debug asan fuzz)
endif
# Contraction off: gcc and clang round alike, and a sum has the same bits wherever it is compiled.
COMMON := $(OPTIMISE) -ffp-contract=off -fopenmp -pthread -I. -D_POSIX_C_SOURCE=200809L
BUILD_ID := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unversioned)

MPI_CFLAGS := $(patsubst -I%,-isystem %,$(shell pkg-config --cflags-only-I ompi-c 2>/dev/null))
MPI_LIBS := $(shell pkg-config --libs ompi-c 2>/dev/null)
LIBS_pipeline := -lyaml -ljansson -larchive -lzstd -lxxhash -lm
LIBS_sharding := -lscalapack-openmpi $(MPI_LIBS) -llapack -lblas -lhwloc
LIBS_monitoring :=
LIBS_stages := -ldnnl -lsentencepiece -lsentencepiece_train -lz -lstdc++

# Files named for an instruction set are compiled for it and called only where the CPU has it.
ISA_avx2 := -mavx2 -mfma -mf16c
ISA_avx512 := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma
ISA_avx512bf16 := $(ISA_avx512) -mavx512bf16
ISA_amx := $(ISA_avx512bf16) -mamx-tile -mamx-bf16
ISAS := avx2 avx512 avx512bf16 amx
isa = $(foreach i,$(ISAS),$(if $(filter %_$(i).c,$1),$(ISA_$(i))))

# --- files ------------------------------------------------------------------------------------
SOURCES := $(shell find $(LAYERS) -name '*.c' -o -name '*.cpp' | LC_ALL=C sort)
ifeq ($(MODE),fuzz) # parsers need no networks
  SOURCES := $(filter-out $(foreach f,embed model flow train sample evaluate,stages/$f/%),$(SOURCES))
endif
MAINS := pipeline/driver/main.c stages/main.c monitoring/main.c
objects = $(patsubst %,$(OUT)/%.o,$(basename $1))
layer_objects = $(call objects,$(filter-out $(MAINS),$(filter $1/%,$(SOURCES))))

upto_pipeline := pipeline
upto_sharding := sharding pipeline
upto_monitoring := monitoring sharding pipeline
upto_stages := stages monitoring sharding pipeline
archives = $(foreach l,$(upto_$1),$(OUT)/lib$(l).a) $(KEEP_LOADED)
libraries = $(foreach l,$(upto_$1),$(LIBS_$(l))) $(KEEP_LOADED_FLAGS)
ifeq ($(MODE),asan)
  KEEP_LOADED := $(OUT)/tests/common/sanitized/keep_loaded.o
  KEEP_LOADED_FLAGS := -Wl,--export-dynamic-symbol=dlclose
endif

TEST_SOURCES := $(shell find tests -name '*.c' -not -path 'tests/bench/*' -not -path 'tests/fuzz/*' \
  -not -path 'tests/common/*' -not -path 'tests/tools/*' | LC_ALL=C sort)
TEST_COMMON := $(wildcard tests/common/*.c)
TEST_SCRIPTS := $(shell find tests -name '*.test.sh' | LC_ALL=C sort)
TEST_PROGRAMS := $(patsubst %.c,$(OUT)/%,$(TEST_SOURCES))
ifeq ($(MODE),asan) # long runs of nodes that other tests run, and tests of this tree's texts: once is enough
  ONCE := tests/stage/driver/sweep.% tests/stage/demo.% tests/stage/results% tests/stage/evaluate/likelihood.% tests/fence/%
endif
TESTS_RUN = $(if $(TESTS),$(foreach t,$(TEST_SCRIPTS) $(TEST_PROGRAMS),$(if $(findstring $(TESTS),$t),$t)),\
  $(filter-out $(ONCE),$(TEST_SCRIPTS)) $(TEST_PROGRAMS))
TOOL_SOURCES := $(wildcard tests/tools/*.c)
TOOL_PROGRAMS := $(patsubst %.c,$(OUT)/%,$(TOOL_SOURCES))
FUZZ_SOURCES := $(filter-out tests/fuzz/driver.c,$(wildcard tests/fuzz/*.c))
FUZZ_PROGRAMS := $(patsubst %.c,$(OUT)/%,$(FUZZ_SOURCES))
ifneq ($(MODE),asan) # speed under sanitizers says nothing
  BENCH_PROGRAMS := $(patsubst %.c,$(OUT)/%,$(wildcard tests/bench/*.c))
endif

# $1 $2: which files, as git lists them; $3: flags of their instruction set.
tidy = git ls-files $1 $2 | xargs -P 2 -n 8 sh -c 'clang-tidy --quiet "$$@" -- -std=c17 $(COMMON) $3 \
  -DBUILD_ID="\"\"" -DBUILD_MODE="\"\"" $(MPI_CFLAGS)' sh

# --- targets ----------------------------------------------------------------------------------
.PHONY: all run test check fence bench bench-peers results-cfm results-elf soak soak-1.7b soak-1.7b-distill soak-data soak-fuzz golden format tidy deps help clean
.DEFAULT_GOAL := all

all: $(addprefix $(OUT)/,$(PROGRAMS)) ## build the programs

run: deps ## the main job: train and compare four models on real text
	@$(MAKE) --no-print-directory -j2 all
	@CORPUS='$(CORPUS)' NP='$(NP)' OUT='$(OUT)' jobs/demo.sh

test: deps ## unit, gradient, property, parallel, golden, stage and fault tests
	@$(MAKE) --no-print-directory -j2 test-programs
	@OUT='$(OUT)' tests/run $(TESTS_RUN)

.PHONY: test-programs test-objects
test-programs: all $(TEST_PROGRAMS) $(TOOL_PROGRAMS) $(FUZZ_PROGRAMS) $(BENCH_PROGRAMS) ## build the programs, the tests and the benches
test-objects: all $(addsuffix .o,$(TEST_PROGRAMS) $(TOOL_PROGRAMS) $(FUZZ_PROGRAMS) $(BENCH_PROGRAMS)) ## as test-programs, without linking these

check: ## the tests under address, undefined-behaviour and leak sanitizers
	@$(MAKE) --no-print-directory MODE=asan test

fence: ## prove that layers call and include downwards only, and measure functions and files
	@tests/fence/fence .
	@tests/fence/lines .

bench: deps ## measure the hot paths; writes build/bench/*.csv
	@$(MAKE) --no-print-directory MODE=fast bench-programs
	@OUT='$(OUT)' BUILD='$(BUILD)' tests/bench/run

bench-peers: deps ## race other implementations with ours; writes build/bench/peers.csv (needs PyPI)
	@$(MAKE) --no-print-directory MODE=fast bench-programs
	@OUT='$(OUT)' BUILD='$(BUILD)' tests/bench/peers/run

.PHONY: bench-programs
bench-programs: all $(BENCH_PROGRAMS) ## build the programs and the benches

results-cfm: deps ## train categorical flow maps for three seeds and write pipeline/docs/results/cfm.md; hours, resumable
	@$(MAKE) --no-print-directory -j2 all $(OUT)/tests/tools/results_cfm
	@OUT='$(OUT)' NP='$(NP)' RECIPE='$(RECIPE)' SEEDS='$(SEEDS)' $(if $(LAMBDAS),LAMBDAS='$(LAMBDAS)') LAMBDA_SEEDS='$(LAMBDA_SEEDS)' SET='$(SET)' CORPUS='$(CORPUS)' tests/results/cfm

soak-1.7b: deps ## train 3 steps of 1.72B parameters on this machine, kill and resume; 21 GiB of memory
	@$(MAKE) --no-print-directory -j2 all $(OUT)/tests/tools/product_rate
	@OUT='$(OUT)' tests/soak/train_1b7

soak-1.7b-distill: deps ## train 20 steps of 1.72B parameters and distill 3, on one rank; 20 GiB of memory
	@$(MAKE) --no-print-directory -j2 all
	@OUT='$(OUT)' tests/soak/distill_1b7

results-elf: deps ## hours: run the small ELF recipes for three seeds and write pipeline/docs/results/elf.md; resumable
	@$(MAKE) --no-print-directory -j2 all $(OUT)/tests/tools/chart
	@OUT='$(OUT)' tests/results/elf

soak: deps soak-data ## hours, not minutes: kills during the main job, and all that soak-data does
	@$(MAKE) --no-print-directory -j2 all
	@OUT='$(OUT)' tests/soak/demo_kills

soak-data: deps ## an hour or more: kills of tokenize, the archive zoo, exact tokens, fuzzing
	@$(MAKE) --no-print-directory -j2 test-programs
	@OUT='$(OUT)' MAKE='$(MAKE)' FUZZ_SECONDS='$(FUZZ_SECONDS)' tests/soak/data

soak-fuzz: deps ## fuzz every parser for FUZZ_SECONDS, one after another
	@MAKE='$(MAKE)' BUILD='$(BUILD)' FUZZ_SECONDS='$(FUZZ_SECONDS)' tests/soak/fuzz

.PHONY: fuzz-programs
fuzz-programs: $(FUZZ_PROGRAMS) ## build the fuzz targets; MODE=fuzz CC=clang: with libFuzzer

golden: ## remake the golden numbers of tests/golden (needs Python packages)
	@tests/golden/make

format: ## format the code in place
	@git ls-files '*.c' '*.h' '*.cpp' 'stages/*.inc' | xargs clang-format -i

tidy: ## static analysis with clang-tidy
	@$(call tidy,':!*_avx*.c' ':!*_amx.c','*.c',)
	@$(foreach i,$(ISAS),$(call tidy,'*_$(i).c',,$(ISA_$(i)));)

deps: ## install the Debian packages, or print the command that does
	@.ci/deps

clean: ## remove everything built
	rm -rf $(BUILD)

help: ## this list
	@awk -F':.*## ' '/^[a-z0-9.-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# `make V=1` prints whole commands.
Q := $(if $(V),,@)
say = $(if $(V),@:,@echo '  $1 $(patsubst $(OUT)/%,%,$@)')

# --- rules ------------------------------------------------------------------------------------
$(OUT)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) -std=c17 $(COMMON) $(C_WARNINGS) $(call isa,$<) $(MPI_CFLAGS) -DBUILD_MODE='"$(MODE)"' -MMD -MP -c $< -o $@

$(OUT)/%.o: %.cpp
	@mkdir -p $(@D)
	$(call say,CXX)
	$(Q)$(CXX) -std=c++17 $(COMMON) $(WARNINGS) -MMD -MP -c $< -o $@

$(OUT)/stages/tokenize/sentencepiece.o: COMMON += \
  -DSENTENCEPIECE_VERSION='"$(shell pkg-config --modversion sentencepiece 2>/dev/null || echo unknown)"'

# The build id is compiled into one file, and only when it changes.
$(OUT)/build_id.h: FORCE
	@mkdir -p $(@D)
	@echo '#define BUILD_ID "$(BUILD_ID)"' | cmp -s - $@ || echo '#define BUILD_ID "$(BUILD_ID)"' >$@
.PHONY: FORCE
$(OUT)/pipeline/base/build.o: $(OUT)/build_id.h
$(OUT)/pipeline/base/build.o: COMMON += -include $(OUT)/build_id.h

define archive_rule
$(OUT)/lib$1.a: $(call layer_objects,$1)
	@mkdir -p $$(@D)
	@rm -f $$@
	@ar rcs $$@ $$^
endef
$(foreach l,$(LAYERS),$(eval $(call archive_rule,$(l))))

$(OUT)/millrace: $(OUT)/pipeline/driver/main.o $(call archives,pipeline)
	$(call say,LD)
	$(Q)$(CC) $(COMMON) $^ $(call libraries,pipeline) -o $@

$(OUT)/millrace-report: $(OUT)/monitoring/main.o $(call archives,monitoring)
	$(call say,LD)
	$(Q)$(CC) $(COMMON) $^ $(call libraries,monitoring) -o $@

$(OUT)/millrace-stage: $(OUT)/stages/main.o $(call archives,stages)
	$(call say,LD)
	$(Q)$(CC) $(COMMON) $^ $(call libraries,stages) -o $@

$(OUT)/libtests.a: $(call objects,$(TEST_COMMON))
	@rm -f $@
	ar rcs $@ $^

# A unit test sees its own layer and those below; every other test sees everything.
test_layer = $(or $(word 3,$(subst /, ,$(filter tests/unit/%,$1))),stages)
define test_rule
$(OUT)/$(basename $1): $(OUT)/$(basename $1).o $(OUT)/libtests.a $(call archives,$(call test_layer,$1))
	$$(call say,LD)
	$(Q)$(CC) $(COMMON) $$^ $(call libraries,$(call test_layer,$1)) -lcmocka -lpcre2-8 -o $$@
endef
$(foreach t,$(TEST_SOURCES) $(TOOL_SOURCES) $(wildcard tests/bench/*.c),$(eval $(call test_rule,$(t))))

define fuzz_rule
$(OUT)/$(basename $1): $(OUT)/$(basename $1).o $(OUT)/tests/fuzz/driver.o $(OUT)/libtests.a $(call archives,stages)
	$$(call say,LD)
	$(Q)$(if $(filter fuzz,$(MODE)),$(CXX) -fsanitize=fuzzer,$(CC)) $(COMMON) $$^ $(call libraries,stages) -lcmocka -o $$@
endef
$(foreach t,$(FUZZ_SOURCES),$(eval $(call fuzz_rule,$(t))))

-include $(shell find $(OUT) -name '*.d' 2>/dev/null)
