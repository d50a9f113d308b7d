#!/bin/sh
# Prints an Installation that carries the files of blueprint/, the component included, and the data that it imports.
set -eu
cd "$(dirname "$0")/blueprint"
cat <<'END'
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DataObject
metadata:
  name: trees
data:
- {name: orange, kilograms: 35}
- {name: lemon, kilograms: 24}
- {name: kumquat, kilograms: 1}
---
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata:
  name: harvest
  annotations:
    landscaper.gardener.cloud/operation: reconcile
spec:
  imports:
    targets:
    - name: cluster
      target: cluster
    data:
    - name: trees
      dataRef: trees
  blueprint:
    inline:
      filesystem:
END
for file in blueprint.yaml season.txt; do
  echo "        $file: |"
  sed 's/^/          /' "$file"
done
echo "        render.wasm: |"
echo "          ---Start Binary---"
base64 render.wasm | sed 's/^/          /'
echo "          ---End Binary---"
