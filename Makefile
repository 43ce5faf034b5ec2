# ridge -- `make help` lists the targets. Every variable here can be set on the command line: make CC=clang SAN=1 test

CC         ?= cc
HOSTCC     ?= $(CC)
AR         ?= ar
PKG_CONFIG ?= pkg-config
PREFIX     ?= /usr/local
DESTDIR    ?=
# SAN=1: under the address and undefined-behaviour sanitizers, in a build folder of its own. Their reports need lines and no
# variables; -O2 -g takes gcc over twice as long there and finds the same.
SAN        ?=
CFLAGS     ?= $(if $(call on,$(SAN)),-O1 -g1,-O2 -g)
# STRICT=1: warnings are errors.
STRICT     ?=
BUILD      ?= build$(if $(call on,$(SAN)),/san)
# Q= (empty): print every command.
Q          ?= @
JOBS       ?= $(shell nproc 2>/dev/null || echo 1)
FUZZ_CC    ?= clang
# Seconds for each fuzz target.
FUZZ_S     ?= 600
DEMO       ?= estimate -m llama-2-13b -g h100-sxm --batch 1,16,64,256 --context 1024

# Libraries by their pkg-config names; a library without one goes to LDLIBS.
PACKAGES      := json-c gsl sqlite3
TEST_PACKAGES := cmocka gmp

# ---------------------------------------------------------------------------------------------------------------------

on      = $(filter-out 0 no,$(1))
libs    = $(or $(shell $(PKG_CONFIG) --libs $(1) 2>/dev/null),$(addprefix -l,$(1)))
headers = $(shell $(PKG_CONFIG) --cflags $(1) 2>/dev/null)
quote   = '$(subst ','\'',$(1))'
say     = $(if $(Q),@printf '  %-7s %s\n' $(1) $(2))
jobs    = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS))
# $(call keep,TEXT): rewrite the target only when TEXT is not what it already holds.
keep    = @mkdir -p $(@D); printf '%s\n' $(call quote,$(1)) >$@.new; \
          if cmp -s $@.new $@; then rm -f $@.new; else mv -f $@.new $@; fi

