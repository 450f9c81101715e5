# test.mk: the tests - included by the Makefile.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT

# A variant is a compiler, its flags, and the sources of the library. All variants run the same programs.

CHECKED = $(POSIX) '-DRL_ASSERT(condition)=((condition) ? (void)0 : __builtin_trap())' # the engine's own checks, in the tests
LARGE = -DREDLOCK_NODES_MAX=16
# The smallest queues.
TIGHT = -DREDLOCK_OWED_MAX=1 -DREDLOCK_PIPELINE_MAX=4 -DREDLOCK_SEND_MAX=603

LOCK_TESTS = $(notdir $(basename $(wildcard test/engine/lock_*_test.c)))
PROGRAMS = resp_test queue_test $(LOCK_TESTS) sim fake_test net_test server_test node_test url_test
SIM = $(wildcard test/engine/sim*.c)
HELPERS = test/engine/fake.c test/engine/mini.c test/lib/servers.c test/lib/proxy.c
VARIANTS = cc gcc clang gcc-san clang-san clang-msan single small large texts

CC-cc = $(CC)
CC-gcc = gcc
CC-clang = clang
CC-gcc-san = gcc $(SAN)
CC-clang-san = clang $(SAN)
CC-clang-msan = clang -fsanitize=memory -fno-sanitize-recover=all
CC-single = clang $(SAN) -DREDLOCK_HOSTED=0
CC-small = gcc $(TIGHT)
CC-texts = gcc $(SAN) -DRESP_TEXT_MAX=20
CC-large = clang -fsanitize=memory -fno-sanitize-recover=all $(LARGE)
LIB-single = $(ONE)

# lock_turns_test takes as long as all other tests of the lock. Limits that are large do not matter to it.
programs = $(if $(filter large,$(1)),$(filter-out lock_turns_test,$(PROGRAMS)),$(PROGRAMS))

# How a variant compiles its second argument, the sources that all its programs share.
define objects
OBJECTS-$(1) = $(patsubst %.c,$(B)/$(1)/o/%.o,$(2))
COMPILE-$(1) = $$(CC-$(1)) -O1 -g $(WARN) $(CHECKED) $(if $(LIB-$(1)),-I$(B)/single) -I. -Itest/lib -Itest/engine
.SECONDARY: $$(OBJECTS-$(1))
$(B)/$(1)/o/%.o: %.c $(wildcard test/*/*.h) $(HEADERS) $(ONE) Makefile
	@mkdir -p $$(@D)
	$$(COMPILE-$(1)) -c $$< -o $$@
endef

.SECONDEXPANSION: # of the folder that a test is in
define variant
$(call objects,$(1),$(HELPERS) $(or $(LIB-$(1)),$(LIB) extra/url.c))
$(B)/$(1)/%: $$$$(wildcard test/*/$$$$*.c) $$(OBJECTS-$(1))
	$$(COMPILE-$(1)) $$< $$(OBJECTS-$(1)) -o $$@
$(B)/$(1)/queue_test: test/unit/queue_test.c test/engine/lock_options.h test/lib/tap.h $(CORE) $(HEADERS) Makefile # includes node.c
	@mkdir -p $$(@D)
	$$(CC-$(1)) -O1 -g $(WARN) $(CHECKED) -I. -Itest/lib -Itest/engine $$< $(filter-out node.c,$(CORE)) -o $$@
$(B)/$(1)/sim: $(SIM:%.c=$(B)/$(1)/o/%.o) $$(OBJECTS-$(1))
	$$(COMPILE-$(1)) $$^ -o $$@
test-$(1): deps-programs $(patsubst %,$(B)/$(1)/%,$(call programs,$(1)))
	prove -j 4 -e '' $(patsubst %,$(B)/$(1)/%,$(call programs,$(1)))
endef
$(foreach v,$(VARIANTS),$(eval $(call variant,$(v))))

test-lock: deps-programs $(LOCK_TESTS:%=$(B)/gcc/%) ## the rules of the lock, on simulated servers: seconds
	prove -j 4 -e '' $(LOCK_TESTS:%=$(B)/gcc/%)

# Without lock_turns_test, which would take two minutes; test-gcc-san runs it. Fewer runs of the simulator for the same reason.
VALGRIND = $(patsubst %,$(B)/gcc/%,$(filter-out lock_turns_test sim,$(PROGRAMS)))
test-valgrind: deps-valgrind $(VALGRIND) $(B)/gcc/sim
	prove -j 4 -e 'test/lib/valgrind.sh' $(VALGRIND)
	prove -e 'test/lib/valgrind.sh' $(B)/gcc/sim :: 1 12

# What to run after each change: the programs, and the scenarios of the program redlock(1), except the longest three and two that
# need Perl's modules. The tests mostly wait, so eight run at a time.
CHECK_NOT = renewed_for_weeks terminals kills list json
check: deps-demo ## the tests in three minutes; needs a compiler, make and redis-server only
	@$(MAKE) -s $(PROGRAMS:%=$(B)/cc/%) $(B)/cli/cli_test $(B)/cli/job_test $(B)/redlock
	@{ printf '%s\n' $(PROGRAMS:%=$(B)/cc/%); $(B)/cli/cli_test | grep -vx $(CHECK_NOT:%=-e %) | sed 's,^,$(B)/cli/cli_test ,'; \
	    $(B)/cli/job_test | grep -vx $(CHECK_NOT:%=-e %) | sed 's,^,$(B)/cli/job_test ,'; } | \
	    REDLOCK=$(B)/redlock test/check.sh

