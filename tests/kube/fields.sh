#!/usr/bin/env bash
# Writes the fields of the built-in kinds, as the embedded server knows them, from the Go types of Kubernetes.
#
#   tests/kube/fields.sh            prints them: the lines of host/embedded/src/builtin/fields.txt below its head
#
# Needs Go and the module of `build.sh`, which it builds when it is not there.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
PATH=$PATH:/usr/local/go/bin
folder=$("$here/build.sh")
mkdir -p "$folder/fields"
cp "$folder/module/go.mod" "$folder/module/go.sum" "$folder/fields/"
cp "$here/fields/main.go" "$folder/fields/"
cd "$folder/fields"
GOFLAGS=-mod=mod go mod tidy >&2
GOFLAGS=-mod=mod go run .
