#!/usr/bin/env bash
# Makes an archive, which `ctr images import` takes, of the image of a release: under the name by which its chart knows it, and another.
# usage: of-release.sh FOLDER NAME:TAG ARCHIVE.tar
set -euo pipefail
folder=$1 name=$2 out=$3
values=$(tar -xOzf "$folder"/*.tgz orangery/values.yaml)
repository=$(sed -n 's/^  repository: //p' <<<"$values")
digest=$(sed -n 's/^  digest: //p' <<<"$values")
index=$(mktemp -d)
trap 'rm -rf "$index"' EXIT
jq -c --arg digest "$digest" --arg named "$repository@$digest" --arg name "docker.io/$name" '
    (.manifests[] | select(.digest == $digest)) as $image
    | .manifests = ([$named, $name] | map($image + {annotations: {"io.containerd.image.name": .}}))
' "$folder/image/index.json" >"$index/index.json"
tar -cf "$out" -C "$index" index.json -C "$folder/image" oci-layout blobs
