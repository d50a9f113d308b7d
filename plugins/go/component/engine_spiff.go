//go:build spiff

package main

import (
	"orangery.dev/plugins/host"
	"orangery.dev/plugins/spiff"

	check "wit_component/export_orangery_template_check"
	render "wit_component/export_orangery_template_template"
)

func init() {
	render.Engine = spiff.Render
	check.Look = spiff.Check
}

// rehearsal touches what most templates touch.
var rehearsal = host.Request{
	Execution: host.Deploy,
	Name:      "rehearsal",
	Template: `utilities:
  <<: (( &temporary ))
  double: (( |x|-> x * 2 ))
deployItems: (( map[imports.zones|i,zone|-> { "name" = "item-" zone, "size" = .utilities.double(i), "config" = *.config }] ))
config:
  <<: (( &temporary &template ))
  greeting: (( "hello " imports.name ))
  list: (( [ 1, 2 ] imports.zones ))
  matches: (( match("^[a-z]+", imports.name) ))
  text: (( join(",", imports.zones) ))
  kept: (( valid( state.seen ) ? state.seen :"none" ))
state:
  seen: (( &state (length(imports.zones)) ))
`,
	Inputs: []byte(`{"imports": {"name": "rehearsal", "zones": ["a", "b"]}, "cd": {"meta": {"schemaVersion": "v2"}},
		"components": {"components": []}, "blueprint": {}}`),
}
