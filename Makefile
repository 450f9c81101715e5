# redlock - `make help` lists the targets.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT

B = build
LIB = redlock.c resp.c net.c
HEADERS = redlock.h resp.h
WARN = -std=c99 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wcast-qual \
       -Wcast-align -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla -Wformat=2 -Werror
POSIX = -D_POSIX_C_SOURCE=200809L
SAN = -fsanitize=address,undefined -fno-sanitize-recover=all
CFLAGS = -O2 -g
LARGE = -DRESP_OUT_MAX=16384 -DRESP_PIPELINE_MAX=255

.PHONY: all help deps demo test unit server amalgamation mutants coverage size bench bench-quick style clean
.DELETE_ON_ERROR:

all: $(B)/libredlock.a ## build the static library (the default)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Targets that need more than a compiler call it first; it does nothing where all is there.
deps: ## install what demo, test, size and bench need (Debian and its kin; asks apt-get)
	@test/deps.sh

clean: ## remove all that was built
	rm -rf $(B)

# ---- The library ----------------------------------------------------------------------------

$(B)/%.o: %.c $(HEADERS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(WARN) -Wstack-usage=256 -c $< -o $@

$(B)/libredlock.a: $(B)/redlock.o $(B)/resp.o $(B)/net.o
	rm -f $@
	$(AR) rcsD $@ $^

# One file that compiles alone beside its redlock.h. net.c comes first: it sets the feature macros,
# which must happen before any system header is seen.
ONE = $(B)/single/redlock_all.c

amalgamation: $(ONE) ## generate the whole library as one file beside redlock.h, in build/single
$(ONE): $(LIB) $(HEADERS) test/amalgamate.awk
	@mkdir -p $(@D)
	awk -f test/amalgamate.awk redlock.h > $(@D)/redlock.h
	awk -f test/amalgamate.awk net.c resp.c redlock.c > $@

# ---- Tests ----------------------------------------------------------------------------------
# A variant is a compiler, its flags, and the library's sources; each runs the same programs.

PROGRAMS = lock_test
HELPERS = test/fake.c
VARIANTS = gcc clang gcc-san clang-san all small large

CC-gcc = gcc
CC-clang = clang
CC-gcc-san = gcc $(SAN)
CC-clang-san = clang $(SAN)
CC-all = gcc
CC-small = gcc -DRESP_PIPELINE_MAX=4 -DRESP_TEXT_MAX=24 -DRESP_DEPTH_MAX=2 -DREDLOCK_POOL_MAX=20
CC-large = gcc $(LARGE) -DREDLOCK_NODES_MAX=16
SOURCES = $(LIB)
$(B)/all/%: SOURCES = $(ONE)
$(B)/all/%: LIBDIR = $(B)/single
LIBDIR = .

define variant
$(B)/$(1)/%: test/%.c $(HELPERS) test/tap.h test/fake.h $(LIB) $(HEADERS) | $(ONE)
	@mkdir -p $$(@D)
	$$(CC-$(1)) -O1 -g $(WARN) $(POSIX) -I$$(LIBDIR) -Itest $$< $(HELPERS) $$(SOURCES) -o $$@
test-$(1): $$(PROGRAMS:%=$(B)/$(1)/%)
	@echo "# $(1): $$(CC-$(1))"
	prove -e '' $$^
endef
$(foreach v,$(VARIANTS),$(eval $(call variant,$(v))))

# The real servers make valgrind's work slow; the programs wait for answers, not for time.
VALGRIND = valgrind -q --error-exitcode=9 --leak-check=full --show-leak-kinds=all --track-fds=yes \
           --trace-children=no --child-silent-after-fork=yes
test-valgrind: $(PROGRAMS:%=$(B)/gcc/%)
	@echo "# valgrind: memory, leaks, open descriptors"
	prove -e 'test/valgrind.sh' $^

test: deps ## build and run all tests: gcc, clang, sanitizers, valgrind, amalgamation, limits
	@test/all.sh $(MAKE)

mutants: ## take out one rule at a time and see the tests fail
	test/mutants.sh $(B)
