package plan

import (
	"strings"
	"testing"

	"orangery.dev/helm/release"
)

func TestACallSaysWhatItIsAt(t *testing.T) {
	w := newWorld(t)
	w.deploy(charted(map[string]string{
		"templates/_names.tpl":  `{{ define "name" }}a{{ end }}`,
		"templates/a.yaml":      configMap(`{{ include "name" . }}`, ""),
		"templates/b.yaml":      configMap("b", "") + `{{ include (print $.Template.BasePath "/part.yaml") . }}{{ tpl "{{ .Release.Name }}" . }}`,
		"templates/part.yaml":   "# a comment",
		"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
		// A template that is included with another root has nothing to say.
		"charts/sub/templates/c.yaml":     `{{ include "app/charts/sub/templates/other.yaml" "text" }}`,
		"charts/sub/templates/other.yaml": "# another comment",
	}), nil)
	sameTexts(t, w.traced,
		"reading the chart in chart.archive.raw",
		"rendering the template app/charts/sub/templates/other.yaml",
		"rendering the template app/charts/sub/templates/c.yaml",
		"rendering the template app/templates/part.yaml",
		"rendering the template app/templates/b.yaml",
		"rendering the template app/templates/a.yaml",
		"sorting the objects of the chart app")
	history, err := release.Read(w, "demo", "rel")
	if err != nil {
		t.Fatal(err)
	}
	kept, err := history.Last().Release()
	if err != nil {
		t.Fatal(err)
	}
	for _, template := range kept.Chart.Templates {
		if strings.Contains(string(template.Data), "orangery") {
			t.Errorf("the release has not kept %s as it is written: %s", template.Name, template.Data)
		}
	}
}

func TestAnErrorOfATemplateHasTheColumnOfTheTemplateAsItIsWritten(t *testing.T) {
	w := newWorld(t)
	for text, expected := range map[string]string{
		`{{ fail "no" }}`:        "execution error at (app/templates/bad.yaml:1:3): no",
		`{{ .Values.a.b.c }}`:    "app/templates/bad.yaml:1:10",
		`{{ if }}`:               "parse error at (app/templates/bad.yaml:1): missing value for if",
		`a: {{ nothing }}`:       `parse error at (app/templates/bad.yaml:1): function "nothing" not defined`,
		`{{ include "none" . }}`: "app/templates/bad.yaml:1:3",
	} {
		told := w.refused(charted(map[string]string{"templates/bad.yaml": text}), nil)
		if !strings.Contains(told, expected) || strings.Contains(told, "orangery") {
			t.Errorf("%s: %q", text, told)
		}
	}
}