# The smallest buffer for the texts of replies, a variant; the fewest requests; the fewest bytes at once; and the smallest buffer
# for the commands of a wait queue.
SHORT = requests reads queue
SHORT-requests = -DREDLOCK_PIPELINE_MAX=2
SHORT-reads = -DREDLOCK_READ_MAX=1
SHORT-queue = -DREDLOCK_FAIR=1 -DREDLOCK_SEND_MAX=2256
$(B)/short/%: test/engine/lock_limits_test.c test/engine/fake.c test/engine/mini.c $(LIB) $(HEADERS)
	@mkdir -p $(@D)
	gcc $(SAN) $(SHORT-$*) -O1 -g $(WARN) $(CHECKED) -I. -Itest/lib -Itest/engine $< test/engine/fake.c test/engine/mini.c $(CORE) -o $@
test-short: deps-programs $(SHORT:%=$(B)/short/%) $(LOCK_TESTS:%=$(B)/texts/%)
	prove -j 2 -e '' $(SHORT:%=$(B)/short/%) $(LOCK_TESTS:%=$(B)/texts/%)

# The send buffer and the ring of requests at their limits.
QUEUES = least most
QUEUE-least = -DREDLOCK_PIPELINE_MAX=2 -DREDLOCK_MINIMAL=1 -DREDLOCK_LABEL_MAX=24 -DREDLOCK_SEND_MAX=338
QUEUE-most = -DREDLOCK_SEND_MAX=65535 -DREDLOCK_NODES_MAX=16
$(B)/queue/%: test/unit/queue_test.c test/engine/lock_options.h test/lib/tap.h $(CORE) $(HEADERS) Makefile
	@mkdir -p $(@D)
	gcc $(SAN) $(QUEUE-$*) -O1 -g $(WARN) $(CHECKED) -I. -Itest/lib -Itest/engine $< $(filter-out node.c,$(CORE)) -o $@
test-queue: deps-programs $(QUEUES:%=$(B)/queue/%)
	prove -e '' $(QUEUES:%=$(B)/queue/%)

test-switches: export CORE := $(CORE)
test-switches: export WARN := $(WARN)
test-switches: export POSIX := $(POSIX)
test-switches: deps-programs ## each feature switch added to the minimal build, and left out of the full one: passes the tests of the lock, or is an #error
	prove -e sh test/package/switches.sh :: $(B)

# The scripts of command.c in each version of Lua that a server may have.
test-scripts: deps-scripts
	@mkdir -p $(B)/scripts
	for build in all minimal; do \
	    gcc $(WARN) -DREDLOCK_MINIMAL=$$(test $$build = all; echo $$?) -I. test/unit/scripts.c resp.c -o $(B)/scripts/$$build && \
	    $(B)/scripts/$$build > $(B)/scripts/$$build.lua || exit 1; \
	    for lua in 5.1 5.2 5.3 5.4; do prove -e lua$$lua test/unit/scripts.lua :: $(B)/scripts/$$build.lua $$build || exit 1; done; \
	done

test-threads: test/servers/thread_test.c test/lib/servers.c $(LIB) $(HEADERS) deps-programs
	@mkdir -p $(B)/threads
	gcc -fsanitize=thread -O1 -g $(WARN) $(POSIX) -pthread -I. -Itest/lib -Itest/engine $< test/lib/servers.c $(LIB) -o $(B)/threads/thread_test
	prove -e '' $(B)/threads/thread_test

# The linker replaces these functions by those of the test.
TORTURED = socket setsockopt connect getsockopt getpeername getsockname send recv close fcntl poll ppoll \
           clock_gettime getrandom open read getaddrinfo if_indextoname pthread_atfork
WRAPS = $(TORTURED:%=-Wl,--wrap=%)

SUSPEND = poll ppoll clock_gettime
test-torture: test/servers/torture_test.c test/servers/suspend_test.c test/lib/side.h test/lib/servers.c $(LIB) $(HEADERS) deps-programs
	@mkdir -p $(B)/torture
	gcc $(SAN) -O1 -g $(WARN) $(POSIX) -I. -Itest/lib -Itest/engine $< test/lib/servers.c $(LIB) $(WRAPS) -o $(B)/torture/torture_test
	gcc $(SAN) -O1 -g $(WARN) $(POSIX) -I. -Itest/lib -Itest/engine test/servers/suspend_test.c test/lib/servers.c $(LIB) $(SUSPEND:%=-Wl,--wrap=%) -o $(B)/torture/suspend_test
	gcc $(SAN) -O1 -g $(WARN) $(POSIX) -DREDLOCK_WITHOUT_PPOLL -I. -Itest/lib -Itest/engine test/servers/suspend_test.c test/lib/servers.c $(LIB) $(SUSPEND:%=-Wl,--wrap=%) -o $(B)/torture/suspend_poll_test
	prove -e '' $(B)/torture/torture_test $(B)/torture/suspend_test $(B)/torture/suspend_poll_test

# net.c on systems without some functions and flags of Linux: without each of these, and without all.
LACKS = GETRANDOM GETENTROPY PPOLL SOCK_CLOEXEC CLOCK_BOOTTIME MSG_NOSIGNAL IF_NAMETOINDEX
CC-lacks = gcc $(SAN)
$(eval $(call objects,lacks,test/lib/servers.c $(CORE)))
$(B)/lacks/%: test/servers/net_test.c net.c $(OBJECTS-lacks)
	$(COMPILE-lacks) $(patsubst %,-DREDLOCK_WITHOUT_%,$(if $(filter all,$*),$(LACKS),$*)) $< net.c $(OBJECTS-lacks) -o $@
