package spiff_test

import (
	"slices"
	"strings"
	"testing"

	"orangery.dev/plugins/cases"
	"orangery.dev/plugins/host"
	"orangery.dev/plugins/spiff"
)

func TestAFailureReadsWhatTheExpressionsOfItsLineRead(t *testing.T) {
	for template, expected := range map[string][]string{
		"b: (( imports.other ))\na: (( error(\"here\", imports.a.b, values.x) ))\n": {"imports.a.b", "values.x"},
		"a: (( error(\"here\", imports.list.[0].x) ))\n":                            {"imports.list"},
		"a: (( error(\"here\", map[imports.list|imports|->imports.x]) ))\n":         {},
		"imports: {a: 1}\na: (( error(\"here\", imports.a) ))\n":                    {},
		"x: {imports: {a: 1}}\na: (( error(\"here\", imports.a) ))\n":               {"imports.a"},
		"a: {b: ['(( error(\"here\", imports.a) ))'], c: '(( \"imports.b\" ))'}\n":  {"imports.a"},
		"a: (( error(\"here\", (imports.a).b, sort(imports.list).imports) ))\n":     {"imports.a", "imports.list"},
	} {
		_, failure := spiff.Render(cases.Files{}, host.Request{
			Execution: host.Deploy, Name: "default", File: "template.yaml", Template: template,
			Inputs: []byte(`{"imports": {"a": {"b": 1}, "list": [{"x": 1}], "other": 1}, "values": {"x": 1}}`),
		})
		if failure == nil {
			t.Fatalf("%s does not fail", template)
		}
		paths := []string{}
		for _, path := range failure.Reads {
			names := []string{}
			for _, step := range path {
				names = append(names, step.Name)
			}
			paths = append(paths, strings.Join(names, "."))
		}
		if !slices.Equal(paths, expected) {
			t.Errorf("%s (%s) reads %v, not %v", template, failure.Message, paths, expected)
		}
	}
}
