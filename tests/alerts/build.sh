#!/usr/bin/env bash
# Builds promtool from the Go module of Prometheus, for tests/alerts/try.sh.
#
#   tests/alerts/build.sh            builds it if it is not there yet, and prints the folder
#   tests/alerts/build.sh --folder   prints the folder only
#
# The folder is outside of the checkout: $ORANGERY_PROMTOOL, else ~/.cache/orangery-promtool; a folder in it for each version, which
# $PROMTOOL_VERSION names. Needs Go 1.26 or later; 6 minutes on two idle cores, so it is no part of `.ci/run` by day.
set -euo pipefail
version=${PROMTOOL_VERSION:-0.316.0}
folder=${ORANGERY_PROMTOOL:-${XDG_CACHE_HOME:-$HOME/.cache}/orangery-promtool}/promtool-$version
if [[ ${1:-} == --folder || -f $folder/complete ]]; then
    echo "$folder"
    exit
fi

# Go lies outside of the path on some machines.
PATH=$PATH:/usr/local/go/bin
package=github.com/prometheus/prometheus/cmd/promtool
{
    mkdir -p "$folder/module"
    cd "$folder/module"
    # Of the module's own file, as it is: nothing is chosen anew.
    printf 'module promtool.local\n\ngo 1.26\n' >go.mod
    GOFLAGS=-mod=mod go get "$package@v$version"
    CGO_ENABLED=0 GOFLAGS='-mod=mod -buildvcs=false' go build -trimpath -ldflags '-s -w' -o "$folder/promtool" "$package"
} >&2
touch "$folder/complete"
echo "$folder"
