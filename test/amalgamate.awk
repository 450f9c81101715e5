# amalgamate.awk - joins our files into one, to stdout. For redlock.h: puts resp.h where it is included.
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
}

FNR == 1 { print ""; print "/* ---- " FILENAME " ---- */"; print "" }

$0 == "#include \"resp.h\"" && FILENAME ~ /\.h$/ {
    while ((getline line < "resp.h") > 0)
        print line
    close("resp.h")
    next
}

$0 == "#include \"resp.h\"" { print "#include \"redlock.h\""; next }

{ print }
