package gotemplate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"orangery.dev/plugins/cases"
	"orangery.dev/plugins/gotemplate"
	"orangery.dev/plugins/host"
)

func component() *cases.Answers {
	issued := map[string]any{"kubeconfig": "a3ViZQ==", "expirationTimestamp": "2026-11-21T12:00:00Z"}
	arguments := `{"expirationSeconds":600,"name":"n","namespace":"ns","target":{"kind":"Target"}}`
	return &cases.Answers{Told: map[string]any{
		`resources null [{"Name":"name","Value":"x"}]`:                    []any{map[string]any{"name": "x", "version": "1"}, map[string]any{"name": "x", "version": "2"}},
		`resources {"component":{"name":"c"}} [{"Name":"a","Value":"b"}]`: []any{map[string]any{"name": "of c"}},
		`component null [{"Name":"name","Value":"c"}]`:                    map[string]any{"component": map[string]any{"name": "c"}},
		`key "cd://resources/x"`:                                          "a2V5",
		`content "resource: {name: x}"`:                                   "the content",
		`content "gone"`:                                                  errors.New("the component has no resource gone"),
		`issue-credential "serviceAccount" ` + arguments:                  issued,
		`issue-credential "shootAdmin" ` + arguments:                      issued,
	}}
}

var inputs = map[string]any{
	"imports": map[string]any{"t": map[string]any{"kind": "Target"}, "seconds": 600, "big": 12345678},
	"cd":      map[string]any{"meta": map[string]any{"schemaVersion": "v2"}, "component": map[string]any{"repositoryContexts": []any{map[string]any{"baseUrl": "r"}}}},
}

func TestFunctionsAnswerAsLandscapers(t *testing.T) {
	const refused = "failure: <%s>: error calling %s: "
	for template, expected := range map[string]string{
		`{{ (getResource "name" "x").version }}`:                                                                   "1",
		`{{ range getResources "name" "x" }}{{ .version }},{{ end }}`:                                              "1,2,",
		`{{ (getResource (getComponent "name" "c") "a" "b").name }}`:                                               "of c",
		`{{ (getComponent "name" "c").component.name }}`:                                                           "c",
		`{{ getResourceKey "cd://resources/x" }}`:                                                                  "a2V5",
		`{{ getResourceContent "resource: {name: x}" }}`:                                                           "the content",
		`{{ (getRepositoryContext .cd).baseUrl }}`:                                                                 "r",
		`{{ getServiceAccountKubeconfig "n" "ns" 600 .imports.t }}`:                                                "a3ViZQ==",
		`{{ getServiceAccountKubeconfig "n" "ns" .imports.seconds .imports.t }}`:                                   "a3ViZQ==",
		`{{ toJson (getShootAdminKubeconfigWithExpirationTimestamp "n" "ns" 600 .imports.t) }}`:                    `{"expirationTimestamp":1795262400,"expirationTimestampReadable":"2026-11-21T12:00:00Z","kubeconfig":"a3ViZQ=="}`,
		`{{ (getServiceAccountKubeconfigWithExpirationTimestamp "n" "ns" 600 .imports.t).expirationTimestamp }}`:   "1795262400",
		`{{ getShootAdminKubeconfig "n" "ns" 600 .imports.t }}`:                                                    "a3ViZQ==",
		`{{ index (parseOCIRef "host:5000/a/b:1") 0 }}`:                                                            "host:5000/a/b",
		`{{ ociRefRepo "nginx:1" }} {{ ociRefVersion "nginx:1" }}`:                                                 "nginx 1",
		`{{ toYaml .imports }}`:                                                                                    "big: 12345678\nseconds: 600\nt:\n  kind: Target",
		`{{ fromYaml "[1, 1.5, yes, 0777]" }}`:                                                                     "[1 1.5 true 511]",
		`{{ toYaml (fromYaml "{b: {c: d}, a: ~}") }}`:                                                              "a: null\nb:\n  c: d",
		`{{ .imports.big }} {{ printf "%d" (int .imports.big) }} {{ printf "%.0f" .imports.big }}`:                 "1.2345678e+07 12345678 12345678",
		`{{ getResourceContent "gone" }}`:                                                                          fmt.Sprintf(refused, `getResourceContent "gone"`, "getResourceContent") + "the component has no resource gone",
		`{{ ociRefRepo "nginx" }}`:                                                                                 fmt.Sprintf(refused, `ociRefRepo "nginx"`, "ociRefRepo") + "invalid reference",
		`{{ getRepositoryContext nil }}`:                                                                           fmt.Sprintf(refused, `getRepositoryContext nil`, "getRepositoryContext") + "Unable to get effective component descriptor as no ComponentDescriptor is defined.",
		`{{ getRepositoryContext .absent }}`:                                                                       fmt.Sprintf(refused, `getRepositoryContext .absent`, "getRepositoryContext") + "Unable to get effective component descriptor as no ComponentDescriptor is defined.",
		`{{ getOidcKubeconfig "a" }}`:                                                                              fmt.Sprintf(refused, `getOidcKubeconfig "a"`, "getOidcKubeconfig") + "templating function getOidcKubeconfig expects 3 arguments: issuer url, client id, and target",
		`{{ fromYaml "{" }}`:                                                                                       fmt.Sprintf(refused, `fromYaml "{"`, "fromYaml") + "error converting YAML to JSON: yaml: line 1: did not find expected node content",
		`{{ dateInZone "15:04 MST" (toDate "2006-01-02T15:04:05Z07:00" "2026-07-01T12:00:00Z") "Europe/Berlin" }}`: "14:00 CEST",
		`{{ derivePassword 1 "long" "password" "user" "example.com" }}`:                                            "ZedaFaxcZaso9*",
	} {
		if actual := rendered(t, component(), template, inputs); actual != expected {
			t.Errorf("%s\nis  %s\nnot %s", template, actual, expected)
		}
	}
}

