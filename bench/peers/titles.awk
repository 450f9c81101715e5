# titles.awk - how people read what the figures call by short names; the awk programs of bench/ include it.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
function title(who,    setting, name) {
    setting = who
    sub(/.*-/, "", setting)
    sub(/-(default|best)$/, "", who)
    name["ours"] = "redlock, 5 nodes"; name["ours-1"] = "redlock, 1 node"; name["node"] = "node-redlock, 5 nodes"
    name["hiredis"] = "hiredis, 5 nodes"; name["redis-py"] = "redis-py, asks one node"
    name["etcd"] = "etcd, 1 member"; name["etcd-3"] = "etcd, 3 members"
    return name[who] (who ~ /^(ours|etcd)/ ? "" : setting == "best" ? ", best settings" : ", its defaults")
}
function fault(short,    name) {
    name["none"] = "none"; name["stopped"] = "one is stopped"; name["refuses"] = "one refuses"; name["drops"] = "one drops packets"
    name["two-stopped"] = "two are stopped"; name["late"] = "one answers after 200 ms"; name["paused"] = "one stops for 2 s"
    name["forgotten"] = "idle connections are lost in silence"; name["load"] = "one is stopped, 64 locks at a time"
    return name[short]
}
function ms(us) {
    if (us == "")
        return "-"
    return us >= 1e7 ? "> 10,000" : sprintf(us < 10000 ? "%.2f" : us < 100000 ? "%.1f" : "%.0f", us / 1000)
}
