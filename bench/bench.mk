# bench.mk: figures - included by the Makefile.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT

size: deps-figures ## text, data, stack, structs for three machines, against limits and the last release; RECORD=yes
	@tools/size.sh $(B) $(RECORD)

$(B)/bench: bench/bench.c bench/figures.h test/lib/servers.c test/lib/servers.h $(LIB) $(HEADERS)
	@mkdir -p $(@D)
	$(CC) -O2 -g $(WARN) $(POSIX) -I. -Itest/lib -Itest/engine $< test/lib/servers.c $(LIB) -o $@

$(B)/peers/ours: bench/peers/ours.c $(LIB) $(HEADERS)
	@mkdir -p $(@D)
	$(CC) -O2 -g $(WARN) $(POSIX) -I. -Ibench $< $(LIB) -o $@

$(B)/handover: bench/handover.c bench/figures.h test/lib/servers.c test/lib/servers.h $(LIB) $(HEADERS)
	@mkdir -p $(@D)
	$(CC) -O2 -g $(WARN) $(POSIX) -I. -Itest/lib -Itest/engine $< test/lib/servers.c $(LIB) -o $@

bench-servers: deps-programs $(B)/bench ## SERVERS="..." release by script and by native command
	@test/servers/versions.sh $(B) bench $(SERVERS)

$(B)/conditions: bench/conditions.c bench/figures.h test/lib/side.h test/lib/servers.c test/lib/servers.h $(LIB) $(HEADERS)
	@mkdir -p $(@D)
	$(CC) -O2 -g $(WARN) $(POSIX) $(LARGE) -I. -Itest/lib -Itest/engine $< test/lib/servers.c $(LIB) -o $@

$(B)/wide: bench/wide.c bench/figures.h test/engine/mini.c test/engine/mini.h $(CORE) $(HEADERS)
	@mkdir -p $(@D)
	$(CC) -O2 -g $(WARN) $(POSIX) -I. -Itest/lib -Itest/engine $< test/engine/mini.c $(CORE) -o $@

$(B)/instructions: bench/instructions.c test/engine/fake.c test/engine/fake.h test/engine/mini.c test/engine/mini.h $(CORE) $(HEADERS)
	@mkdir -p $(@D)
	$(CC) -O2 -g $(WARN) $(POSIX) -I. $< test/engine/fake.c test/engine/mini.c $(CORE) -o $@

$(B)/instructions-single: bench/instructions.c test/engine/fake.c test/engine/fake.h test/engine/mini.c test/engine/mini.h $(ONE)
	$(CC) -O2 -g $(WARN) $(POSIX) -I$(B)/single -I. $< test/engine/fake.c test/engine/mini.c $(ONE) -o $@

instructions: deps-programs $(B)/instructions $(B)/instructions-single ## instructions of the library for an acquire and a release, the same in each run
	@bench/instructions.sh $(B)

$(B)/figures-cli: bench/cli.c bench/figures.h test/lib/servers.c test/lib/servers.h
	@mkdir -p $(@D)
	$(CC) -O2 -g $(WARN) $(POSIX) -Itest/lib -Itest/engine $< test/lib/servers.c -o $@

cli-figures: deps-cli ## what the program costs: start to lock, memory, size; dynamic and static
	@$(MAKE) -s $(B)/redlock $(B)/redlock-static $(B)/figures-cli
	@strip -o $(B)/redlock-stripped $(B)/redlock
	@$(B)/figures-cli $(B)/redlock-stripped $(B)/redlock-static

bench: ## the library compared with a lower bound and other locks, with failed servers, over distances
bench-quick: ## the same in a minute, without the other locks and failed servers
bench bench-quick: deps-bench
	@$(MAKE) -s $(B)/bench $(B)/instructions $(B)/instructions-single $(B)/handover $(B)/conditions $(B)/wide $(B)/peers/ours
	@bench/bench.sh $(B) $(if $(findstring quick,$@),quick,full)

bench-faults: deps-bench ## this library and other locks while servers hang, refuse, answer late; its table and picture
	@$(MAKE) -s $(B)/peers/ours
	@bench/bench.sh $(B) faults
