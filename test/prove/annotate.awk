# annotate.awk -v notes=FILE: puts the annotations for Eva in FILE, "function: annotation" a line, behind the opening brace of these
# functions. It fails if there is none such.
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
