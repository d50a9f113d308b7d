#!/usr/bin/env bash
# Writes the Go module of which etcd, the servers of Kubernetes and the stock Helm CLI are built, into a folder: they are made of the
# same versions of what they share, which is compiled once for all where they share a cache.
#
#   tests/kube/module.sh FOLDER    writes it
#   tests/kube/module.sh           prints the versions, as `kubernetes=1.2.3`
#
# Needs Go 1.26 or later.
set -euo pipefail

kubernetes=1.36.3
etcd=3.6.8
helm=4.2.3

if [[ -z ${1:-} ]]; then
    printf '%s\n' "kubernetes=$kubernetes" "etcd=$etcd" "helm=$helm"
    exit
fi
minor=${kubernetes#1.}
mkdir -p "$1"
cd "$1"

# Kubernetes is no library: its go.mod replaces its own parts by folders, which a module has to replace by their versions.
published=$(cd / && GOFLAGS=-mod=mod go mod download -json "k8s.io/kubernetes@v1.$minor" | sed -n 's/.*"GoMod": "\(.*\)",/\1/p')
{
    echo 'module orangery.dev/kube'
    grep -E '^(go|godebug) ' "$published"
    echo "require k8s.io/kubernetes v1.$minor"
    echo "require go.etcd.io/etcd/server/v3 v$etcd"
    echo "require helm.sh/helm/v4 v$helm"
    echo 'replace ('
    sed -nE "s|^\s*(k8s\.io/[a-z0-9./-]+) => \./staging.*|    \1 => \1 v0.$minor|p" "$published" | sort -u
    echo ')'
} >go.mod
# All of them, whichever is built: else the versions would not be the same.
cat >programs.go <<'GO'
//go:build programs

package programs

import (
	_ "go.etcd.io/etcd/server/v3/etcdmain"
	_ "helm.sh/helm/v4/cmd/helm"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
GO
mkdir -p etcd
cat >etcd/main.go <<'GO'
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
GO
go mod tidy
