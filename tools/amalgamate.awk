# amalgamate.awk - joins our files into one, to stdout. For redlock.h and url.h: puts our other headers where they are included.
# For the .c files: one after the other, including only redlock.h. No date, no path: the same input
# gives the same bytes.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT

BEGIN {
    while ((getline line < "redlock.h") > 0)
        if (line ~ /^#define REDLOCK_VERSION /) {
            split(line, words, "\"")
            version = words[2]
        }
    close("redlock.h")
    print "/* redlock " version ", generated from several files: make amalgamation."
    print ""
    print "   SPDX-FileCopyrightText: the redlock authors"
    print "   SPDX-License-Identifier: MIT */"
    sources = ARGV[1] ~ /\.c$/
    if (sources) {
        print "#define REDLOCK_PRIVATE static"
        print "#ifdef __GNUC__ /* with REDLOCK_API static, functions that you do not call */"
        print "#pragma GCC diagnostic push"
        print "#pragma GCC diagnostic ignored \"-Wunused-function\""
        print "#endif"
    }
}

END {
    if (sources) {
        print "#ifdef __GNUC__"
        print "#pragma GCC diagnostic pop"
        print "#endif"
    }
}

FNR == 1 { print ""; print "/* ---- " FILENAME " ---- */"; print "" }

# Prints a header of ours, with those that it includes, where it is first included.
function put(header,    line) {
    if (header in printed)
        return
    printed[header] = 1
    while ((getline line < header) > 0)
        if (line ~ /^#include "/) {
            split(line, quoted, "\"")
            put(quoted[2])
        } else {
            print line
        }
    close(header)
}

FILENAME ~ /\.h$/ && /^#include "/ {
    split($0, quoted, "\"")
    put(quoted[2])
    next
}

# The private header stands where it is first included; its own guard keeps it from there on.
$0 == "#include \"core.h\"" {
    while (!core && (getline line < "core.h") > 0)
        print line
    core = 1
    next
}

$0 == "#include \"resp.h\"" || $0 == "#include \"url.h\"" { print "#include \"redlock.h\""; next } # which has all other headers, too

{ print }
