#!/usr/bin/env bash
# Builds the stock Helm CLI from its Go module, for the tests that drive our servers with it. Of the libraries of Kubernetes it has the
# patch version of the servers that tests/kube/build.sh builds.
#
#   tests/helm/build.sh            builds it if it is not there yet, and prints the folder
#   tests/helm/build.sh --folder   prints the folder only
#
# The folder is outside of the checkout: $ORANGERY_HELM, else ~/.cache/orangery-helm; a folder in it for each version. Needs
# Go 1.26 or later; 4 minutes on two idle cores, half a minute where $PROGRAMS_CACHE has what tests/kube/build.sh has compiled, and
# nothing when it has been built.
set -euo pipefail
cd "$(dirname "$0")"

eval "$(../kube/module.sh)"
folder=${ORANGERY_HELM:-${XDG_CACHE_HOME:-$HOME/.cache}/orangery-helm}/helm-$helm
if [[ ${1:-} == --folder || -f $folder/complete ]]; then
    echo "$folder"
    exit
fi

# Go lies outside of the path on some machines.
PATH=$PATH:/usr/local/go/bin
# A program tells its version, which the templates see as .Capabilities.HelmVersion.
set=helm.sh/helm/v4/internal/version
# It is built once: a cache of its parts would only take space.
GOCACHE=${PROGRAMS_CACHE:-$(mktemp -d)}
export GOCACHE
[[ -n ${PROGRAMS_CACHE:-} ]] || trap 'rm -rf "$GOCACHE"' EXIT
{
    ../kube/module.sh "$folder/module"
    cd "$folder/module"
    CGO_ENABLED=0 GOFLAGS=-buildvcs=false \
        go build -trimpath -ldflags "-s -w -X $set.version=v$helm" -o "$folder/helm" helm.sh/helm/v4/cmd/helm
} >&2
touch "$folder/complete"
echo "$folder"
