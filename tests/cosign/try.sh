#!/usr/bin/env bash
# Signatures of components, held against the real cosign: what `orangery plugin sign` writes it verifies, and what it signs `orangery plugin
# verify` accepts; by a key that did not sign, and of what was not signed, both say no.
#
#   tests/cosign/try.sh ORANGERY COMPONENT     ORANGERY is the binary, COMPONENT a component that it would load
#
# The registry is docker-registry of Debian on loopback, with TLS and a password. Nothing leaves this machine. Ends with 0 where
# all of it holds, and prints each step.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
orangery=$(realpath "$1") component=$(realpath "$2")
cosign=${COSIGN:-$("$here/build.sh")/cosign}

work=$(mktemp -d)
registry=
trap '[[ -z $registry ]] || kill "$registry"; rm -rf "$work"' EXIT
cd "$work"

# A certificate authority, a certificate for localhost, the password of tests/oci.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 1 -subj /CN=ca 2>openssl.log
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout tls.key -out tls.csr -subj /CN=localhost 2>>openssl.log
openssl x509 -req -in tls.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 1 -out tls.pem \
    -extfile <(echo subjectAltName=DNS:localhost) 2>>openssl.log
echo 'puller:$2b$04$orangeryorangeryorangeTuJATEDBhE2Iqm.1IfIytXKUVuy.8TW' >htpasswd
cat >registry.yml <<END
version: 0.1
log: {accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: $work/storage}}
http: {addr: "127.0.0.1:0", tls: {certificate: $work/tls.pem, key: $work/tls.key}}
auth: {htpasswd: {realm: test, path: $work/htpasswd}}
END
docker-registry serve registry.yml >registry.log 2>&1 &
registry=$!
for _ in $(seq 100); do
    port=$(sed -n 's/.*listening on 127\.0\.0\.1:\([0-9]*\).*/\1/p' registry.log | head -1)
    [[ -z $port ]] || break
    sleep 0.1
done
[[ -n $port ]] || { cat registry.log >&2; exit 1; }
host=localhost:$port
mkdir docker
printf '{"auths": {"%s": {"auth": "%s"}}}\n' "$host" "$(printf 'puller:a password: with a colon' | base64 -w0)" >docker/config.json
export DOCKER_CONFIG=$work/docker SSL_CERT_FILE=$work/ca.pem COSIGN_PASSWORD=
# Nothing of a user is read or written.
export HOME=$work
flags=(--registry-ca ca.pem)

# Prints a step, and ends where it does not go as it has to: `holds NAME yes COMMAND…`, and `holds NAME WORDS COMMAND…` where it has to
# fail with these words, a regular expression.
holds() {
    local name=$1 expected=$2 got=no
    shift 2
    ! "$@" >step.log 2>&1 || got=yes
    echo "$name: $got"
    [[ $expected != yes || $got != yes ]] || return 0
    [[ $expected == yes || $got == yes ]] || ! grep -qE -- "$expected" step.log || return 0
    echo "expected was $expected:" >&2
    cat step.log >&2
    exit 1
}

"$cosign" version 2>/dev/null | sed -n 's/^GitVersion: */cosign /p'
for name in ours theirs; do
    openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out $name.key 2>>openssl.log
    openssl pkey -in $name.key -pubout -out $name.pub
done
# cosign 3 writes bundles unless it is told otherwise; cosign 2 knows the same flags.
sign=("$cosign" sign --yes --tlog-upload=false --new-bundle-format=false)
! "$cosign" sign --help 2>&1 | grep -q -- --use-signing-config || sign+=(--use-signing-config=false)
verify=("$cosign" verify --insecure-ignore-tlog=true)
! "$cosign" verify --help 2>&1 | grep -q -- --new-bundle-format || verify+=(--new-bundle-format=false)

first=$("$orangery" plugin push "$component" "$host/team/mine:1" "${flags[@]}")
holds "cosign verifies what nobody has signed" "no signatures found" "${verify[@]}" --key ours.pub "$first"
"$orangery" plugin sign "$first" --key ours.key "${flags[@]}" >/dev/null
holds "cosign verifies what orangery has signed" yes "${verify[@]}" --key ours.pub "$first"
holds "cosign verifies it by its tag" yes "${verify[@]}" --key ours.pub "$host/team/mine:1"
holds "cosign verifies it by another key" "invalid signature" "${verify[@]}" --key theirs.pub "$first"

"$cosign" generate-key-pair >/dev/null 2>&1
second=$("$orangery" plugin push "$component" "$host/team/other:1" --annotation a=b "${flags[@]}")
holds "orangery verifies what nobody has signed" "has no signature" "$orangery" plugin verify "$second" --key cosign.pub "${flags[@]}"
holds "cosign signs" yes "${sign[@]}" --key cosign.key "$second"
holds "orangery verifies what cosign has signed" yes "$orangery" plugin verify "$second" --key cosign.pub "${flags[@]}"
holds "orangery verifies it by another key" "none was made with the key of theirs.pub" "$orangery" plugin verify "$second" --key theirs.pub "${flags[@]}"
holds "orangery pulls it by that key" yes "$orangery" plugin pull "$second" pulled.wasm --key cosign.pub "${flags[@]}"
cmp pulled.wasm "$component"

# One signature beside the other, whoever came first.
holds "cosign signs what orangery has signed" yes "${sign[@]}" --key cosign.key "$first"
"$orangery" plugin sign "$second" --key ours.key "${flags[@]}" >/dev/null
for reference in "$first" "$second"; do
    for key in ours cosign; do
        holds "orangery verifies ${reference#"$host"/team/} by $key" yes "$orangery" plugin verify "$reference" --key $key.pub "${flags[@]}"
        holds "cosign verifies ${reference#"$host"/team/} by $key" yes "${verify[@]}" --key $key.pub "$reference"
    done
done

# As a referrer of the artifact, in the way of OCI 1.1, where this cosign has it.
if "$cosign" sign --help 2>&1 | grep -q -- --registry-referrers-mode; then
    third=$("$orangery" plugin push "$component" "$host/team/third:1" --annotation c=d "${flags[@]}")
    export COSIGN_EXPERIMENTAL=1
    holds "cosign signs as a referrer" yes "${sign[@]}" --registry-referrers-mode=oci-1-1 --key cosign.key "$third"
    holds "orangery verifies the referrer" yes "$orangery" plugin verify "$third" --key cosign.pub "${flags[@]}"
    unset COSIGN_EXPERIMENTAL
fi
echo "all of it holds"
