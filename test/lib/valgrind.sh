#!/bin/sh
# valgrind.sh PROGRAM - runs it under memcheck. It fails for any error or leak, also in its child processes, and for any descriptor
# that the program opened and left open. Inherited descriptors do not count, so those of child processes do not either.
# The reports decide, because valgrind's own exit status has counted inherited descriptors since 3.24.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT PIPE # after TERM the shell would wait for its child
valgrind -q --leak-check=full --show-leak-kinds=all --track-fds=yes --log-file="$folder/%p" "$@" &
program=$!
wait $program
status=$?
for report in "$folder"/*; do
    sed -e 's/^==[0-9]*== *//' -e '/^FILE DESCRIPTORS/d' "$report" | awk -v RS= -v child=$([ "${report##*/}" = $program ] || echo 1) '
        /^Open / && (child || /inherited from parent/ || /descriptor [012]:/) { next }
        child && /^[0-9,]+ (\([^)]*\) )?bytes in .* are / { next } # what the parent frees
        { gsub(/\n/, "\n# "); print "# " $0; found = 1 }
        END { exit found }' >&2 || status=98
done
[ -e "$folder/$program" ] || { echo '# no report' >&2; status=98; }
exit $status
