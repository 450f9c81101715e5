# annotate.awk -v notes=FILE: inserts the annotations for Eva in FILE after the opening brace of their functions. Each line of FILE
# is "function: annotation". It fails if there is no such function.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
BEGIN {
    while ((getline line < notes) > 0)
        if (line !~ /^#/ && (at = index(line, ": ")) > 0)
            note[substr(line, 1, at - 1)] = note[substr(line, 1, at - 1)] "\n/*@ " substr(line, at + 2) " */ ;"
}
{ print }
/^[a-z].*\(/ && match($0, /[a-z_]+\(/) { name = substr($0, RSTART, RLENGTH - 1) }
/^\{/ && name in note { print note[name]; delete note[name] }
END { for (name in note) { print "no function " name > "/dev/stderr"; exit 1 } }
