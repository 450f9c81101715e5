#!/bin/sh
# valgrind.sh PROGRAM - runs it under memcheck. It fails for any error or leak, and for any descriptor that the program opened
# and left open. Inherited descriptors do not count.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
report=$(mktemp)
trap 'rm -f "$report"' EXIT
trap 'exit 1' HUP INT PIPE # after TERM the shell would wait for its child
valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=all --track-fds=yes \
    --child-silent-after-fork=yes --log-file="$report" "$@"
status=$?
awk '{ sub(/^==[0-9]+== ?/, "") }
    /^ *$/ || /^FILE DESCRIPTORS/ { next }
    /^Open / { open = $0; next }
    /inherited from parent/ { open = ""; next }
    open != "" { if (open !~ /descriptor [012]:/) { print "# left open: " open; left = 1 } open = "" }
    { print "# " $0 }
    END { exit left }' "$report" >&2 || status=98
exit $status