$(B)/lacks/torture: test/servers/torture_test.c net.c $(OBJECTS-lacks)
	$(COMPILE-lacks) $(LACKS:%=-DREDLOCK_WITHOUT_%) $< net.c $(OBJECTS-lacks) $(WRAPS) -o $@
test-lacks: deps-programs $(LACKS:%=$(B)/lacks/%) $(B)/lacks/all $(B)/lacks/torture ## net.c without getrandom, ppoll and others that not every system has
	prove -j 4 -e '' $(LACKS:%=$(B)/lacks/%) $(B)/lacks/all $(B)/lacks/torture
	prove -e sh test/ports/systems.sh

# `prove` runs each scenario as a separate test, in parallel, because the scenarios mostly wait. Then all again with sanitizers,
# and with the static program.
$(B)/cli/redlock-san: $(CLI) $(wildcard cli/*.h) $(HEADERS)
	@mkdir -p $(@D)
	gcc $(SAN) -O1 -g $(WARN) $(CLI_FLAGS) -I. $(CLI) -o $@

$(B)/cli/cli_test: test/cli/cli_test.c test/lib/program.c test/lib/program.h test/lib/proxy.c test/lib/proxy.h test/lib/fork_shim.c test/lib/servers.c test/lib/servers.h test/lib/tap.h
	@mkdir -p $(@D)
	$(CC) -shared -fPIC -O1 $(WARN) test/lib/fork_shim.c -o $(@D)/fork_shim.so
	$(CC) -O1 -g $(WARN) $(POSIX) -Itest/lib -Itest/engine $< test/lib/program.c test/lib/proxy.c test/lib/servers.c -o $@

# The supervision of its job. redlock-plain is the program of a system without subreapers: only POSIX may be needed.
$(B)/cli/job_test: test/cli/job_test.c test/lib/program.c test/lib/program.h test/lib/servers.c test/lib/servers.h test/lib/tap.h $(B)/cli/cli_test $(B)/cli/redlock-plain
	$(CC) -O1 -g $(WARN) $(POSIX) -Itest/lib -Itest/engine $< test/lib/program.c test/lib/servers.c -o $@
$(B)/cli/redlock-plain: $(CLI) $(wildcard cli/*.h) $(HEADERS)
	@mkdir -p $(@D)
	$(CC) -O1 -g $(WARN) $(filter-out -D_GNU_SOURCE,$(CLI_FLAGS)) -D_XOPEN_SOURCE=700 -DREDLOCK_CLI_POSIX -I. $(CLI) -o $@

# In a network namespace, where the packet filter and the name server are those of the test.
$(B)/cli/contact_test: test/cli/contact_test.c test/lib/program.c test/lib/program.h test/lib/servers.c test/lib/servers.h test/lib/tap.h
	@mkdir -p $(@D)
	$(CC) -O1 -g $(WARN) $(POSIX) -Itest/lib $< test/lib/program.c test/lib/servers.c -o $@

# What both run; make test builds it before.
CLI_TESTS = $(B)/cli/cli_test $(B)/cli/contact_test $(B)/cli/job_test $(B)/redlock $(B)/cli/redlock-san $(B)/redlock-static
test-cli: deps-cli ## the program on real servers: plain, with sanitizers, static
	@$(MAKE) -s $(CLI_TESTS)
	prove -j 8 -e $(B)/cli/cli_test $$($(B)/cli/cli_test)
	REDLOCK=$(B)/cli/redlock-san prove -j 8 -e $(B)/cli/cli_test $$($(B)/cli/cli_test | grep -v -e renewed_for_weeks -e no_descriptors) # it takes long; LeakSanitizer needs descriptors
	REDLOCK=$(B)/redlock-static prove -j 8 -e $(B)/cli/cli_test $$($(B)/cli/cli_test | grep -v -e fork_fails -e no_random -e slow_names -e all_addresses -e names_that -e renewed_for_weeks -e not_on_all_nodes) # a static program ignores LD_PRELOAD
test-job: deps-cli ## what becomes of the job of redlock run: plain, with sanitizers, static
	@$(MAKE) -s $(CLI_TESTS)
	prove -j 8 -e $(B)/cli/job_test $$($(B)/cli/job_test)
	# LeakSanitizer stops the program as a debugger does, and waits for ever where a test continues it (SIGCONT) at that time.
	ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0 REDLOCK=$(B)/cli/redlock-san prove -j 8 -e $(B)/cli/job_test $$($(B)/cli/job_test)
	REDLOCK=$(B)/redlock-static prove -j 8 -e $(B)/cli/job_test $$($(B)/cli/job_test | grep -v -e guard_hangs -e denied_calls -e stopped_early -e stopped_after -e interrupted_at -e ctrl_z -e suspend -e slow_stderr -e started_meanwhile -e unseen_job -e many_) # the same

$(B)/cli/redlock-tls $(B)/cli/redlock-tls-san: $(CLI) $(wildcard cli/*.h extra/redlock_tls.*) $(HEADERS)
	@mkdir -p $(@D)
	$(if $(findstring san,$@),gcc $(SAN) -O1 -g,$(CC) $(CFLAGS)) $(WARN) $(CLI_FLAGS) -I. $(CLI) $(WITH_TLS) -o $@

$(B)/cli/cli_tls: test/cli/cli_tls.c test/lib/program.c test/lib/program.h test/lib/servers.c test/lib/servers.h test/lib/tap.h
	@mkdir -p $(@D)
	$(CC) -O1 -g $(WARN) $(POSIX) -D_XOPEN_SOURCE=700 -Itest/lib $< test/lib/program.c test/lib/servers.c -o $@

test-cli-tls: deps-cli_tls $(B)/cli/redlock-tls $(B)/cli/redlock-tls-san $(B)/cli/cli_tls ## the program with TLS=1, on real servers: certificates good and bad, failed handshakes
	REDLOCK=$(B)/cli/redlock-tls prove -e 'sh test/ports/tls.sh' $(B)/cli/cli_tls
	REDLOCK=$(B)/cli/redlock-tls-san prove -e 'sh test/ports/tls.sh' $(B)/cli/cli_tls

test-cli-static-tls: deps-cli_tls deps-static_tls $(B)/cli/redlock-static-tls $(B)/cli/cli_tls ## the same with make cli-static TLS=1
	REDLOCK=$(B)/cli/redlock-static-tls prove -e 'sh test/ports/tls.sh' $(B)/cli/cli_tls
$(B)/cli/redlock-static-tls: $(CLI) $(wildcard cli/*.h extra/redlock_tls.*) $(HEADERS)
	@mkdir -p $(@D)
	$(MAKE) -s TLS=1 B=$(B)/static-tls MBEDTLS=$(MBEDTLS) $(B)/static-tls/redlock-static
	cp $(B)/static-tls/redlock-static $@

soak-cli: deps-cli $(B)/redlock $(B)/cli/job_test ## MINUTES=n of jobs under the program that signals, stops and kills hit at random; then 100 of each pair
	prove -v -e sh test/cli/cli_soak.sh :: $(B)/redlock $(MINUTES)
	prove -v -e $(B)/cli/job_test stops_and_kills guard_frozen :: 100

$(B)/partition/%: test/servers/%.c test/servers/partition.h test/lib/side.h test/lib/servers.c $(LIB) $(HEADERS)
	@mkdir -p $(@D)
	gcc -O1 -g $(WARN) $(POSIX) -I. -Itest/lib -Itest/engine $< test/lib/servers.c $(LIB) -o $@

PARTITION = partition_test late_test idle_test
test-partition: deps-partition $(PARTITION:%=$(B)/partition/%)
	@$(MAKE) -s $(B)/cli/contact_test $(B)/redlock $(B)/redlock-static
	prove -j 3 -e 'sh test/servers/partition.sh' $(PARTITION:%=$(B)/partition/%)
	prove -j 3 -e 'sh test/servers/partition.sh $(B)/cli/contact_test' $$($(B)/cli/contact_test)
	REDLOCK=$(B)/redlock-static prove -j 3 -e 'sh test/servers/partition.sh $(B)/cli/contact_test' $$($(B)/cli/contact_test | grep -v answer_over_tcp) # before musl 1.2.4 there is no TCP

# The transports in examples/.
STAND_IN = gcc $(WARN) $(CLI_FLAGS) -DREDLOCK_CLI_TLS=1 -include test/ports/mbedtls.h -fsyntax-only -I. $(MBEDTLS_HEADERS) -DSTAND_IN
test-tls: deps-transports test/ports/tls_test.c test/ports/mbedtls.h test/lib/side.h test/lib/servers.c $(wildcard examples/tls/* extra/redlock_tls.*) $(LIB) $(HEADERS) ## TLS with mbedTLS, on real servers; MBEDTLS_PREFIX=folder, also test-cli-tls: with the mbedTLS installed there
	@mkdir -p $(B)/tls
	for version in 0x021c0000 0x03000000 0x03060000 0x04000000 0x04010000; do \
	    $(STAND_IN)=$$version extra/redlock_tls.c && case $$version in \
	    0x04000000) ! $(STAND_IN)=$$version cli/tls.c 2>$(B)/tls/refused && grep -q 'error.*CVE-2026-25835' $(B)/tls/refused ;; \
	    *) $(STAND_IN)=$$version cli/tls.c ;; \
	    esac || exit 1; \
	done
	gcc $(SAN) -O1 -g $(WARN) $(POSIX) -I. -Itest/lib -Itest/engine -Iextra test/ports/tls_test.c test/lib/servers.c extra/redlock_tls.c $(LIB) \
	    -Wl,--wrap=send,--wrap=recv $(MBEDTLS_LIBS) -o $(B)/tls/tls_test
	gcc $(SAN) -O1 -g $(WARN) -I. -Iextra examples/tls/lock.c extra/redlock_tls.c $(LIB) $(MBEDTLS_LIBS) -o $(B)/tls/lock
	prove -e 'sh test/ports/tls.sh' $(B)/tls/tls_test :: $(B)/tls/lock

# Through libslirp and through a tap device. Before that it is compiled as in firmware: with lwIP's constants and macros.
LWIP_FLAGS = -I. -Itest/lib -Itest/engine -Iexamples/lwip -isystem /usr/include/lwip
test-lwip: deps-transports test/ports/lwip_test.c test/ports/slirpif.c test/lib/side.h test/lib/servers.c $(wildcard examples/lwip/*) $(LIB) $(HEADERS) ## lwIP, on real servers
	@mkdir -p $(B)/lwip/firmware/arch
	@printf '#define LWIP_PROVIDE_ERRNO 1\n#define SYS_LIGHTWEIGHT_PROT 0\n' > $(B)/lwip/firmware/lwipopts.h
	@printf 'typedef void *sys_sem_t, *sys_mbox_t, *sys_mutex_t, *sys_thread_t;\n' > $(B)/lwip/firmware/arch/sys_arch.h
	@: > $(B)/lwip/firmware/arch/cc.h
	gcc $(WARN) -I. -isystem $(B)/lwip/firmware -isystem /usr/include/lwip -c examples/lwip/redlock_lwip.c -o $(B)/lwip/firmware/redlock_lwip.o
	gcc $(SAN) -O1 -g $(WARN) $(POSIX) $(LWIP_FLAGS) test/ports/lwip_test.c test/ports/slirpif.c test/lib/servers.c examples/lwip/redlock_lwip.c $(CORE) \
	    -Wl,--wrap=sys_now -llwip -lslirp -lpthread -o $(B)/lwip/lwip_test
	gcc $(SAN) -O1 -g $(WARN) $(POSIX) $(LWIP_FLAGS) examples/lwip/*.c $(CORE) -llwip -lpthread -o $(B)/lwip/lock
	prove -e 'sh test/ports/lwip.sh' $(B)/lwip/lwip_test :: slirp
	prove -e 'sh test/ports/lwip.sh' $(B)/lwip/lwip_test :: tap $(B)/lwip/lock

MINUTES = 1
SOAK = test/servers/soak.c test/lib/proxy.c test/lib/servers.c
$(B)/soak/soak $(B)/history/soak: $(SOAK) test/lib/proxy.h test/lib/servers.h test/lib/clock_shim.c test/lib/clock_shim.h test/lib/tap.h $(LIB) $(HEADERS)
$(B)/soak/soak:
	@mkdir -p $(@D)
	gcc -shared -fPIC -O2 $(WARN) -Itest/lib -Itest/engine test/lib/clock_shim.c -o $(@D)/clock_shim.so
	gcc -O2 -g $(WARN) $(POSIX) -I. -Itest/lib -Itest/engine $(SOAK) $(LIB) -o $@

$(B)/soak/clock_test: test/servers/clock_test.c test/lib/side.h test/lib/servers.c test/lib/servers.h test/lib/tap.h $(LIB) $(HEADERS) $(B)/soak/soak
	gcc -O2 -g $(WARN) $(POSIX) -I. -Itest/lib -Itest/engine test/servers/clock_test.c test/lib/servers.c $(LIB) -o $@

soak: deps-programs $(B)/soak/soak $(B)/soak/clock_test ## MINUTES=n of processes that contend while servers, network and clocks fail
	prove -e '' $(B)/soak/clock_test :: $(B)/soak/clock_shim.so
	prove -v -e '' $(B)/soak/soak :: $(MINUTES) $(B)/soak/clock_shim.so $(B)/soak
	awk -f test/servers/history.awk $(B)/soak/lock-0.edn $(B)/soak/lock-1.edn

# The same on a library to which one node is a majority.
$(B)/history/soak: $(B)/soak/soak
	@mkdir -p $(@D)
	perl -pe 's/c->priv.quorum - 1U/c->priv.quorum * 0U/' node.c > $(@D)/node.c
	! cmp -s node.c $(@D)/node.c
	gcc -O2 -g $(WARN) $(POSIX) -I. -Itest/lib -Itest/engine $(SOAK) $(filter-out node.c,$(LIB)) $(@D)/node.c -o $@

PORCUPINE =
history: deps-programs $(B)/history/soak ## the checker of the histories that soak writes; PORCUPINE=folder: that of others, too
	prove -e sh test/servers/history.sh :: $(B) $(abspath $(PORCUPINE))

# The public headers in each version of C++, redlock.c in each version of C, what `make` builds with warnings as errors; an example.
test-build: deps-gcc $(LIB) $(HEADERS)
	@mkdir -p $(B)/examples
	for std in c++98 c++11 c++17 c++20; do \
	    printf '#include "redlock.h"\n#include "extra/url.h"\n' | g++ -std=$$std -Wall -Wextra -Wpedantic -Werror -I. -x c++ -c - -o $(B)/header.o || exit 1; \
	done
	for std in c99 c11 c17; do \
	    gcc -std=$$std $(filter-out -std=c99,$(WARN)) -O2 -c redlock.c -o $(B)/header.o || exit 1; \
	done
	$(MAKE) -s B=$(B)/strict CC=gcc CFLAGS='-O2 -g' WARNINGS='$(WARN) -Wstack-usage=256' all
	$(MAKE) -s B=$(B)/strict WARNINGS='$(WARN)' shared cli
	gcc $(WARN) -I. examples/lock.c $(LIB) -o $(B)/examples/lock

# Long targets first. Files that several targets need are built before, because several targets run at a time. Without
# the variants that others contain: test-valgrind runs the programs of test-gcc; test-single and test-large have clang's sanitizers.
TESTS = test-cli test-job mutants test-vendor test-valgrind test-cli-tls test-docs model test-large analyze test-switches \
        test-gcc-san test-single soak sim test-small test-lacks test-short test-loops test-board api test-partition \
        test-lwip test-tls fuzz test-cost test-examples test-check test-torture history test-cpp test-queue test-tables test-cli-docs \
        test-threads test-scripts style
test: ## build and run all tests: two compilers, sanitizers, valgrind, single file, limits
	@tools/deps.sh test
	@$(MAKE) -s -j 2 $(ONE) man $(B)/libredlock.a $(CLI_TESTS)
	@MAKE='$(MAKE)' PROGRAMS='$(PROGRAMS) thread_test torture_test partition_test late_test idle_test api_test tls_test lwip_test table_test loops_test hpp_test check_test cli_test contact_test cli_tls clock_test soak' test/all.sh $(TESTS)

# The quick start, and then these commands of README; takes the last commit. SUITE=trixie is Debian 13, SUITE=bookworm is Debian 12.
SUITE =
COMPILERS = gcc clang
RUN = demo check test
fresh: deps-fresh ## SUITE=bookworm|trixie: README's commands on a new Debian system, with gcc only and with clang only; as root
	@for compiler in $(COMPILERS); do test/package/fresh.sh $(B) "$(SUITE)" $$compiler $(RUN) || exit 1; done

# extra/redlock.hpp with two compilers, from C++11 on.
test-cpp: deps-programs test/ports/hpp_test.cpp extra/redlock.hpp test/lib/servers.c $(LIB) $(HEADERS)
	@mkdir -p $(B)/cpp
	for file in $(LIB:%.c=%) test/lib/servers; do \
	    gcc $(SAN) -O1 -g $(WARN) $(POSIX) -I. -Itest/lib -Itest/engine -c $$file.c -o $(B)/cpp/$${file##*/}.o || exit 1; \
	done
	for one in 'g++ -std=c++11' 'g++ -std=c++14' 'g++ -std=c++17' 'g++ -std=c++20' 'clang++ -std=c++11' 'clang++ -std=c++20'; do \
	    $$one -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -I. -Itest/lib -Itest/engine -c test/ports/hpp_test.cpp -o $(B)/cpp/hpp_test.o || exit 1; \
	done
	g++ $(SAN) -g -std=c++11 -I. -Itest/lib -Itest/engine test/ports/hpp_test.cpp $(LIB:%.c=$(B)/cpp/%.o) $(B)/cpp/servers.o -o $(B)/cpp/hpp_test
	prove -e '' $(B)/cpp/hpp_test

