# tap.sh - for shell tests, which source it (`.`): the Test Anything Protocol, for `prove`. It needs $folder, for a log: source
# servers.sh first, or set it.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
number=0
failed=0

# check TITLE COMMAND ... - ok if the command succeeds, else its output is shown
check() {
    number=$((number + 1))
    title=$1
    shift
    if "$@" >"$folder/log" 2>&1; then
        echo "ok $number - $title"
    else
        echo "not ok $number - $title"
        echo "# failed: $title" >&2 # `prove` hides comments on stdout
        sed 's/^/# /' "$folder/log" | tail -n 20 >&2
        failed=1
    fi
}

# Prints the plan and ends the script.
done_testing() {
    echo "1..$number"
    exit $failed
}
