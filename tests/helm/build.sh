#!/usr/bin/env bash
# Builds the stock Helm CLI from its Go module, for the tests that drive our servers with it.
#
#   tests/helm/build.sh            builds it if it is not there yet, and prints the folder
#   tests/helm/build.sh --folder   prints the folder only
#
# The folder is outside of the checkout: $ORANGERY_HELM, else ~/.cache/orangery-helm; a folder in it for each version. Needs
# Go 1.26 or later; 4 minutes on two idle cores, nothing when it has been built.
set -euo pipefail

helm=4.2.3

folder=${ORANGERY_HELM:-${XDG_CACHE_HOME:-$HOME/.cache}/orangery-helm}/helm-$helm
if [[ ${1:-} == --folder || -f $folder/complete ]]; then
    echo "$folder"
    exit
fi

# Go lies outside of the path on some machines.
PATH=$PATH:/usr/local/go/bin
mkdir -p "$folder"
# Outside of the checkout, so that no go.mod has a say.
cd "$folder"
# A program tells its version, which the templates see as .Capabilities.HelmVersion.
set=helm.sh/helm/v4/internal/version
# It is built once: a cache of its parts would only take space.
GOCACHE=$(mktemp -d)
export GOCACHE
trap 'rm -rf "$GOCACHE"' EXIT
CGO_ENABLED=0 GOBIN=$folder GOFLAGS=-buildvcs=false \
    go install -trimpath -ldflags "-s -w -X $set.version=v$helm" "helm.sh/helm/v4/cmd/helm@v$helm" >&2
touch "$folder/complete"
echo "$folder"