# redlock check on real servers with one wrong setting after the other.
test-check: deps-programs $(B)/redlock test/cli/check_test.c test/lib/servers.c test/lib/servers.h test/lib/tap.h
	gcc -O1 -g $(WARN) $(POSIX) -Itest/lib -Itest/engine test/cli/check_test.c test/lib/servers.c -o $(B)/check_test
	prove -e '' $(B)/check_test :: $(B)/redlock

test-vendor: deps-vendor $(ONE) release ## the library as users build it: single file, install, CMake, Meson
	prove -e sh test/package/vendor.sh :: $(B) $(VERSION) $(LIB)
	prove -e sh test/package/packages.sh :: $(B) $(VERSION) $(LIB)
	prove -e sh test/package/macos.sh :: $(B) $(VERSION)

test-debian: deps-debian release ## the Debian packages of packaging/debian: dpkg-buildpackage, lintian, a program that uses them
	prove -e sh test/package/debian.sh :: $(B) $(VERSION)

test-docs: deps-docs man ## man pages are complete; the code blocks of the texts run on real servers; names, links, spelling
	prove -e 'sh' test/package/docs.sh test/package/snippets.sh :: $(B)

test-cli-docs: deps-cli $(B)/redlock
	prove -e sh test/cli/cli_docs.sh :: $(B)

