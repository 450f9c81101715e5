# man.awk - generates man pages (mdoc, section 3) from the headers and from docs/man/*.txt: one page for each header,
# named after its include guard, and one for each group of functions without a blank line between them. No date, no
# path: the same input gives the same bytes, with gawk, mawk and busybox awk.
#
#     awk -v folder=build/man/man3 -f tools/man.awk docs/man/*.txt redlock.h redlock_config.h resp.h extra/url.h
#
# Conventions of the headers: the first comment begins with "NAME.h - what it is"; `---- Title ----` begins a section; a
# comment stands above what it explains, or behind it. Where there are both, or the one above begins with "You", it is
# for all that follow. Nested structs (`priv`) are left out. A sentence that begins with "Blocks", "Does not block" or
# "Never blocks" goes into the section BLOCKING TIME; behind "Blocks" so does the rest of
# its paragraph, without the sources.
#
# Readers of the pages have no sources: the rules (R4, "R8 to R10") and what begins with "Private" are left out.
#
# The text files add, for each function (`# name`): PARAMETERS (`name: text`), RETURN VALUES, BLOCKING TIME, EXAMPLES (a
# code block). `# all` has parameters that are the same everywhere.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT

FILENAME ~ /[.]txt$/ { read_more($0); next }
FNR == 1 { header[++headers] = FILENAME }
/^#ifdef __cplusplus/ { skipping = 1 }
!skipping { text[headers] = text[headers] $0 "\n" }
skipping && /^#endif/ { skipping = 0 }
/^#define REDLOCK_VERSION / { split($0, words, "\""); version = words[2] }

END {
    for (h = 1; h <= headers; h++) {
        from[h] = items + 1
        scan(text[h], "")
        to[h] = items
        page[h] = guard
        for (i = from[h]; i <= to[h]; i++)
            if (kind[i] == "function") {
                if (kind[i - 1] != "function" || block[i - 1] != block[i]) first = name[i]
                page_of[name[i]] = first
            } else if (name[i] == "redlock_status") {
                status_body = body[i]
            }
    }
    first_status = items + 1
    scan(status_body, ",")
    last_status = items
    for (i = first_status; i <= last_status; i++) status[name[i]]
    for (h = 1; h <= headers; h++) {
        write_header(h)
        for (i = from[h]; i <= to[h]; i = j)
            for (j = i + 1; kind[i] == "function"; j++)
                if (kind[j] != "function" || block[j] != block[i] || j > to[h]) {
                    write_functions(h, i, j - 1)
                    break
                }
    }
}

# ---- Reading the text files.