SRC     := $(sort $(wildcard calc/*/*.c probe/*.c))
MAIN    := calc/cli/main.c
DATA    := $(sort $(wildcard configs/*/*.json plots/*.gp calc/MODEL.md))
TEST    := $(sort $(wildcard tests/test_*.c))
SIMT_HELP := tests/simt_check.c
HELPER  := $(filter-out $(TEST) $(SIMT_HELP),$(sort $(wildcard tests/*.c)))
# The worker of the CPU: the code that is measured and what measures it; tests have it but for its main.
WORKER  := $(sort $(wildcard kernels/*.c probe/worker/*.c))
FAKE    := tests/worker/fake.c
# Libraries that stand for those of a card in tests, loaded as they are.
FAKE_SO := $(patsubst tests/worker/lib%.c,$(BUILD)/tests/lib%.so,$(sort $(wildcard tests/worker/lib*.c)))
# CUDA: for a card where there is nvcc; for the host, as C with kernels/simt/, in tests.
CUDA    := $(sort $(wildcard kernels/*.cu))
SIMT    := $(sort $(wildcard kernels/simt/*.c))
NVCC    ?= $(shell command -v nvcc 2>/dev/null)
CUDA_HOME ?= $(if $(NVCC),$(abspath $(dir $(realpath $(NVCC)))..))
# The worker of a card: what the CPU's has but for its device, kernels for the card, the library's, and how they are timed.
CARD    := $(sort $(wildcard kernels/cuda/*.c probe/worker/cuda/*.c))
CARD_CU := $(sort $(wildcard probe/worker/cuda/*.cu))
BENCH   := $(sort $(wildcard tests/bench/bench_*.c))
FUZZ    := $(sort $(wildcard tests/fuzz/fuzz_*.c))
VERSION := $(shell { test -e .git && GIT_OPTIONAL_LOCKS=0 git describe --always --dirty 2>/dev/null || \
                     cat VERSION 2>/dev/null || echo 0.1.0; } | tr -cd 'A-Za-z0-9.+_-')

LIB_OBJ  := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out $(MAIN),$(SRC))) $(BUILD)/obj/embed_data.o
MAIN_OBJ := $(MAIN:%.c=$(BUILD)/obj/%.o)
WORK_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out probe/worker/main.c,$(WORKER)))
SIMT_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(SIMT) $(SIMT_HELP)) $(CUDA:%.cu=$(BUILD)/obj/%.simt.o)
CUDA_OBJ := $(if $(NVCC),$(CUDA:%.cu=$(BUILD)/cuda/%.o))
CARD_OBJ := $(if $(NVCC),$(CARD:%.c=$(BUILD)/cuda/%.o) $(CARD_CU:%.cu=$(BUILD)/cuda/%.o))
# Not under the sanitizers, which CUDA's memory does not go with.
CARD_BIN := $(if $(NVCC),$(if $(call on,$(SAN)),,$(BUILD)/ridge-worker-cuda))
HELP_OBJ := $(HELPER:%.c=$(BUILD)/obj/%.o)
FUZZ_OBJ := $(LIB_OBJ:$(BUILD)/obj/%=$(BUILD)/fuzz/obj/%)
TESTS    := $(TEST:tests/%.c=$(BUILD)/tests/%)
BENCHES  := $(BENCH:tests/bench/%.c=$(BUILD)/bench/%)
FUZZERS  := $(FUZZ:tests/fuzz/%.c=$(BUILD)/fuzz/%)
MUT       := $(BUILD)/mutate
MUT_SRC   := $(sort $(wildcard calc/cost/*.c calc/time/*.c))
MUT_TOOL  := $(addprefix tools/mutate/,lex.c expr.c file.c main.c)
MUT_OBJ   := $(MUT_SRC:%.c=$(MUT)/obj/%.o) $(MUT)/mutant.o
# test_simt* are of kernels alone, those of libraries of a card of what calls them.
MUT_TESTS := $(patsubst tests/%.c,$(MUT)/tests/%,$(filter-out tests/test_simt%.c tests/test_cupti.c tests/test_nccl.c,$(TEST)))
MUT_CASES := $(foreach c,$(sort $(wildcard tests/cli/*.case)),'RIDGE=$(MUT)/ridge sh tests/cli.sh $(c)')
# The version goes only to the files that print it.
VERSIONED := $(if $(SRC),$(shell grep -l RIDGE_VERSION $(SRC) $(WORKER)))

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Wvla \
        -Wformat=2 -Wundef -Wdouble-promotion -Wswitch-enum -Wcast-qual $(if $(call on,$(STRICT)),-Werror)
# One rounding per operation, so that numbers are the same on every machine and compiler.
LANG_FLAGS := -std=c11 -D_POSIX_C_SOURCE=200809L -ffp-contract=off -I.
# The same objects go into ridge and into the shared library that tests are linked to.
PIC        := -fPIC -fno-semantic-interposition
# Without wrapped pointers: a quarter of the code and a tenth of the time, for what the address sanitizer stops at the access.
SAN_FLAGS  := -fno-omit-frame-pointer -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all \
              -fno-sanitize=pointer-overflow
# gcc allots registers to a whole function at once there: loop by loop takes up to half of its time where kernels are unrolled.
SAN_GCC    := $(if $(call on,$(SAN)),$(if $(findstring clang,$(shell $(CC) --version 2>/dev/null)),,-fira-region=one))
FLAGS      = $(LANG_FLAGS) $(PIC) $(WARN) $(call headers,$(PACKAGES)) $(CPPFLAGS) $(CFLAGS) $(if $(call on,$(SAN)),$(SAN_FLAGS))
FLAGS      := $(FLAGS) $(SAN_GCC)
FUZZ_FLAGS := $(LANG_FLAGS) $(call headers,$(PACKAGES)) -O1 -g $(SAN_FLAGS)
LDLIBS     := $(call libs,$(PACKAGES)) -lm
TEST_LIBS  := $(call libs,$(TEST_PACKAGES))
# Cards from Ampere on; machine code for Ampere and Hopper, PTX for what comes.
NVCC_FLAGS := -std=c++17 -O3 -I. -gencode arch=compute_80,code=[sm_80,compute_80] \
              -gencode arch=compute_90a,code=sm_90a -Xptxas -v -Xcompiler -fno-exceptions,-fno-threadsafe-statics

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
.PHONY: FORCE

# --- what people run ---------------------------------------------------------------------------------------------------

.PHONY: demo
demo: deps ## install what is missing, build, and run the main job
	@$(MAKE) --no-print-directory $(jobs) all
	@echo '$$ ridge $(DEMO)'
	@$(BUILD)/ridge $(DEMO)

.PHONY: all
all: $(BUILD)/ridge $(BUILD)/ridge-worker-cpu $(CARD_BIN) ## build ridge and its workers (the default)
	$(if $(NVCC),,@echo '  note    no nvcc: ridge-worker-cuda is left out')

.PHONY: test
test: deps ## install what is missing, build and run every test (SAN=1: under the sanitizers)
	@$(MAKE) --no-print-directory $(jobs) check

.PHONY: check
check: all tests ## the tests alone, installing nothing
	@RIDGE=$(BUILD)/ridge sh tests/run.sh $(TESTS)

# Benchmarks and fuzz targets too, so that they keep compiling (once is enough: not under the sanitizers); only `bench` and
# `fuzz` run them.
.PHONY: tests
tests: $(TESTS) $(BUILD)/tests/fake-worker $(FAKE_SO) $(if $(call on,$(SAN)),,$(BENCHES) $(FUZZ:%.c=$(BUILD)/obj/%.o))

# Every source through the compiler. With CFLAGS=-fsyntax-only nothing is left of it but what it said.
.PHONY: warnings
warnings: $(MAIN_OBJ) $(LIB_OBJ) $(WORK_OBJ) $(HELP_OBJ) $(SIMT_OBJ) $(BUILD)/obj/probe/worker/main.o \
          $(patsubst %.c,$(BUILD)/obj/%.o,$(TEST) $(BENCH) $(FUZZ) $(FAKE) $(wildcard tests/worker/lib*.c))

.PHONY: latex
latex: $(BUILD)/ridge ## compile every page of `ridge explain --latex` with pdflatex, where there is one
	@RIDGE=$(BUILD)/ridge sh tests/latex.sh

.PHONY: arm
arm: ## cross-compile for aarch64 and run the kernels' tests under qemu, where both are (minutes)
	@MAKE='$(MAKE)' BUILD=$(BUILD)/arm JOBS=$(JOBS) sh tools/arm.sh

.PHONY: bench
bench: $(BENCHES) ## build and run the benchmarks
	@for b in $(BENCHES); do echo "$$b"; $$b || exit; done

.PHONY: fuzz
fuzz: $(FUZZERS) ## fuzz the readers of untrusted files with libFuzzer, FUZZ_S seconds each (600)
	@BUILD=$(BUILD)/fuzz FUZZ_S=$(FUZZ_S) sh tests/fuzz/run.sh $(FUZZERS)

# FILES=: only those that have one of these texts, parted by commas, in their name. SAMPLE=n: so many of the mutants.
# KEEP=1: go on from the last run.
.PHONY: mutate
mutate: $(MUT)/run $(MUT)/ridge $(MUT_TESTS) ## flip every number and operator of calc/cost and calc/time; tests must fail (hours)
	@MUTATE_PART=$(FILES) MUTATE_SAMPLE=$(SAMPLE) MUTATE_KEEP=$(KEEP) MUTATE_SEED=$(SEED) MUTATE_JOBS=$(JOBS) \
		$(MUT)/run $(MUT) tests/mutate.excluded $(MUT_TESTS) $(MUT_CASES); \
	status=$$?; echo "table and survivors: $(MUT)/report"; exit $$status

.PHONY: lint
lint: ## format, warnings of gcc and clang, layering and the other house rules
	@MAKE='$(MAKE)' BUILD=$(BUILD)/lint PARALLEL=$(jobs) sh tools/lint.sh

.PHONY: format
format: ## rewrite the sources in the house format
	@find $(wildcard calc probe kernels tests tools) -name '*.[ch]' -exec clang-format -i {} +

.PHONY: deps
deps: ## install the Debian packages that build, tests and plots need (as root; else say which)
	@sh tools/deps.sh base

.PHONY: deps-dev
deps-dev: ## the same, and those of lint and fuzz
	@sh tools/deps.sh base dev

.PHONY: man
man: $(BUILD)/ridge.1 ## build the manual page

# The guides lie as in the checkout, so that what they say of each other is found.
GUIDES  := README.md LICENSE $(sort $(wildcard docs/*.md)) calc/MODEL.md probe/METHOD.md
# Quoted: a prefix may have blanks.
BIN_DIR  = '$(DESTDIR)$(PREFIX)/bin'
MAN_DIR  = '$(DESTDIR)$(PREFIX)/share/man/man1'
BASH_DIR = '$(DESTDIR)$(PREFIX)/share/bash-completion/completions'
DOC_DIR  = '$(DESTDIR)$(PREFIX)/share/doc/ridge'

.PHONY: install
install: all man ## install program, workers, manual page, guides and bash completion under DESTDIR PREFIX
	install -d $(BIN_DIR) $(MAN_DIR) $(BASH_DIR)
	install -m 755 $(BUILD)/ridge $(BUILD)/ridge-worker-cpu $(CARD_BIN) $(BIN_DIR)
	install -m 644 $(BUILD)/ridge.1 $(MAN_DIR)/ridge.1
	install -m 644 tools/completion.bash $(BASH_DIR)/ridge
	install -d $(DOC_DIR)/docs $(DOC_DIR)/calc $(DOC_DIR)/probe
	@for f in $(GUIDES); do install -m 644 $$f $(DOC_DIR)/$$f || exit; done

.PHONY: uninstall
uninstall: ## remove what install put there
	rm -f $(BIN_DIR)/ridge $(BIN_DIR)/ridge-worker-cpu $(BIN_DIR)/ridge-worker-cuda $(MAN_DIR)/ridge.1 $(BASH_DIR)/ridge
	rm -rf $(DOC_DIR)

.PHONY: clean
clean: ## remove the build folder
	rm -rf $(BUILD)

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# --- how it is built ---------------------------------------------------------------------------------------------------

define compile
$(call say,cc,$<)
@mkdir -p $(@D)
$(Q)$(CC) $(FLAGS) $(DEFINE) -MMD -MP -c -o $@ $<
endef

define link
$(call say,link,$@)
@mkdir -p $(@D)
$(Q)$(CC) $(CFLAGS) $(if $(call on,$(SAN)),$(SAN_FLAGS)) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^)
endef

$(BUILD)/ridge: $(MAIN_OBJ) $(BUILD)/libridge.a
	$(link) $(LDLIBS)

$(BUILD)/ridge-worker-cpu: $(BUILD)/obj/probe/worker/main.o $(WORK_OBJ) $(BUILD)/libridge.a
	$(link) -lm

$(BUILD)/tests/fake-worker: $(BUILD)/obj/tests/worker/fake.o $(BUILD)/libridge.a
	$(link) -lm

$(FAKE_SO): $(BUILD)/tests/%.so: tests/worker/%.c $(BUILD)/flags
	$(call say,cc,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(FLAGS) -fPIC -shared -o $@ $<

$(BUILD)/libridge.a: $(LIB_OBJ) $(BUILD)/sources
	$(call say,ar,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $(LIB_OBJ)

$(BUILD)/obj/%.o: %.c $(BUILD)/flags
	$(compile)

$(BUILD)/obj/embed_data.o: $(BUILD)/embed_data.c $(BUILD)/flags
	$(compile)

$(BUILD)/embed_data.c: $(BUILD)/embed $(DATA) $(BUILD)/data
	$(call say,embed,$@)
	$(Q)$(BUILD)/embed $@ $(DATA)

$(BUILD)/embed: tools/embed.c $(BUILD)/flags
	$(call say,hostcc,$<)
	$(Q)$(HOSTCC) $(LANG_FLAGS) $(WARN) -O1 -g -o $@ $<

$(BUILD)/ridge.1: $(BUILD)/ridge
	$(call say,man,$@)
	$(Q)$(BUILD)/ridge help --man >$@

$(VERSIONED:%.c=$(BUILD)/obj/%.o) $(BUILD)/cuda/probe/worker/cuda/device_cuda.o: DEFINE = -DRIDGE_VERSION='"$(VERSION)"'
$(VERSIONED:%.c=$(BUILD)/obj/%.o) $(BUILD)/cuda/probe/worker/cuda/device_cuda.o: $(BUILD)/version

# FLINT is loaded while running, and only by what needs exact algebra: by the name of the version that its headers are of.
FLINT_SO = $(or $(shell objdump -p "$$($(CC) -print-file-name=libflint.so)" 2>/dev/null | sed -n 's/.*SONAME *//p'),libflint.so)
$(BUILD)/obj/calc/sym/flint.o $(BUILD)/fuzz/obj/calc/sym/flint.o: DEFINE = -DRIDGE_FLINT='"$(FLINT_SO)"'

# What tests have in common, once on disk: over a hundred programs with it inside are gigabytes under the sanitizers.
$(BUILD)/tests/libtested.so: $(HELP_OBJ) $(WORK_OBJ) $(LIB_OBJ) $(BUILD)/sources
	$(link) -shared $(TEST_LIBS) $(LDLIBS)

# With a table of its own in place of the library's.
$(BUILD)/tests/test_embed: $(BUILD)/obj/tests/test_embed.o $(BUILD)/libridge.a
	$(link) $(TEST_LIBS) $(LDLIBS)

$(filter-out %/test_embed,$(TESTS)): $(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(BUILD)/tests/libtested.so | $(BUILD)/tests/fake-worker $(FAKE_SO)
	$(link) -L$(@D) -ltested -Wl,-rpath,'$$ORIGIN' $(TEST_LIBS) $(LDLIBS)

# Shapes of vectors are read through pointers of other types, as CUDA allows.
$(BUILD)/obj/%.simt.o: %.cu $(BUILD)/flags
	$(call say,simt,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(FLAGS) -fno-strict-aliasing -MMD -MP -x c -c -o $@ $<

# Those that run CUDA code on the host.
$(filter $(BUILD)/tests/test_simt%,$(TESTS)): $(SIMT_OBJ)

# What ptxas says of registers, shared memory and spills lies beside the object; a spill is an error.
$(BUILD)/cuda/%.o: %.cu $(BUILD)/flags
	$(call say,nvcc,$<)
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(NVCC_FLAGS) -MMD -MP -c -o $@ $< >$(@:.o=.ptxas) 2>&1 || { cat $(@:.o=.ptxas) >&2; exit 1; }
	$(Q)! grep -B2 -E "[1-9][0-9]* bytes spill" $(@:.o=.ptxas) >&2

$(BUILD)/cuda/%.o: %.c $(BUILD)/flags
	$(call say,cc,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(FLAGS) -isystem $(CUDA_HOME)/include $(DEFINE) -MMD -MP -c -o $@ $<

# The runtime is linked in, so that it starts where there is no driver; cuBLAS is loaded while running, NVML too.
$(BUILD)/ridge-worker-cuda: $(BUILD)/obj/probe/worker/main.o $(filter-out %/device_cpu.o,$(WORK_OBJ)) $(CUDA_OBJ) $(CARD_OBJ) \
                            $(BUILD)/libridge.a
	$(link) -L$(CUDA_HOME)/lib64 -L$(CUDA_HOME)/lib -Wl,-rpath,$(CUDA_HOME)/lib64:$(CUDA_HOME)/extras/CUPTI/lib64 \
	        -lcudart_static -ldl -lrt -lpthread -lm

.PHONY: cuda
cuda: $(CUDA_OBJ) ## compile the CUDA kernels and list registers, shared memory and spills
	@awk -f tools/ptxas.awk $(CUDA_OBJ:.o=.ptxas)

# What the worker has, for those of kernels.
$(BUILD)/bench/bench_kernels $(BUILD)/bench/bench_cold: $(WORK_OBJ)

$(BENCHES): $(BUILD)/bench/%: $(BUILD)/obj/tests/bench/%.o $(BUILD)/libridge.a
	$(link) $(LDLIBS)

$(BUILD)/fuzz/obj/%.o: %.c $(BUILD)/flags
	$(call say,fuzzcc,$<)
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link $(DEFINE) -MMD -MP -c -o $@ $<

$(BUILD)/fuzz/obj/embed_data.o: $(BUILD)/embed_data.c $(BUILD)/flags
	$(call say,fuzzcc,$<)
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

$(VERSIONED:%.c=$(BUILD)/fuzz/obj/%.o): DEFINE = -DRIDGE_VERSION='"$(VERSION)"'

$(FUZZERS): $(BUILD)/fuzz/%: $(BUILD)/fuzz/obj/tests/fuzz/%.o $(FUZZ_OBJ)
	$(call say,link,$@)
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $^ $(LDLIBS)

# Mutants: the rewritten sources stand before the library, which then gives the rest.
$(MUT)/rewrite: $(MUT_TOOL) tools/mutate/mutate.h $(BUILD)/flags
	$(call say,hostcc,$@)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) $(LANG_FLAGS) $(WARN) -O1 -g -o $@ $(MUT_TOOL)

$(MUT)/run: tools/mutate/run.c tools/mutate/report.c tools/mutate/run.h tools/mutate/mutant.h $(BUILD)/flags
	$(call say,hostcc,$@)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) $(LANG_FLAGS) $(WARN) -O1 -g -o $@ $(filter %.c,$^) -lm

$(MUT)/mutants: $(MUT)/rewrite $(MUT_SRC)
	$(call say,mutate,$(words $(MUT_SRC)) files)
	@mkdir -p $(sort $(dir $(MUT_SRC:%=$(MUT)/%)))
	$(Q)$(MUT)/rewrite $(MUT) $(MUT_SRC)

$(MUT)/obj/%.o: $(MUT)/mutants tools/mutate/mutant.h $(BUILD)/flags
	$(call say,cc,$(MUT)/$*.c)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LANG_FLAGS) $(call headers,$(PACKAGES)) $(CPPFLAGS) $(CFLAGS) -w -c -o $@ $(MUT)/$*.c

$(MUT)/mutant.o: tools/mutate/mutant.c tools/mutate/mutant.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(LANG_FLAGS) $(WARN) $(CFLAGS) -c -o $@ $<

$(MUT_TESTS): $(MUT)/tests/%: $(BUILD)/obj/tests/%.o $(HELP_OBJ) $(WORK_OBJ) $(MUT_OBJ) $(BUILD)/libridge.a
	$(link) -Wl,--wrap=_cmocka_run_group_tests $(TEST_LIBS) $(LDLIBS)

$(MUT)/ridge: $(MAIN_OBJ) $(MUT_OBJ) $(BUILD)/libridge.a
	$(link) $(LDLIBS)

# What was last built with and from: a change of flags, version, or of the lists of files rebuilds what depends on it.
$(BUILD)/flags: FORCE
	$(call keep,$(CC) $(FLAGS) $(LDFLAGS) $(LDLIBS) | $(FUZZ_CC) $(FUZZ_FLAGS) | $(NVCC) $(NVCC_FLAGS))
$(BUILD)/version: FORCE
	$(call keep,$(VERSION))
$(BUILD)/sources: FORCE
	$(call keep,$(LIB_OBJ))
$(BUILD)/data: FORCE
	$(call keep,$(DATA))

-include $(patsubst %.o,%.d,$(MAIN_OBJ) $(WORK_OBJ) $(SIMT_OBJ) $(CUDA_OBJ) $(CARD_OBJ) $(LIB_OBJ) $(HELP_OBJ) $(FUZZ_OBJ)) \
         $(patsubst %.c,$(BUILD)/obj/%.d,$(TEST) $(BENCH) $(FUZZ) $(FAKE) probe/worker/main.c) $(FUZZ:%.c=$(BUILD)/fuzz/obj/%.d)