test-examples: deps-programs test-build $(B)/demo $(B)/libredlock.a
	prove -e sh test/package/examples.sh :: $(B)

LOOPS = epoll descriptor libuv libev libevent glib sd_event
LOOP-libuv = $$(pkg-config --cflags --libs libuv)
LOOP-libev = -lev
LOOP-libevent = $$(pkg-config --cflags --libs libevent_core)
LOOP-glib = $$(pkg-config --cflags --libs glib-2.0)
LOOP-sd_event = $$(pkg-config --cflags --libs libsystemd)

# By one compiler: valgrind cannot read the debug information of each clang.
$(B)/loops/%: examples/loops/%.c examples/loops/app.c examples/loops/app.h $(LIB) $(HEADERS)
	@mkdir -p $(@D)
	gcc $(CFLAGS) $(WARN) $(POSIX) -I. $< examples/loops/app.c $(LIB) -o $@ $(LOOP-$*)

$(B)/loops/loops_test: test/ports/loops_test.c test/lib/servers.c test/lib/servers.h test/lib/tap.h
	@mkdir -p $(@D)
	gcc $(CFLAGS) $(WARN) $(POSIX) -Itest/lib -Itest/engine $< test/lib/servers.c -o $@

# An adapter without its example, and the test behind it.
CC-loops = gcc $(SAN)
$(eval $(call objects,loops,test/lib/servers.c $(LIB)))
$(B)/loops/adapter-%: examples/loops/%.c test/ports/adapter_test.c test/lib/tap.h $(OBJECTS-loops)
	sed '/^\/\* ---- The example/,$$d' $< | cat - test/ports/adapter_test.c > $@.c
	$(COMPILE-loops) -Iexamples/loops -DLOOP_$* $@.c $(OBJECTS-loops) -o $@ $(LOOP-$*)

