#!/bin/sh
# tls.sh PROGRAM ... - runs it with a folder of fresh certificates, good and bad, as its last argument.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
folder=$(mktemp -d)
made=
trap '[ -n "$made" ] || cat "$folder/log" >&2; rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT PIPE # after TERM the shell would wait for its child

# make NAME DAYS SUBJECT_ALT_NAMES CA - a key and a certificate
make() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" -addext "$3" \
        -keyout "$folder/$1.key" -out "$folder/request"
    if [ "$4" = "$1" ]; then
        set -- "$1" "$2" "$3" -signkey "$folder/$1.key"
    else
        set -- "$1" "$2" "$3" -CA "$folder/$4.pem" -CAkey "$folder/$4.key" -CAcreateserial
    fi
    name=$1 days=$2
    shift 3
    openssl x509 -req -copy_extensions copy -in "$folder/request" -days "$days" "$@" -out "$folder/$name.pem"
}

certificates() {
    here='subjectAltName=IP:127.0.0.1,DNS:redis.example'
    make ca 10 basicConstraints=critical,CA:TRUE ca
    make other-ca 10 basicConstraints=critical,CA:TRUE other-ca
    openssl req -x509 -newkey ed25519 -nodes -subj /CN=unknown -days 10 -keyout "$folder/unknown.key" -out "$folder/unknown.pem"
    cat "$folder/unknown.pem" "$folder/ca.pem" >"$folder/bundle.pem" # mbedTLS 2.28 does not know keys of Ed25519
    make server 10 "$here" ca
    make stranger 10 "$here" other-ca
    make expired 0 "$here" ca
    make elsewhere 10 'subjectAltName=IP:127.0.0.2,DNS:elsewhere.example' ca
    make clients-only 10 "$here
extendedKeyUsage=clientAuth" ca
    make client 10 'subjectAltName=DNS:client.example' ca
    make other-client 10 'subjectAltName=DNS:client.example' other-ca
    sleep 2 # the certificate of 0 days, given until its first second
}

certificates >"$folder/log" 2>&1
made=yes
"$@" "$folder"
