#!/usr/bin/env bash
# Builds cosign from its Go module, for tests/cosign/try.sh.
#
#   tests/cosign/build.sh            builds it if it is not there yet, and prints the folder
#   tests/cosign/build.sh --folder   prints the folder only
#
# The folder is outside of the checkout: $ORANGERY_COSIGN, else ~/.cache/orangery-cosign; a folder in it for each version, which
# $COSIGN_VERSION names. Needs Go 1.26 or later. It has some hundred modules, so it is no part of `.ci/run`.
set -euo pipefail
version=${COSIGN_VERSION:-2.6.5}
folder=${ORANGERY_COSIGN:-${XDG_CACHE_HOME:-$HOME/.cache}/orangery-cosign}/cosign-$version
if [[ ${1:-} == --folder || -f $folder/complete ]]; then
    echo "$folder"
    exit
fi

# Go lies outside of the path on some machines.
PATH=$PATH:/usr/local/go/bin
module=github.com/sigstore/cosign/v${version%%.*}
{
    mkdir -p "$folder/module"
    cd "$folder/module"
    # Of the module's own file, as it is: nothing is chosen anew.
    printf 'module cosign.local\n\ngo 1.26\n' >go.mod
    GOFLAGS=-mod=mod go get "$module/cmd/cosign@v$version"
    CGO_ENABLED=0 GOFLAGS='-mod=mod -buildvcs=false' \
        go build -trimpath -ldflags "-s -w -X sigs.k8s.io/release-utils/version.gitVersion=v$version" \
        -o "$folder/cosign" "$module/cmd/cosign"
} >&2
touch "$folder/complete"
echo "$folder"