# The adapters for copying: each with its example as C++, and all in one file as C and as C++; descriptor.c has that of epoll.c.
TOGETHER = $(filter-out epoll,$(LOOPS))
LOOP_FLAGS = $(subst -I,-isystem ,$(shell pkg-config --cflags libuv libevent_core glib-2.0 libsystemd)) -I. -Iexamples/loops -fsyntax-only
AS_C++ = g++ -x c++ -std=c++11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror
$(B)/loops/together.c: $(LOOPS:%=examples/loops/%.c) examples/loops/app.c examples/loops/app.h $(HEADERS)
	@mkdir -p $(@D)
	for file in $(LOOPS) app; do $(AS_C++) $(LOOP_FLAGS) examples/loops/$$file.c || exit 1; done
	for loop in $(TOGETHER); do sed '/^\/\* ---- The example/,$$d' examples/loops/$$loop.c || exit 1; done >$@
	gcc $(WARN) $(POSIX) -Wno-unused-function $(LOOP_FLAGS) $@
	$(AS_C++) -Wno-unused-function $(LOOP_FLAGS) $@

test-loops: deps-loops $(B)/loops/together.c ## the examples for event loops: a server killed and restarted under each, also under valgrind
	@$(MAKE) -s $(LOOPS:%=$(B)/loops/%) $(LOOPS:%=$(B)/loops/adapter-%) $(B)/loops/loops_test
	prove -e '' $(LOOPS:%=$(B)/loops/adapter-%)
	prove -e '' $(B)/loops/loops_test :: $(B)/loops

