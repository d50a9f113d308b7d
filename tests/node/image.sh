#!/usr/bin/env bash
# Packs a folder into an image of one layer, as an archive that `ctr images import` takes. Needs tar, gzip, jq, sha256sum.
# usage: image.sh NAME:TAG FOLDER ARCHIVE.tar [CONFIG, JSON: {"Entrypoint": ["/x"], "User": "65532", "Env": ["A=b"]}]
set -euo pipefail
name=$1; folder=$2; out=$3; config=${4:-"{}"}; t=$(mktemp -d); trap 'rm -rf "$t"' EXIT
tar -C "$folder" --sort=name --numeric-owner --owner=0 --group=0 --mtime=@0 -cf "$t/layer.tar" .
id=sha256:$(sha256sum < "$t/layer.tar" | cut -d' ' -f1)
jq -cn --argjson c "$config" --arg id "$id" '{architecture: "amd64", os: "linux", config: $c, rootfs: {type: "layers", diff_ids: [$id]}}' > "$t/config.json"
jq -cn --arg n "$name" '[{Config: "config.json", RepoTags: [$n], Layers: ["layer.tar"]}]' > "$t/manifest.json"
tar -C "$t" -cf "$out" manifest.json config.json layer.tar
