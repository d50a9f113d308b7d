#!/usr/bin/env bash
# The alerts of the chart, evaluated by the real promtool: each fires in one case of alerts.test.yaml, and is silent in another (C-393).
#
#   tests/alerts/try.sh      builds promtool where it is not there yet, and ends with 0 where all of it holds
set -euo pipefail
cd "$(dirname "$0")"
promtool=${PROMTOOL:-$(./build.sh)/promtool}
"$promtool" check rules ../../charts/orangery/files/alerts.yaml
"$promtool" test rules alerts.test.yaml