# The firmware of examples/cortex-m, and the cost of each call there.
board test-board: export WARN := $(WARN)
board: deps-board ## firmware on an emulated Cortex-M4 with real servers: flash, RAM, stack and instructions of each call
	@sh test/ports/board.sh $(B)
# Of mingw, with Wine in place of Windows: the table in a program, and in the library of CMake, found with pkg-config.
MINGW = x86_64-w64-mingw32
$(B)/windows/static.exe: test/ports/table_test.c examples/windows/redlock_windows.c examples/windows/redlock_windows.h test/lib/tap.h $(CORE) $(HEADERS)
	@mkdir -p $(@D)
	$(MINGW)-gcc -O1 -g $(WARN) -DTABLE_windows -I. -Iexamples/windows -Itest/lib $< examples/windows/redlock_windows.c $(CORE) -lws2_32 -lbcrypt -o $@
$(B)/windows/shared.exe: test/ports/table_test.c examples/windows/redlock_windows.c examples/windows/redlock_windows.h test/lib/tap.h CMakeLists.txt $(LIB) $(HEADERS)
	rm -rf $(@D)/cmake $(@D)/prefix
	cmake -S . -B $(@D)/cmake -DCMAKE_SYSTEM_NAME=Windows -DCMAKE_C_COMPILER=$(MINGW)-gcc -DBUILD_SHARED_LIBS=ON -DCMAKE_C_FLAGS=-Werror
	cmake --build $(@D)/cmake
	cmake --install $(@D)/cmake --prefix $(abspath $(@D))/prefix
	$(MINGW)-gcc -O1 -DTABLE_windows $< -Itest/lib $$(PKG_CONFIG_PATH=$(@D)/prefix/lib/pkgconfig pkg-config --cflags --libs redlock) -o $@
	cp $(@D)/prefix/bin/libredlock.dll $(@D)
test-windows: deps-windows $(B)/windows/static.exe $(B)/windows/shared.exe ## the table for Windows, built with mingw and run by Wine, on real servers
	prove -e 'sh test/ports/table.sh' $(B)/windows/static.exe $(B)/windows/shared.exe

# Of firmware, over a stand-in for the headers of the system.
$(B)/tables/zephyr: test/ports/table_test.c $(wildcard examples/zephyr/* test/ports/zephyr/*/*.h test/ports/zephyr/*/*/*.h) test/lib/tap.h $(CORE) $(HEADERS)
	@mkdir -p $(@D)
	gcc $(SAN) -O1 -g $(WARN) $(POSIX) -DTABLE_zephyr -I. -Iexamples/zephyr -Itest/ports/zephyr -Itest/lib $< examples/zephyr/*.c $(CORE) -o $@
$(B)/tables/freertos: test/ports/table_test.c test/ports/freertos.c $(wildcard examples/freertos/* test/ports/freertos/*) test/lib/tap.h $(CORE) $(HEADERS)
	@mkdir -p $(@D)
	gcc $(SAN) -O1 -g $(WARN) $(POSIX) -DTABLE_freertos -I. -Iexamples/freertos -Itest/ports/freertos -Itest/lib $< test/ports/freertos.c examples/freertos/*.c $(CORE) -o $@
test-tables: deps-programs $(B)/tables/zephyr $(B)/tables/freertos ## the tables for Zephyr and FreeRTOS-Plus-TCP over stand-ins for their calls, on real servers
	prove -e 'sh test/ports/table.sh' $(B)/tables/zephyr $(B)/tables/freertos

# First the tests that `make machines` runs on this processor in minutes: they must compile, although uint32_t is unsigned long.
test-board: deps-board
	for each in resp_test queue_test $(LOCK_TESTS) url_test $(notdir $(SIM:.c=)) fake mini; do \
	    arm-none-eabi-gcc --specs=picolibc.specs $(WARN) -fsyntax-only -I. -Itest/lib -Itest/engine test/*/$$each.c || exit 1; \
	done
	prove -e sh test/ports/board.sh :: $(B)

# The firmware of examples/lwip_raw: lwIP is Debian's source package, or the sources in your folder.
LWIP = $(B)/lwip-source
lwip-board test-lwip-board: export WARN := $(WARN)
lwip-board test-lwip-board: export CORE := $(CORE)
lwip-board test-lwip-board: export MINIMAL = -DREDLOCK_MINIMAL=1 -include examples/cortex-m/small.h
lwip-board: deps-lwip_board ## LWIP=folder: firmware with Ethernet and lwIP on an emulated Cortex-M4: flash, RAM, stack, instructions; RECORD=yes
	@sh tools/source.sh lwip src/core/tcp.c $(LWIP)
	@sh test/ports/lwip_board.sh $(B) $(LWIP) figures $(RECORD)
