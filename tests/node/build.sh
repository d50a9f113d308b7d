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

kube=$(../kube/build.sh --folder)
folder=${ORANGERY_NODE:-${XDG_CACHE_HOME:-$HOME/.cache}/orangery-node}/$(basename "$kube")
if [[ ${1:-} == --folder || -f $folder/complete ]]; then
    echo "$folder"
    exit
fi
../kube/build.sh >&2

# Go lies outside of the path on some machines.
PATH=$PATH:/usr/local/go/bin
version=$(basename "$kube" | sed -E 's/^kubernetes-([0-9.]+)-etcd-.*/\1/')
minor=${version#1.}
mkdir -p "$folder/module"
cp "$kube/module/go.mod" "$kube/module/go.sum" "$folder/module"
cd "$folder/module"
cat >programs.go <<'GO'
//go:build programs

package programs

import (
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
GO

# They are built once: a cache of their parts would only take space.
GOCACHE=$(mktemp -d)
export GOCACHE
trap 'rm -rf "$GOCACHE"' EXIT
{
    go mod tidy
    export CGO_ENABLED=0 GOFLAGS=-buildvcs=false
    set=k8s.io/component-base/version
    flags="-s -w -X $set.gitVersion=v$version -X $set.gitMajor=1 -X $set.gitMinor=${minor%%.*}"
    for program in kube-scheduler kubelet; do
        go build -trimpath -ldflags "$flags" -o "$folder/$program" "k8s.io/kubernetes/cmd/$program"
    done
} >&2
touch "$folder/complete"
echo "$folder"