# One line: more[function, section] is text, parameter[function, name] too.
function read_more(line) {
    if (FNR == 1) its_function = section = "" # the first lines of each file are for its authors
    if (line ~ /^# /) {
        its_function = substr(line, 3)
        section = ""
    } else if (line ~ /^(PARAMETERS|RETURN VALUES|BLOCKING TIME|EXAMPLES)$/) {
        section = line
    } else if (section == "PARAMETERS" && match(line, /^[a-z_0-9]+: /)) {
        parameter[its_function, substr(line, 1, RLENGTH - 2)] = substr(line, RLENGTH + 1)
    } else if (section == "EXAMPLES") {
        if (line !~ /^```/) more[its_function, section] = more[its_function, section] "       " line "\n"
    } else if (section != "" && line != "") {
        more[its_function, section] = more[its_function, section] line "\n"
    }
}

# ---- Reading the headers: items, each with its kind, name and code, the comments above and behind it, the number of its
# ---- block (blank lines are between blocks), and what is between its braces.

function trim(s) {
    gsub(/[ \t\n\\]+/, " ", s)
    gsub(/^ | $/, "", s)
    return s
}

function add(its_kind, its_name, its_code, its_body) {
    items++
    kind[items] = its_kind
    name[items] = its_name
    code[items] = trim(its_code)
    body[items] = its_body
    above[items] = pending
    behind[items] = ""
    block[items] = blocks
    pending = ""
    same_line = its_kind != "section" && its_kind != "text"
}

# A comment that stands above nothing is a paragraph.
function end_block() {
    blocks++
    same_line = 0
    if (pending != "") add("text")
}

# Without the rules that it names, and without the sentence that says where these are.
function without_rules(s) {
    sub(/[ \n]+"R4" is rule [^;]*; [^.]*\./, "", s)
    gsub(/;[ \n]+R[0-9]+b?((,| to)[ \n]+R[0-9]+b?)*/, "", s)
    gsub(/[.][ \n]+R[0-9]+b?((,| to)[ \n]+R[0-9]+b?)*[.]?/, ".", s)
    return s
}

function add_comment(s) {
    s = without_rules(s)
    if (s ~ /^ ---- .* -+ $/) {
        gsub(/^ ---- | -+ $/, "", s)
        add("section", s)
    } else if (same_line && behind[items] == "") {
        behind[items] = s
    } else {
        if (pending != "") end_block()
        pending = s
    }
}

# The name that is declared: the last word, or that of a pointer to a function.
function declared(s) {
    s = trim(s)
    sub(/\[.*| = .*/, "", s)
    if (!match(s, /\(\*[a-z_]+\)/)) match(s, / ?\**[A-Za-z_0-9]+$/)
    s = substr(s, RSTART, RLENGTH)
    gsub(/[ *()]/, "", s)
    return s
}

# How long the part in braces is that s begins with.
function in_braces(s,    i, depth) {
    for (i = 1; i <= length(s); i++) {
        depth += (substr(s, i, 1) == "{") - (substr(s, i, 1) == "}")
        if (depth == 0) return i
    }
}

# Reads one item or comment at the beginning of s; how many bytes it has. `ends` is what ends a member: ";" in a
# struct, "," in an enum, "" outside.
function scan_one(s, ends,    n, head, inner) {
    if (match(s, /^[ \t]+/)) return RLENGTH
    if (match(s, /^\n([ \t]*\n)+/)) { n = RLENGTH; end_block(); return n }
    if (match(s, /^\n/)) { same_line = 0; return 1 }
    if (substr(s, 1, 2) == "/*") {
        n = index(s, "*/") + 1
        add_comment(substr(s, 3, n - 4))
        return n
    }
    if (match(s, /^#([^\n\\\/]|\\\n|\/[^*])*/)) {
        n = RLENGTH
        head = substr(s, 1, n)
        if (head ~ /^#define [A-Z_]+_H$/) guard = tolower(substr(head, 9, n - 10))
        else if (head ~ /^#define /) add("macro", "", substr(head, 9))
        return n
    }
    if (match(s, /^(struct|enum)[ a-z_]*[{]/)) {
        head = substr(s, 1, RLENGTH - 1)
        inner = substr(s, RLENGTH)
        inner = substr(inner, 1, in_braces(inner))
        n = length(head inner)
        add(ends == ";" ? "nested" : "type", declared(head), head, substr(inner, 2, length(inner) - 2))
        match(substr(s, n), /;/)
        return n + RSTART - 1
    }
    if (!match(s, ends == "," ? ",|\n|/[*]" : ";")) RSTART = length(s) + 1
    n = RSTART - (substr(s, RSTART, 1) !~ /[,;]/)
    head = substr(s, 1, RSTART - 1)
    if (sub(/^(REDLOCK|RESP)_API /, "", head)) add("function", declared(substr(head, 1, index(head, "(") - 1)), head)
    else add("member", declared(head), head)
    return n
}

function scan(s, ends) {
    same_line = 0
    while (s != "") s = substr(s, scan_one(s, ends) + 1)
    end_block()
}

# ---- Setting: plain English with names of C in it becomes mdoc.

# Every `from` in s becomes `to`. Not gsub: what a backslash means in its replacement differs between versions of awk.
function replaced(s, from, to,    at, out) {
    while ((at = index(s, from)) > 0) {
        out = out substr(s, 1, at - 1) to
        s = substr(s, at + length(from))
    }
    return out s
}

function escape(s) {
    return replaced(replaced(replaced(replaced(s, "\\", "\\e"), "~", "\\(ti"), "^", "\\(ha"), "->", "\\->")
}

# In an argument of a macro, between quotes.
function quoted(s) {
    return replaced(escape(s), "\"", "\\(dq")
}

function bold(s) { return "\\fB" s "\\fP" }

# Names of functions, constants and members stand out. Names of results may be shortened: _HELD.
function mark(word) {
    if (word ~ /^`/) return "\\fI" escape(substr(word, 2, length(word) - 2)) "\\fP"
    if (word in page_of) {
        mentioned[page_of[word]] = 1
        return bold(word) "(3)"
    }
    if (("REDLOCK" word) in status) word = "REDLOCK" word
    if (word in status) used[word] = 1
    if (word ~ /^(REDLOCK|RESP)_[A-Z]/) return bold(word)
    if (word ~ /[a-z]_[a-z]|->|\[/) return "\\fI" escape(word) "\\fP"
    return word
}

function marked(s,    out, word) {
    while (match(s, /`[^`]*`|[A-Za-z_][A-Za-z_0-9]*(->[a-z_]+|\[[a-z0-9]*\]\.[a-z_]+)?/)) {
        word = substr(s, RSTART, RLENGTH)
        out = out escape(substr(s, 1, RSTART - 1)) mark(word)
        s = substr(s, RSTART + length(word))
    }
    return out escape(s)
}

function put(s) {
    print s > file
    after_list = s == ".El"
}

# A paragraph, each sentence on a separate line, so that the blanks behind them are set alike.
function paragraph(s) {
    s = replaced(marked(trim(s)), "e.g. ", "e.g.\\ ")
    while (match(s, /[^ .][.!?][)"]* /)) {
        put_text(substr(s, 1, RSTART + RLENGTH - 2))
        s = substr(s, RSTART + RLENGTH)
    }
    put_text(s)
}

function put_text(s) { put((s ~ /^[.']/ ? "\\&" : "") s) }

# A comment. A paragraph begins after a blank line, or with "Word:"; what is indented by 7 is code.
function prose(s,    i, n, lines, held, shown, literal, gap) {
    if (after_list) put(".Pp")
    n = split(s "\n", lines, "\n")
    for (i = 1; i <= n; i++) {
        gap = gap || lines[i] ~ /^ *$/ || lines[i] ~ /^   [A-Z][a-z-]+: /
        if (gap && held != "") {
            if (shown++) put(".Pp")
            paragraph(held)
            held = ""
        }
        if (lines[i] ~ /^ *$/) continue
        if (gap && literal != (lines[i] ~ /^       /)) {
            literal = !literal
            put(literal ? ".Bd -literal -offset indent" : ".Ed\n.Pp")
            shown = 0
        } else if (gap && literal) {
            put("")
        }
        gap = 0
        if (literal) put_text(escape(substr(lines[i], 8)))
        else held = held "\n" lines[i]
    }
    if (literal) put(".Ed")
}

# ---- Writing

function begin_page(its_name) {
    file = folder "/" its_name ".3"
    split("", mentioned)
    split("", used)
    put(".\\\" Made by tools/man.awk. SPDX-FileCopyrightText: the redlock authors")
    put(".\\\" SPDX-License-Identifier: MIT")
    put(".Dd November 22, 2026")
    put(".Dt " toupper(its_name) " 3")
    put(".Os redlock " version)
    put(".Sh NAME")
}

# With those of `mentioned`, in their order.
function end_page(its_name,    i, n, best, other) {
    put(".Sh SEE ALSO")
    delete mentioned[its_name]
    for (other in mentioned) n++
    for (i = 1; i <= n; i++) {
        best = ""
        for (other in mentioned) if (best == "" || other < best) best = other
        put(".Xr " best " 3 ,")
        delete mentioned[best]
    }
    put(".Xr redlock 7")
    close(file)
}

# In a line what the functions of a block are for: the first sentence above them, or the section that they are in.
function in_short(i,    s) {
    s = trim(above[i])
    if (s == "") {
        while (kind[i] != "section" && i > 1) i--
        s = name[i]
    }
    if (match(s, /; |\. /)) s = substr(s, 1, RSTART - 1)
    sub(/\.$/, "", s)
    gsub(/`/, "", s)
    return s ~ /^[A-Z][a-z]*( |$)/ ? tolower(substr(s, 1, 1)) substr(s, 2) : s
}

function put_tag(i) { put(".It \"" bold(quoted(kind[i] == "function" ? name[i] "()" : code[i])) "\"") }

# Whether the comment above item i is for all that follow.
function is_for_all(i) { return above[i] != "" && (behind[i] != "" || above[i] ~ /^ You /) }

# Items first..last, each with its comment; those without one share that above the one before.
function list(first, last,    i, open, s) {
    for (i = first; i <= last; i++) {
        if (kind[i] == "text" || is_for_all(i)) {
            if (open) put(".El")
            open = 0
            prose(above[i])
        }
        if (kind[i] == "text" || kind[i] == "nested" || code[i] ~ /^struct [a-z_]+$/) continue # that is known by name only
        if (!open) put(".Bl -tag -width Ds")
        open = 1
        put_tag(i)
        s = is_for_all(i) ? behind[i] : above[i] behind[i]
        while (behind[i] == "" && i < last && above[i + 1] behind[i + 1] == "" && kind[i + 1] == kind[i]) put_tag(++i)
        if (s != "") prose(s)
    }
    if (open) put(".El")
}

# A struct or an enum: what is said of it, then its members.
function write_type(i,    first, ends) {
    put(".Ss " (name[i] == "" || name[i] == code[i] ? "Constants" : code[i]))
    if (above[i] != "") prose(above[i])
    if (behind[i] != "") prose(behind[i])
    first = items + 1
    ends = code[i] ~ /^enum/ ? "," : ";"
    scan(body[i], ends)
    list(first, items)
    for (; first <= items; first++)
        if (kind[first] == "nested") prose(" The rest is private.")
}

# The functions of one section, a line for each block of them.
function write_index(first, last,    i) {
    put(".Ss Functions\n.Bl -tag -width Ds")
    for (i = first; i <= last; i++) {
        if (page_of[name[i]] != name[i]) continue
        put(".It Xr " name[i] " 3" (kind[i + 1] == "function" && block[i + 1] == block[i] ? " and others" : ""))
        paragraph(in_short(i) ".")
    }
    put(".El")
}

function write_header(h,    i, j, s) {
    begin_page(page[h])
    i = from[h]
    s = above[i]
    match(s, /\.[ \n]/)
    put(".Nm " page[h])
    put(".Nd " quoted(trim(substr(s, index(s, " - ") + 3, RSTART - index(s, " - ") - 3))))
    put(".Sh SYNOPSIS")
    put(".In " header[h])
    put(".Sh DESCRIPTION")
    s = substr(s, RSTART + 1)
    sub(/\n *SPDX.*/, "", s)
    prose(s)
    if (kind[i + 1] != "section") put(".Sh CONSTANTS")
    for (i++; i <= to[h]; i = j) {
        for (j = i + 1; kind[i] != "type" && kind[j] == kind[i] && (block[j] == block[i] || kind[i] == "function") && j <= to[h];) j++
        if (kind[i] == "section") put(".Sh " toupper(name[i]))
        else if (kind[i] == "type") { if (!(above[i] ~ /^ Private/)) write_type(i) }
        else if (kind[i] == "function") write_index(i, j - 1)
        else {
            if (kind[i - 1] == "function") put(".Ss Constants")
            list(i, j - 1)
        }
    }
    split("", mentioned)
    for (i = 1; i <= headers; i++) mentioned[page[i]] = 1
    end_page(page[h])
}

# Takes the sentences about blocking out of a comment, and leaves them in `blocking`.
function without_blocking(s,    head, n) {
    if (!match(s, /(^|[.] |[.]\n *| )(Blocks|Does not block|Never blocks)[ ,.\n]/)) return s
    head = substr(s, 1, RSTART - 1)
    s = substr(s, RSTART)
    n = match(s, /\n *\n|[ \n]\[Redlock\]/) ? RSTART - 1 : length(s)
    if (s !~ /^[. \n]*Blocks/ && match(substr(s, 3), /[.][ \n]/)) n = RSTART + 2
    if (s ~ /^[.]/) { head = head "."; s = substr(s, 2); n-- }
    blocking = blocking substr(s, 1, n) "\n"
    return head substr(s, n + 1)
}

function has_more(first, last, its_section,    i) {
    for (i = first; i <= last; i++) if ((name[i], its_section) in more) return 1
    return 0
}

# The texts of a group of functions; the same text only once.
function write_more(first, last, its_section,    i, seen, s) {
    for (i = first; i <= last; i++) {
        s = more[name[i], its_section]
        if (s == "" || s in seen) continue
        seen[s]
        prose(s)
    }
}

# Each parameter once, in the order of the prototypes. One without a text is shown as such: test/package/docs.sh looks for it.
function write_parameters(first, last,    i, k, n, words, s, seen, open) {
    for (i = first; i <= last; i++) {
        s = code[i]
        sub(/^[^(]*\(/, "", s)
        sub(/\)$/, "", s)
        n = split(s, words, /, */)
        for (k = 1; k <= n; k++) {
            s = declared(words[k])
            if (s == "void" && !seen[""]++) put(".Sh PARAMETERS\nNone.")
            if (s == "void" || s in seen || !(name[i] ~ /^redlock_/)) continue
            seen[s]
            if (!open) put(".Sh PARAMETERS\n.Bl -tag -width Ds")
            open = 1
            put(".It Fa " s)
            if ((name[i], s) in parameter) prose(parameter[name[i], s])
            else if (("all", s) in parameter) prose(parameter["all", s])
            else prose("No description.")
        }
    }
    if (open) put(".El")
}

function write_functions(h, first, last,    i, separate, results) {
    begin_page(name[first])
    blocking = ""
    for (i = first; i <= last; i++) {
        put(".Nm " name[i] (i < last ? " ," : ""))
        if (i > first && above[i] behind[i] != "" || behind[i] != "") separate = 1
        if (i > first) system("ln -sf " name[first] ".3 " folder "/" name[i] ".3")
    }
    put(".Nd " quoted(in_short(first)))
    put(".Sh SYNOPSIS")
    put(".In " header[h])
    for (i = first; i <= last; i++) put_prototype(code[i])
    put(".Sh DESCRIPTION")
    if (!separate) prose(without_blocking(above[first]))
    else {
        for (i = first; i <= last; i++) above[i] = without_blocking(above[i])
        list(first, last)
    }
    write_parameters(first, last)
    for (i = first_status; i <= last_status; i++)
        if (name[i] in used && code[first] ~ /^enum redlock_status/) results = results name[i] " "
    put(".Sh RETURN VALUES")
    if (results == "" && !has_more(first, last, "RETURN VALUES")) put("None.")
    write_more(first, last, "RETURN VALUES")
    if (results != "") put(".Bl -tag -width Ds")
    for (i = first_status; i <= last_status; i++)
        if (index(" " results, " " name[i] " ")) {
            put(".It " bold(name[i]))
            prose(behind[i])
        }
    if (results != "") put(".El")
    if (blocking != "" || has_more(first, last, "BLOCKING TIME")) put(".Sh BLOCKING TIME")
    if (blocking != "") prose(blocking)
    else write_more(first, last, "BLOCKING TIME")
    if (has_more(first, last, "EXAMPLES")) {
        put(".Sh EXAMPLES")
        paragraph("Client, nodes and lock are set up. `status` is an `enum redlock_status`, `i` is unsigned, " \
                  "`events` has one byte for each node.")
    }
    for (i = first; i <= last; i++)
        if ((name[i], "EXAMPLES") in more) prose("\n" more[name[i], "EXAMPLES"])
    see_others(h, first)
    end_page(name[first])
}

# Those of the same section, and the same as an event-driven or a blocking call.
function see_others(h, first,    i, other) {
    mentioned[page[h]] = 1
    for (i = first; kind[i] != "section" && i > from[h];) i--
    for (i++; kind[i] != "section" && i <= to[h]; i++) {
        if (kind[i] != "function") continue
        mentioned[page_of[name[i]]] = 1
        if (page_of[name[i]] != name[first]) continue
        other = name[i]
        if (!sub(/_start$/, "", other)) other = other "_start"
        if (other in page_of) mentioned[page_of[other]] = 1
    }
}

function put_prototype(s,    i, n, words) {
    match(s, /[a-z_0-9]+\(/)
    put(".Ft \"" trim(substr(s, 1, RSTART - 1)) "\"")
    put(".Fo " substr(s, RSTART, RLENGTH - 1))
    n = split(substr(s, RSTART + RLENGTH, length(s) - RSTART - RLENGTH), words, /, */)
    for (i = 1; i <= n; i++) put(".Fa \"" words[i] "\"")
    put(".Fc")
}