// What a template imported or was given by the host may stand in its output, and in no message.
func TestAMintedCredentialIsNotInAMessage(t *testing.T) {
	actual := rendered(t, component(), `{{ fail (getShootAdminKubeconfig "n" "ns" 600 .imports.t) }}`, inputs)
	if expected := `failure: <fail (getShootAdminKubeconfig "n" "ns" 600 .imports.t)>: error calling fail: [...] (string)`; actual != expected {
		t.Errorf("%s", actual)
	}
}

func TestAFileMayBeIncludedAHundredTimesInsideOfItself(t *testing.T) {
	files := cases.Files{"down.tpl": `{{ if gt . 0 }}{{ include "down.tpl" (sub . 1) }}{{ else }}bottom{{ end }}`}
	template := `{{ include "down.tpl" 100 }}{{ include "down.tpl" 100 }}`
	if actual := rendered(t, files, template, inputs); actual != "bottombottom" {
		t.Errorf("%s", actual)
	}
	actual := rendered(t, files, `{{ include "down.tpl" 101 }}`, inputs)
	if !strings.Contains(actual, "rendering template has a nested reference name: down.tpl: unable to execute template") {
		t.Errorf("%s", actual)
	}
}

func TestPathsDoNotLeaveTheBlueprint(t *testing.T) {
	files := cases.Files{"a.txt": "a", "sub/b.txt": "b"}
	for path, expected := range map[string]string{
		"a.txt": "a", "/a.txt": "a", "./a.txt": "a", "../../a.txt": "a", "sub/../a.txt": "a", "/sub//b.txt": "b",
	} {
		if actual := rendered(t, files, fmt.Sprintf(`{{ readFile %q | toString }}`, path), inputs); actual != expected {
			t.Errorf("%s is %s", path, actual)
		}
	}
	for path, expected := range map[string]string{"/": "a.txt,sub,", "sub": "b.txt,", "..": "a.txt,sub,"} {
		if actual := rendered(t, files, fmt.Sprintf(`{{ range readDir %q }}{{ .Name }},{{ end }}`, path), inputs); actual != expected {
			t.Errorf("%s is %s", path, actual)
		}
	}
}

