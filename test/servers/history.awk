# history.awk FILE ... - whether each history that soak.c writes is linearizable as a mutex. One line for each, and one for each of
# its first faults. The status is 1 if a history is not linearizable, not well-formed, or has no holding. docs/testing.md describes
# the format, and says why a look for two holders at once is enough.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
function field(name,    found) {
    if (!match($0, ":" name " +:?[a-z0-9]+"))
        return ""
    found = substr($0, RSTART, RLENGTH)
    sub(/^.* :?/, "", found)
    return found
}

function fault(what) {
    if (faults++ < 5)
        print file ":" FNR ": " what
}

function begin_file() {
    file = FILENAME
    files++
    split("", calls) # of each process: "acquire", "release", or "gone" after an unknown outcome
    split("", since) # of each holder: the line of its acquire
    events = time = faults = granted = failed = unknown = 0
}

function end_file() {
    if (file == "")
        return
    if (granted == 0)
        fault("no holding")
    printf "%s: %s: %d acquires granted, %d failed, %d unknown\n", file, faults ? "NOT linearizable" : "linearizable", granted, failed, unknown
    bad += faults > 0
}

FNR == 1 { end_file(); begin_file() }

{
    process = field("process"); type = field("type"); f = field("f")
    if (process == "" || field("index") != events++ || field("time") + 0 < time)
        fault("no event, or out of order")
    time = field("time") + 0
    if (calls[process] != (type == "invoke" ? "" : f))
        fault("process " process ": " type " " f " after " (calls[process] == "" ? "no invoke" : calls[process]))
    calls[process] = type == "invoke" ? f : type == "info" ? "gone" : ""
    event = type " " f
}

event == "invoke acquire" {
    if (process in since)
        fault("process " process " acquires the lock, which it holds")
    next
}

event == "ok acquire" {
    for (other in since)
        fault("process " process " acquired the lock, which process " other " holds since line " since[other])
    since[process] = FNR
    granted++
    next
}

event == "fail acquire" { failed++; next }

event == "info acquire" { unknown++; next }

event == "invoke release" { # it can take effect at once
    if (!(process in since))
        fault("process " process " releases the lock, which it does not hold")
    delete since[process]
    next
}

event != "ok release" && event != "info release" { fault("the model has no such event: " event) }

END {
    end_file()
    exit bad > 0 || files != ARGC - 1
}