test-lwip-board: deps-lwip_board ## that firmware on real servers: cable pulled, board reset, two boards contend; two builds
	@sh tools/source.sh lwip src/core/tcp.c $(LWIP)
	sh test/ports/lwip_board.sh $(B) $(LWIP) build
	gcc -O1 -g $(WARN) $(POSIX) -I. -Itest/lib -Itest/engine test/ports/lwip_board_test.c test/lib/program.c test/lib/servers.c $(LIB) -o $(B)/lwip_board/lwip_board_test
	prove -j 2 -e $(B)/lwip_board/lwip_board_test $(B)/lwip_board/default.elf $(B)/lwip_board/minimal.elf

SEEDS = 6000
# The minimal one with few slots for requests, so that bursts fill the rings.
$(B)/sim $(B)/sim-minimal: $(SIM) test/engine/sim.h test/engine/mini.c test/engine/mini.h test/engine/lock_options.h test/lib/tap.h $(CORE) $(HEADERS)
	@mkdir -p $(@D)
	$(CC) -O3 -flto=auto -g $(WARN) $(CHECKED) $(if $(findstring minimal,$@),-DREDLOCK_MINIMAL=1 -DREDLOCK_PIPELINE_MAX=8) -I. -Itest/lib -Itest/engine $(SIM) test/engine/mini.c $(CORE) -o $@

sim: deps-programs $(B)/sim $(B)/sim-minimal ## SEEDS=n simulated runs of several clients and servers with faults; FIRST=n is the first seed
	prove -v -e '' $(B)/sim :: $(or $(FIRST),1) $(SEEDS)
	prove -v -e '' $(B)/sim-minimal :: $(or $(FIRST),1) 3000

# All calls in random order, with the sanitizers and each of these sets of limits and switches.
API_SETS = default tight large minimal short one least
API-tight = $(TIGHT)
API-large = $(LARGE)
API-minimal = -DREDLOCK_MINIMAL=1
API-short = -DRESP_TEXT_MAX=20
API-one = -DREDLOCK_NODES_MAX=1
API-least = -DREDLOCK_PIPELINE_MAX=2 -DRESP_DEPTH_MAX=2 -DREDLOCK_LABEL_MAX=1 -DREDLOCK_ERROR_MAX=1
RUNS = 1000

$(B)/api/mini.o: test/engine/mini.c test/engine/mini.h
	@mkdir -p $(@D)
	gcc $(SAN) -O1 -g $(WARN) $(POSIX) -Itest/lib -Itest/engine -c $< -o $@
$(B)/api/%: test/engine/api_test.c $(B)/api/mini.o test/engine/lock_options.h test/lib/tap.h $(CORE) $(HEADERS) Makefile
	gcc $(SAN) -O1 -g $(WARN) $(CHECKED) $(API-$*) -I. -Itest/lib -Itest/engine $< $(B)/api/mini.o $(CORE) -o $@

api: deps-programs $(API_SETS:%=$(B)/api/%) ## RUNS=n of all calls in random order, in every state of a lock; FIRST=n is the first seed
	prove -v -e '' $(API_SETS:%=$(B)/api/%) :: $(or $(FIRST),1) $(RUNS)

SECONDS = 5
fuzz: deps-programs ## SECONDS=n of libFuzzer for each: decoder, addresses, the whole client
	prove -v -e 'sh' test/fuzz/fuzz.sh :: $(B) $(SECONDS)

test-cost: deps-valgrind ## four times as many locks cost a client at most six times as many instructions, and a notification no more
	prove -e 'sh' test/engine/tick_cost.sh :: $(B)

mutants: deps-programs ## take out one rule at a time and see a test fail
	prove -e 'sh' test/engine/mutants.sh :: $(B)

$(B)/demo: examples/demo.c test/lib/servers.c test/lib/servers.h $(LIB) $(HEADERS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(WARNINGS) $(POSIX) -I. -Itest/lib -Itest/engine $< test/lib/servers.c $(LIB) -o $@

demo: deps-demo ## five real servers, and the lock at work on them
	@$(MAKE) -s $(B)/demo
	@$(B)/demo

model: deps-model ## check the models of the rules with spin (test/model/model.sh build full: all of them)
	prove -e 'sh' test/model/model.sh :: $(B)

interop: deps-others ## this library and others (of npm, PHP, Python) on the same lock, also while clients and servers are killed
	prove -v -e 'sh' test/interop/interop.sh test/interop/kills.sh :: $(B)

MACHINES = arm mips powerpc s390x i386 musl cortex-m4
machines: deps-machines ## MACHINES="..." the tests on other machines, by qemu: 32 bits, big-endian, musl, Cortex-M4
	sh test/package/machines.sh $(B) $(MACHINES)

SERVERS =
test-servers: deps-servers $(B)/partition/late_test $(foreach b,gcc small,$(addprefix $(B)/$(b)/,server_test node_test net_test fake_test)) ## SERVERS="..." the tests with other servers: Redis 6.0 to 8.6, Valkey 8 and 9
	@test/servers/versions.sh $(B) test $(SERVERS)

# Each proof takes minutes, so not in `make test`.
prove: deps-prove ## with Frama-C: no input or call causes undefined behaviour in decoder, writer, address parser, queues or engine
	prove -v -e sh test/prove/prove.sh :: $(B)

coverage: deps-programs ## lines of the library that the tests run
	@WRAPS='$(WRAPS)' LIMITS='$(TIGHT)' test/package/coverage.sh $(B) $(filter-out queue_test,$(PROGRAMS)) torture_test

analyze: deps-analyze $(ONE) ## gcc -fanalyzer, clang-tidy and cppcheck: no findings
	prove -e 'sh' test/package/analyze.sh :: $(B)

style: deps-style ## formatting, the length of functions, duplicate names
	prove -e sh tools/style.sh

