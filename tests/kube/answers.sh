#!/usr/bin/env bash
# Writes what a kube-apiserver answers to every way of writing an object of each built-in kind into
# tests/cluster/cases/answers/kinds.jsonl. The objects and where they are created stay: a new line needs these two alone.
#
# Needs the servers of `build.sh`, which it builds when they are not there.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
"$here/build.sh" >/dev/null
cd "$here/../.."
UPDATE=1 cargo test --workspace --test kube -- --exact \
    cases::answers::objects_of_all_built_in_kinds_are_answered_as_by_a_real_server_whichever_way_they_are_written
