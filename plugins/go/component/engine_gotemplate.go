//go:build gotemplate

package main

import (
	"orangery.dev/plugins/gotemplate"
	"orangery.dev/plugins/host"

	check "wit_component/export_orangery_template_check"
	render "wit_component/export_orangery_template_template"
)

func init() {
	render.Engine = gotemplate.Render
	check.Look = gotemplate.Check
}

// rehearsal touches what most templates touch.
var rehearsal = host.Request{
	Execution: host.Deploy,
	Name:      "rehearsal",
	Template: `{{- $config := dict "greeting" (.imports.name | default "world" | quote) -}}
deployItems:
{{- range $i, $zone := .imports.zones }}
- name: {{ printf "item-%d" $i | trunc 20 }}
  type: landscaper.gardener.cloud/kubernetes-manifest
  target: {import: {{ $.imports.target.metadata.name }}}
  config:
{{ toYaml (merge (dict "zone" $zone) $config) | indent 4 }}
    sum: {{ (toJson $config | fromJson).greeting | sha256sum | b64enc }}
    matches: {{ regexMatch "^[a-z]+-[0-9]$" $zone }}
    version: {{ if semverCompare ">=1.2.0" "1.4.0" }}{{ add 1 $i | toString | upper }}{{ end }}
{{- end }}
state: {{ dict "seen" (len .imports.zones) | toJson }}
`,
	Inputs: []byte(`{"imports": {"name": "rehearsal", "zones": ["a-1", "a-2"], "target": {"metadata": {"name": "cluster"}}},
		"cd": {"meta": {"schemaVersion": "v2"}}, "components": {"components": []}, "blueprint": {}}`),
}
