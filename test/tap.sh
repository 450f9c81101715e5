# tap.sh - for shell tests, which read it in (`.`): the Test Anything Protocol, for `prove`. It needs $folder, for a log: read in servers.sh before, or set it.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
number=0
failed=0

# check TITLE COMMAND ... - ok if it succeeds; what it prints is shown if not
check() {
    number=$((number + 1))
    title=$1
    shift
    if "$@" >"$folder/log" 2>&1; then
        echo "ok $number - $title"
    else
        echo "not ok $number - $title"
        echo "# failed: $title" >&2 # `prove` hides what goes to stdout
        sed 's/^/# /' "$folder/log" | tail -n 20 >&2
        failed=1
    fi
}

# The plan, and the end.
done_testing() {
    echo "1..$number"
    exit $failed
}
