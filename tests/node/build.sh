#!/usr/bin/env bash
# Builds kubelet and kube-scheduler from their Go modules, for the tests on a node that runs pods.
#
#   tests/node/build.sh            builds what is not there yet, and prints the folder
#   tests/node/build.sh --folder   prints the folder only
#
# The folder is outside of the checkout: $ORANGERY_NODE, else ~/.cache/orangery-node. The other servers are those of
# tests/kube/build.sh, which is run before. Needs Go 1.26 or later, and 2 GB of memory; 5 minutes on two idle cores.
#
# What the node itself needs besides is root, and of Debian: containerd runc containernetworking-plugins busybox-static iptables
# iproute2 openssl jq kubectl; and of the kernel: overlayfs, veth, bridge, NAT and control groups.
set -euo pipefail
cd "$(dirname "$0")"

eval "$(../kube/module.sh)"
folder=${ORANGERY_NODE:-${XDG_CACHE_HOME:-$HOME/.cache}/orangery-node}/$(basename "$(../kube/build.sh --folder)")
if [[ ${1:-} == --folder || -f $folder/complete ]]; then
    echo "$folder"
    exit
fi
../kube/build.sh >&2

# Go lies outside of the path on some machines.
PATH=$PATH:/usr/local/go/bin
minor=${kubernetes#1.}
# They are built once: a cache of their parts would only take space.
GOCACHE=${PROGRAMS_CACHE:-$(mktemp -d)}
export GOCACHE
[[ -n ${PROGRAMS_CACHE:-} ]] || trap 'rm -rf "$GOCACHE"' EXIT
{
    ../kube/module.sh "$folder/module"
    cd "$folder/module"
    export CGO_ENABLED=0 GOFLAGS=-buildvcs=false
    set=k8s.io/component-base/version
    flags="-s -w -X $set.gitVersion=v$kubernetes -X $set.gitMajor=1 -X $set.gitMinor=${minor%%.*}"
    for program in kube-scheduler kubelet; do
        go build -trimpath -ldflags "$flags" -o "$folder/$program" "k8s.io/kubernetes/cmd/$program"
    done
} >&2
touch "$folder/complete"
echo "$folder"