// An entry of a folder tells what it is; only what is asked is read.
func TestAFolderIsReadWhenItIsAsked(t *testing.T) {
	counting := &counter{Files: cases.Files{"f/a": "abc", "f/d/b": "x"}}
	if actual := rendered(t, counting, `{{ range readDir "f" }}{{ .Name }} {{ end }}`, inputs); actual != "a d " || counting.reads != 0 {
		t.Errorf("%s after %d reads", actual, counting.reads)
	}
	actual := rendered(t, counting, `{{ range readDir "f" }}{{ .Size }}{{ .IsDir }}{{ .Mode }} {{ end }}`, inputs)
	if actual != "3false-rw-r--r-- 0truedrwxr-xr-x " || counting.reads != 2 {
		t.Errorf("%s after %d reads", actual, counting.reads)
	}
}

type counter struct {
	cases.Files
	reads int
}

func (c *counter) ReadFile(path string) ([]byte, error) {
	c.reads++
	return c.Files.ReadFile(path)
}

func TestAHostReadsTextsOnly(t *testing.T) {
	files := cases.Files{"\uFFFD": "replaced"}
	answers := &cases.Answers{Files: files, Told: map[string]any{"key \"\uFFFD\"": "key", "resources null [{\"Name\":\"\uFFFD\",\"Value\":\"\uFFFD\"}]": []any{map[string]any{"a": "b"}}}}
	for template, expected := range map[string]string{
		`{{ readFile (b64dec "/w==") | toString }}`:             "replaced",
		`{{ getResourceKey (b64dec "/w==") }}`:                  "key",
		`{{ (getResource (b64dec "/w==") (b64dec "/w==")).a }}`: "b",
		"a: ä\nbc: {{ b64dec \"/w==\" }}\n":                     "failure: the output is no UTF-8 text, at 2:5 of the output; write binary content by `b64enc`, and cut texts at characters",
		`{{ fail (b64dec "/w==") }}`:                            `failure: <fail (b64dec "/w==")>: error calling fail: ` + "\uFFFD",
	} {
		if actual := rendered(t, answers, template, inputs); actual != expected {
			t.Errorf("%s\nis  %s\nnot %s", template, actual, expected)
		}
	}
}

func TestOnlySomeOfManyMissingValuesAreListed(t *testing.T) {
	template := strings.Repeat("{{ .absent }}\n", 25)
	_, failure := gotemplate.Render(cases.Files{}, host.Request{Execution: host.Export, Template: template, Inputs: []byte(`{}`)})
	if failure == nil || !strings.HasPrefix(failure.Message, `template "export execution" contains fields with "no value": `) ||
		!strings.Contains(failure.Message, "19:1, 20:1 and 5 more of the output") || strings.Count(failure.Snippet, "line ") != 3 {
		t.Errorf("%+v", failure)
	}
}

func TestInputsHaveToBeAnObject(t *testing.T) {
	for inputs, expected := range map[string]string{
		`[]`: "the inputs of the execution are no JSON object: json: cannot unmarshal array into Go value of type map[string]interface {}",
		`{`:  "the inputs of the execution are no JSON object: unexpected end of JSON input",
	} {
		_, failure := gotemplate.Render(cases.Files{}, host.Request{Execution: host.Deploy, Template: "", Inputs: []byte(inputs)})
		if failure == nil || failure.Message != expected {
			t.Errorf("%s: %v", inputs, failure)
		}
	}
	_, failure := gotemplate.Render(cases.Files{}, host.Request{Execution: host.Deploy, Inputs: []byte(`{}`), State: []byte(`{secret`)})
	if failure == nil || failure.Message != "the state of the execution is no JSON" {
		t.Errorf("%v", failure)
	}
}
