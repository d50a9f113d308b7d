#!/usr/bin/env bash
# Builds etcd, kube-apiserver and kube-controller-manager from their Go modules, for the tests on a real API server.
#
#   tests/kube/build.sh            builds what is not there yet, and prints the folder
#   tests/kube/build.sh --folder   prints the folder only
#
# The folder is outside of the checkout: $ORANGERY_KUBE, else ~/.cache/orangery-kube; a folder in it for each pair of
# versions. Needs Go 1.26 or later, and 2 GB of memory; 7 minutes on two idle cores, nothing when it has been built.
set -euo pipefail

kubernetes=1.36.3
etcd=3.6.8

folder=${ORANGERY_KUBE:-${XDG_CACHE_HOME:-$HOME/.cache}/orangery-kube}/kubernetes-$kubernetes-etcd-$etcd
if [[ ${1:-} == --folder || -f $folder/complete ]]; then
    echo "$folder"
    exit
fi

# Go lies outside of the path on some machines.
PATH=$PATH:/usr/local/go/bin
minor=${kubernetes#1.}
mkdir -p "$folder/module/etcd"
cd "$folder/module"

# Kubernetes is no library: its go.mod replaces its own parts by folders, which a module has to replace by their versions.
published=$(cd / && GOFLAGS=-mod=mod go mod download -json "k8s.io/kubernetes@v1.$minor" | sed -n 's/.*"GoMod": "\(.*\)",/\1/p')
{
    echo 'module orangery.dev/kube'
    grep -E '^(go|godebug) ' "$published"
    echo "require k8s.io/kubernetes v1.$minor"
    echo "require go.etcd.io/etcd/server/v3 v$etcd"
    echo 'replace ('
    sed -nE "s|^\s*(k8s\.io/[a-z0-9./-]+) => \./staging.*|    \1 => \1 v0.$minor|p" "$published" | sort -u
    echo ')'
} >go.mod
cat >programs.go <<'GO'
//go:build programs

package programs

import (
	_ "go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
)
GO
cat >etcd/main.go <<'GO'
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
GO

# They are built once: a cache of their parts would only take space.
GOCACHE=$(mktemp -d)
export GOCACHE
trap 'rm -rf "$GOCACHE"' EXIT
{
    go mod tidy
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
