# redlock - `make help` lists the targets.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT

B = build
CORE = client.c redlock.c hold.c wait.c node.c command.c resp.c
LIB = $(CORE) net.c
HEADERS = redlock.h redlock_config.h redlock_private.h resp.h extra/url.h core.h
WARNINGS = -std=c99 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wcast-qual \
       -Wcast-align -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla -Wformat=2
# In the tests only: a warning of a compiler that we do not know must not stop a distribution.
WARN = $(WARNINGS) -Werror
POSIX = -D_POSIX_C_SOURCE=200809L
SAN = -fsanitize=address,undefined -fno-sanitize-recover=all
# The flags of the environment are honoured, as distributions set them; the command line wins.
CFLAGS ?= -O2 -g
CPPFLAGS ?=
LDFLAGS ?=
# The system that the library is for: macOS names shared libraries in another way.
SYSTEM := $(shell uname -s 2>/dev/null)
LIMITS = # -DREDLOCK_NODES_MAX=12 ... for the library; the installed headers tell programs

.DELETE_ON_ERROR:

all: $(B)/libredlock.a ## build the static library (the default); B=folder: build there, also with other targets

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Targets that need more than a compiler first call deps-PART. It does nothing if all packages are installed.
# `make test` installs all that its targets need before it makes them with DEPS=no.
DEPS = yes
deps: ## install what demo, test, size and bench need (Debian and derived systems, with apt-get)
	@tools/deps.sh
deps-%:
	@[ $(DEPS) = no ] || tools/deps.sh $*

clean: ## remove all that was built
	rm -rf $(B)

# ---- The library ----------------------------------------------------------------------------

$(B)/%.o: %.c $(HEADERS) $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(LIMITS) $(WARNINGS) -c $< -o $@

