package gotemplate_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"orangery.dev/plugins/cases"
	"orangery.dev/plugins/gotemplate"
	"orangery.dev/plugins/host"
)

// told is a path as imports.list[*].name.
func told(path host.InputPath) string {
	text := ""
	for _, step := range path {
		switch step.Kind {
		case host.Field:
			text += "." + step.Name
		case host.Items:
			text += "[]"
		case host.Entries:
			text += "[*]"
		}
	}
	return strings.TrimPrefix(text, ".")
}

// read is what the failure of a template reads. `!` in it is replaced by what fails.
func read(t *testing.T, files cases.Files, source string) []string {
	t.Helper()
	inputs := json.RawMessage(`{"imports": {"a": {"a": 1, "b": {"b": 1}, "l": [{"a": 1}], "m": {}}, "b": {"c": 1},
		"l": [{"a": {}, "m": {"x": {"a": 1}}}, {}], "text": "t"}, "values": {"a": {"b": 1}}, "cd": {"x": 1}}`)
	source = strings.ReplaceAll(source, "!", `{{ fail "here" }}`)
	for name, content := range files {
		files[name] = strings.ReplaceAll(content, "!", `{{ fail "here" }}`)
	}
	_, failure := gotemplate.Render(files, host.Request{Execution: host.Deploy, Name: "default", Template: source, Inputs: inputs})
	if failure == nil || !strings.Contains(failure.Message, "here") {
		t.Fatalf("%s does not fail as it ought to: %v", source, failure)
	}
	paths := []string{}
	for _, path := range failure.Reads {
		paths = append(paths, told(path))
	}
	return paths
}

func TestAFailureReadsWhatItsLineReads(t *testing.T) {
	for source, expected := range map[string][]string{
		// Variables.
		"{{ $x := .imports.a }}\n{{ $x.b }} {{ $x }} {{ $ }} !\n{{ .imports.b }}":                     {"imports.a.b", "imports.a"},
		"{{- $x := $.values -}}{{ $y := ($x.a) }}\n{{ $y.b | quote }}!":                               {"values.a.b"},
		"{{ $x := .imports.a }}{{ if .b }}{{ $x := .imports.b }}{{ end }}\n{{ $x }}!":                 {"imports.a"},
		"{{ if $x := .imports.a }}\n{{ $x.b }}!{{ end }}":                                             {"imports.a.b"},
		"{{ if .none }}{{ else if .imports.a }}{{ .imports.b }}!{{ end }}":                            {"none", "imports.a", "imports.b"},
		"{{ (.imports.a).b }} {{ (index .imports.l 0).a }}!":                                          {"imports.a.b", "imports.l"},
		"{{ printf \"%v %v\" .imports.a (.imports.b | quote) }} {{ .imports.a | default $.values }}!": {"imports.a", "imports.b", "values"},
		// The dot.
		"{{ .imports.a }} {{ $.imports.b }} {{ .cd.x }} {{ .imports }}!":         {"imports.a", "imports.b", "cd.x", "imports"},
		"{{ with .imports.a }}\n{{ .b }} {{ . }} {{ $.imports.c }}!\n{{ end }}":  {"imports.a.b", "imports.a", "imports.c"},
		"{{ with .imports.none }}{{ else }}\n{{ .imports.c }}!{{ end }}":         {"imports.c"},
		"{{ with .imports.none }}{{ else with .imports.b }}\n{{ .c }}!{{ end }}": {"imports.b.c"},
		"{{ with .imports.a }}{{ end }}\n{{ .imports.c }}!":                      {"imports.c"},
		"{{ with $x := .imports.a }}\n{{ .b }} {{ $x.c }}!{{ end }}":             {"imports.a.b", "imports.a.c"},
		// Templates.
		"{{ block \"n\" .imports.a }}\n{{ .b }} {{ $.c }}!{{ end }}":                                                               {"imports.a.b", "imports.a.c"},
		"{{ define \"d\" }}\n{{ .a }}{{ .imports.e }}!{{ end }}\n{{ template \"d\" (dict \"imports\" .imports) }}":                 {"imports.e"},
		"{{ define \"d\" }}{{ if .l }}\n{{ .a }}!{{ end }}{{ end }}\n{{ template \"d\" .imports }}{{ template \"d\" .imports.a }}": {"imports.a", "imports.a.a"},
		// Loops.
		"{{ range .imports.l }}\n{{ .a }}!{{ end }}":                                             {"imports.l[*].a"},
		"{{ range $x := .imports.l }}\n{{ $x.a }} {{ .b }}!{{ end }}":                            {"imports.l[*].a", "imports.l[*].b"},
		"{{ range $i, $x := .imports.l }}{{ range $x.m }}\n{{ .a }} {{ $i }}!{{ end }}{{ end }}": {"imports.l[*].m[*].a"},
		// What is computed or assigned again.
		"{{ $x := .imports.a | default .imports.b }}\n{{ $x.c }}!":                        {},
		"{{ $x := .imports.a }}\n{{ $x.c }}!\n{{ $x = .imports.b }}":                      {},
		"{{ with index .imports.l 0 }}\n{{ .a }} {{ (index $.imports.l 1).b }}!{{ end }}": {"imports.l"},
		"{{ \".imports.a\" }}{{/* it's .imports.b */}} .imports.c `{{ `.imports.d` }}!":   {},
	} {
		if actual := read(t, cases.Files{}, source); !slices.Equal(actual, expected) {
			t.Errorf("%s reads %v, not %v", source, actual, expected)
		}
	}
}

func TestAFailureInAnIncludedFileReadsWhatItIsGiven(t *testing.T) {
	const file = "{{ $all := . }}\n{{ .imports.a }}{{ $all.imports.b.c }}!"
	for include, expected := range map[string][]string{
		`{{ include "f.yaml" . }}`:                         {"imports.a", "imports.b.c"},
		`{{ include "f.yaml" $ }}`:                         {"imports.a", "imports.b.c"},
		`{{ include "f.yaml" (dict "imports" .imports) }}`: {"imports.a"},
	} {
		if actual := read(t, cases.Files{"f.yaml": file}, include); !slices.Equal(actual, expected) {
			t.Errorf("%s reads %v, not %v", include, actual, expected)
		}
	}
	if actual := read(t, cases.Files{"f.yaml": "{{ .a }}{{ $.b }}!"}, `{{ include "f.yaml" .imports }}`); len(actual) > 0 {
		t.Errorf("%v", actual)
	}
}

func TestAnErrorOfTheParserReadsNothing(t *testing.T) {
	_, failure := gotemplate.Render(cases.Files{}, host.Request{Template: "{{ .imports.a }}{{ end }}", Inputs: []byte("{}")})
	if failure == nil || failure.Reads != nil {
		t.Errorf("%v", failure)
	}
}
