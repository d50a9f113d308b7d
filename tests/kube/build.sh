#!/usr/bin/env bash
# Builds etcd, kube-apiserver and kube-controller-manager from their Go modules, for the tests on a real API server.
#
#   tests/kube/build.sh            builds what is not there yet, and prints the folder
#   tests/kube/build.sh --folder   prints the folder only
#
# The folder is outside of the checkout: $ORANGERY_KUBE, else ~/.cache/orangery-kube; a folder in it for each pair of
# versions. Needs Go 1.26 or later, and 2 GB of memory; 7 minutes on two idle cores, nothing when it has been built. What is compiled
# for it stays in $PROGRAMS_CACHE, where that names a folder, for tests/helm/build.sh and tests/node/build.sh.
set -euo pipefail
cd "$(dirname "$0")"

eval "$(./module.sh)"
folder=${ORANGERY_KUBE:-${XDG_CACHE_HOME:-$HOME/.cache}/orangery-kube}/kubernetes-$kubernetes-etcd-$etcd
if [[ ${1:-} == --folder || -f $folder/complete ]]; then
    echo "$folder"
    exit
fi

# Go lies outside of the path on some machines.
PATH=$PATH:/usr/local/go/bin
minor=${kubernetes#1.}
# They are built once: a cache of their parts would only take space.
GOCACHE=${PROGRAMS_CACHE:-$(mktemp -d)}
export GOCACHE
[[ -n ${PROGRAMS_CACHE:-} ]] || trap 'rm -rf "$GOCACHE"' EXIT
{
    ./module.sh "$folder/module"
    cd "$folder/module"
    export CGO_ENABLED=0 GOFLAGS=-buildvcs=false
    # A server tells its version, and the garbage collector reads it.
    set=k8s.io/component-base/version
    flags="-s -w -X $set.gitVersion=v$kubernetes -X $set.gitMajor=1 -X $set.gitMinor=${minor%%.*}"
    for program in ./etcd k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager; do
        go build -trimpath -ldflags "$flags" -o "$folder/$(basename "$program")" "$program"
    done
} >&2
touch "$folder/complete"
echo "$folder"