# Compiles and links again after a change of the flags: the installed headers must match the objects.
FLAGS = $(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(LIMITS) $(WARNINGS) TLS=$(TLS) $(MBEDTLS_PREFIX) $(if $(filter Darwin,$(SYSTEM)),$(LIBDIR))
$(B)/flags: always
	@mkdir -p $(@D)
	@printf '%s\n' '$(FLAGS)' | cmp -s - $@ || printf '%s\n' '$(FLAGS)' > $@
always:

$(B)/libredlock.a: $(LIB:%.c=$(B)/%.o) $(B)/extra/url.o
	rm -f $@
	$(AR) rcsD $@ $^ 2>/dev/null || $(AR) rcs $@ $^ # D, for the same bytes each time, is not known to each ar

VERSION := $(shell sed -n 's/^\#define REDLOCK_VERSION "\(.*\)"/\1/p' redlock.h)
# MAJOR.MINOR: a minor version may change the sizes of the structs, which the callers own.
ifeq ($(SYSTEM),Darwin) # a program remembers the whole path
SONAME = libredlock.$(basename $(VERSION)).dylib
SHARED = $(B)/libredlock.$(VERSION).dylib
UNVERSIONED = libredlock.dylib
NAMED = '-Wl,-install_name,$(LIBDIR)/$(SONAME)'
else
SONAME = libredlock.so.$(basename $(VERSION))
SHARED = $(B)/libredlock.so.$(VERSION)
UNVERSIONED = libredlock.so
NAMED = -Wl,-soname,$(SONAME)
endif

shared: $(SHARED) ## build the shared library
$(SHARED): $(LIB) extra/url.c $(HEADERS) $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(LIMITS) $(WARNINGS) -fPIC -shared $(LDFLAGS) $(NAMED) $(LIB) extra/url.c -o $@ -pthread

# ---- The program ----------------------------------------------------------------------------

# Long keys and tokens, many nodes, passwords that are tokens of a cloud; REDLOCK_SEND_MAX holds the longest login and no more.
# RESP_SIZE_MAX is the longest string that a server has, 512 MB: the program also reads values of other programs, which stream
# through the decoder.
CLI_FLAGS = -pthread -D_GNU_SOURCE -DREDLOCK_NODES_MAX=16 -DREDLOCK_KEY_MAX=255 -DREDLOCK_LABEL_MAX=250 -DREDLOCK_ERROR_MAX=159 \
            -DRESP_TEXT_MAX=255 -DREDLOCK_URL_PASSWORD_MAX=4096 -DREDLOCK_SEND_MAX=4608 -DRESP_SIZE_MAX=536870912
CLI = $(wildcard cli/*.c) extra/url.c $(LIB)
# mbedTLS is in the program only, and only with TLS=1.
TLS =
MBEDTLS_PREFIX = # the folder of an installed mbedTLS, with include and lib; empty: that of the system
MBEDTLS_HEADERS = $(if $(MBEDTLS_PREFIX),-isystem $(MBEDTLS_PREFIX)/include)
MBEDTLS_LIBS = $(MBEDTLS_HEADERS) $(if $(MBEDTLS_PREFIX),-L$(MBEDTLS_PREFIX)/lib) -lmbedtls -lmbedx509 -lmbedcrypto
WITH_TLS = -DREDLOCK_CLI_TLS=1 extra/redlock_tls.c $(MBEDTLS_LIBS)

# glibc before 2.34 has timer_create in librt. Other systems with Linux have an empty librt.
RT = $(if $(filter Linux,$(SYSTEM)),-lrt)

cli: $(if $(TLS),$(if $(MBEDTLS_PREFIX),,deps-tls)) $(B)/redlock ## build the program redlock(1); TLS=1: with TLS for rediss://, through mbedTLS
$(B)/redlock: $(CLI) $(wildcard cli/*.h extra/redlock_tls.*) $(HEADERS) $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(WARNINGS) $(CLI_FLAGS) -I. $(LDFLAGS) $(CLI) $(if $(TLS),$(WITH_TLS)) $(RT) -o $@

# Small, and without shared libraries. With the usual common-page-size the linker may pad the code in the file to a whole page
# to save a page of memory; a small value prevents this. STATIC has all flags of this program: CFLAGS and LDFLAGS of a
# distribution are for shared libraries.
STATIC = musl-gcc -static -no-pie -fno-pie -s -Oz -fno-jump-tables -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables -Wl,--gc-sections -Wl,-z,noseparate-code -Wl,-z,norelro -Wl,-z,common-page-size=64
MBEDTLS = $(B)/mbedtls-source
MUSL_TLS = $(B)/musl/libmbedtls.a
cli-static: deps-static$(if $(TLS),_tls) $(B)/redlock-static ## the same, static, with musl; TLS=1 compiles mbedTLS, too: Debian's source package, or MBEDTLS=folder
$(B)/redlock-static: $(CLI) $(wildcard cli/*.h extra/redlock_tls.*) $(HEADERS) $(B)/flags $(if $(TLS),$(MUSL_TLS))
	@mkdir -p $(@D)
	$(STATIC) $(CPPFLAGS) $(WARNINGS) $(CLI_FLAGS) -I. $(CLI) $(if $(TLS),-isystem $(MBEDTLS)/include $(filter-out -l%,$(WITH_TLS)) $(MUSL_TLS)) -o $@
$(MUSL_TLS):
	@sh tools/source.sh mbedtls library/ssl_tls.c $(MBEDTLS)
	rm -rf $(@D)
	mkdir -p $(@D)
	sources=$$(ls $(abspath $(MBEDTLS))/library/*.c) && cd $(@D) && $(STATIC) -I$(abspath $(MBEDTLS))/include -c $$sources
	$(AR) rcsD $@ $(@D)/*.o
PORT = 7001
servers: deps-demo ## PORT=n: five servers to try the program with, on this port and the four after it, until Ctrl-C
	@tools/five.sh $(PORT)

MAN = $(B)/man/man3
man: $(MAN)/redlock.3 ## generate the man pages from the headers; man -M build/man redlock
$(MAN)/redlock.3: $(HEADERS) tools/man.awk docs/redlock.7 $(wildcard docs/man/*.txt)
	rm -rf $(B)/man
	mkdir -p $(MAN) $(B)/man/man7
	awk -v folder=$(MAN) -f tools/man.awk docs/man/*.txt redlock.h redlock_config.h resp.h extra/url.h
	sed 's/@VERSION@/$(VERSION)/' docs/redlock.7 > $(B)/man/man7/redlock.7

PREFIX = /usr/local
LIBDIR = $(PREFIX)/lib
MANDIR = $(PREFIX)/share/man
DOCDIR = $(PREFIX)/share/doc/redlock
COMPLETIONS = $(PREFIX)/share/bash-completion/completions

# DESTDIR and the folders may have spaces in their names. The file for pkg-config has a backslash before each. All users can read
# what is installed, whatever the umask is.
install-lib: $(B)/libredlock.a $(SHARED) ## PREFIX=, LIBDIR=, DESTDIR=, LIMITS=: libraries, headers, pkg-config, CMake package, licence
	install -d "$(DESTDIR)$(PREFIX)/include/redlock" "$(DESTDIR)$(LIBDIR)/pkgconfig" "$(DESTDIR)$(LIBDIR)/cmake/redlock" "$(DESTDIR)$(DOCDIR)"
	install -m 644 LICENSE "$(DESTDIR)$(DOCDIR)"
	rm -rf $(B)/include
	sh tools/headers.sh $(B)/include $(CC) $(CPPFLAGS) $(CFLAGS) $(LIMITS)
	install -m 644 $(B)/include/* "$(DESTDIR)$(PREFIX)/include/redlock"
	install -m 644 $(B)/libredlock.a "$(DESTDIR)$(LIBDIR)"
	install -m 755 $(SHARED) "$(DESTDIR)$(LIBDIR)"
	ln -sf $(notdir $(SHARED)) "$(DESTDIR)$(LIBDIR)/$(SONAME)"
	ln -sf $(SONAME) "$(DESTDIR)$(LIBDIR)/$(UNVERSIONED)"
	libdir='$(LIBDIR)'; case $$libdir in '$(PREFIX)'/*) libdir='$${prefix}'$${libdir#'$(PREFIX)'} ;; esac; \
	    sed "s|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$$libdir|; s|@INCLUDEDIR@|\$${prefix}/include|; s|@VERSION@|$(VERSION)|; s|@LIBS@|-pthread|; \
	        /^[a-z]*=/ s| |\\\\ |g" packaging/redlock.pc.in > $(B)/redlock.pc
	install -m 644 $(B)/redlock.pc "$(DESTDIR)$(LIBDIR)/pkgconfig"
	up=$$(echo "$(LIBDIR)/cmake/redlock" | sed 's|^/||; s|[^/][^/]*|..|g'); for file in redlockConfig redlockConfigVersion; do \
	    sed "/@.*@/ { s|@UP@|$$up|; s|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|; s|@SHARED@|$(UNVERSIONED)|; }" packaging/cmake/$$file.cmake.in \
	        > $(B)/$$file.cmake && install -m 644 $(B)/$$file.cmake "$(DESTDIR)$(LIBDIR)/cmake/redlock" || exit 1; \
	done

install: install-lib $(B)/redlock man ## the same with MANDIR=: also the program, man pages, completion
	install -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(MANDIR)/man1" "$(DESTDIR)$(MANDIR)/man3" "$(DESTDIR)$(MANDIR)/man7" "$(DESTDIR)$(COMPLETIONS)"
	install -m 755 $(B)/redlock "$(DESTDIR)$(PREFIX)/bin"
	install -m 644 cli/redlock.1 "$(DESTDIR)$(MANDIR)/man1"
	install -m 644 cli/redlock.bash "$(DESTDIR)$(COMPLETIONS)/redlock"
	find $(MAN) -type f -exec install -m 644 {} "$(DESTDIR)$(MANDIR)/man3" \;
	find $(MAN) -type l -exec cp -RP {} "$(DESTDIR)$(MANDIR)/man3" \;
	install -m 644 $(B)/man/man7/redlock.7 "$(DESTDIR)$(MANDIR)/man7"

# clang in zig has the headers of macOS and a linker for it.
ZIG = zig
MACOS = x86_64-macos aarch64-macos
cross: ## ZIG=path: library and program for macOS on x86_64 and arm64, compiled, linked and installed with zig, not run
	@command -v '$(ZIG)' >/dev/null || { echo 'cross: the compiler zig is missing: install it, or name it with ZIG=path' >&2; exit 1; }
	for target in $(MACOS); do \
	    $(MAKE) -s B=$(B)/$$target SYSTEM=Darwin CC="$(ZIG) cc -target $$target" AR='$(ZIG) ar' CFLAGS=-O2 LDFLAGS= \
	        WARNINGS='$(WARN)' install DESTDIR='$(abspath $(B))'/$$target/root && \
	    $(ZIG) cc -target $$target -I$(B)/$$target/root$(PREFIX)/include/redlock examples/lock.c -L$(B)/$$target/root$(LIBDIR) -lredlock \
	        -o $(B)/$$target/lock || exit 1; \
	done

# One file that compiles alone beside its redlock.h. net.c comes first: it defines the feature macros, which must happen before
# the first system header.
ONE = $(B)/single/redlock_all.c
ONE_CORE = $(B)/single/redlock_core.c
ONE_ORDER = resp.c command.c node.c wait.c hold.c redlock.c client.c

amalgamation: $(ONE) $(ONE_CORE) ## the library as one file beside redlock.h, in build/single: redlock_all.c; for firmware redlock_core.c
$(ONE): $(LIB) extra/url.c $(HEADERS) tools/amalgamate.awk Makefile
	@mkdir -p $(@D)
	awk -f tools/amalgamate.awk redlock.h extra/url.h > $(@D)/redlock.h
	awk -f tools/amalgamate.awk net.c $(ONE_ORDER) extra/url.c > $@
# Without net.c and url.c: no system header.
$(ONE_CORE): $(ONE)
	awk -f tools/amalgamate.awk $(ONE_ORDER) > $@

# Reproducible: the same bytes each time, also when built from an unpacked release. The tarball also has the generated files:
# the single files, the man pages, the checksums of all files. Its own checksum is in a file beside it. All files have the date of
# the newest release in CHANGELOG.md: tools complain about 1970.
RELEASE = redlock-$(VERSION)
TAR = tar
SHA256SUM = $(shell command -v sha256sum >/dev/null 2>&1 && echo sha256sum || echo shasum -a 256)
DATE = $(shell sed -n 's/^\#\# [0-9.]*, \(20[0-9-]*\)$$/\1/p' CHANGELOG.md | head -n 1)
release: $(ONE) $(ONE_CORE) man ## a tarball with all sources, the single files, man pages and checksums, in build
	@$(TAR) --version | grep -q GNU || { echo 'release: tar must be that of GNU: TAR=gtar for instance' >&2; exit 1; }
	rm -rf $(B)/$(RELEASE)
	mkdir -p $(B)/$(RELEASE)/single $(B)/$(RELEASE)/man/man1
	tools/files.sh > $(B)/$(RELEASE).files
	@# Not through a pipe: a listed file that is missing must end the build.
	$(TAR) -c -T $(B)/$(RELEASE).files -f $(B)/$(RELEASE).tar
	$(TAR) -x -f $(B)/$(RELEASE).tar -C $(B)/$(RELEASE)
	rm $(B)/$(RELEASE).tar
	cp $(ONE) $(ONE_CORE) $(B)/single/redlock.h $(B)/$(RELEASE)/single
	cp -RP $(B)/man/. $(B)/$(RELEASE)/man
	cp cli/redlock.1 $(B)/$(RELEASE)/man/man1
	cd $(B)/$(RELEASE) && find . -type f | sed 's|^\./||' | LC_ALL=C sort | xargs $(SHA256SUM) > ../SHA256SUMS && mv ../SHA256SUMS .
	LC_ALL=C $(TAR) --format=ustar --sort=name --mtime='$(DATE) UTC' --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -C $(B) -c $(RELEASE) | gzip -n -9 > $(B)/$(RELEASE).tar.gz
	cd $(B) && $(SHA256SUM) $(RELEASE).tar.gz > $(RELEASE).tar.gz.sha256

include test/test.mk bench/bench.mk

# Targets are no files, except those in build.
.PHONY: $(shell sed -n 's/^\([a-z][a-z -]*\):.*/\1/p' $(MAKEFILE_LIST)) $(VARIANTS:%=test-%)
