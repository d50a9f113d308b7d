package plan

import (
	"encoding/json"
	"strings"
	"testing"

	"orangery.dev/helm/wire"
)

func TestWithoutAReleaseAllIsPlainObjects(t *testing.T) {
	w := newWorld(t)
	files := full()
	files["app/templates/kept.yaml"] = configMap("kept", `"helm.sh/resource-policy": keep`)
	proposal := w.deploy(files, map[string]any{"helmDeployment": false, "createNamespace": true, "updateStrategy": "patch"})
	sameTexts(t, names(proposal), "objects")
	told := []string{}
	for _, write := range proposal.Stages[0].Writes {
		told = append(told, strings.TrimSpace(keyOf(write.Object).String()+" "+write.How.Word+" "+string(write.Owned)))
	}
	sameTexts(t, told, "Namespace demo create kept", "CustomResourceDefinition things.example.org patch",
		"ConfigMap demo/config patch", "ConfigMap demo/second patch", "ConfigMap demo/kept patch kept", "ClusterRole role patch",
		"Deployment demo/web patch", "Thing demo/thing patch", "ConfigMap demo/early patch", "Job demo/after patch",
		"Job demo/late patch", "Job demo/removal patch")
	labels := texts(proposal.Stages[0].Writes[2].Object, "labels")
	if labels[manifestLabel] != "item" || labels[helmLabel] != "item" || len(labels) != 2 {
		t.Errorf("its labels are %v", labels)
	}
	if checks := proposal.Stages[0].Gate.Ready; len(checks) != 1 || checks[0].Scope.Keys[0].Kind != "Deployment" {
		t.Errorf("it waits for %+v", checks)
	}
}

func TestAReleaseThatIsNoneAnyMoreGoes(t *testing.T) {
	w := newWorld(t)
	plain := charted(map[string]string{"templates/a.yaml": configMap("a", "")})
	w.deploy(plain, nil)
	w.deploy(plain, map[string]any{"helmDeployment": false})
	sameTexts(t, w.left(), "ConfigMap demo/a")
	sameTexts(t, w.revisions())
}

func TestExportsComeFromObjectsAndFromValues(t *testing.T) {
	w := newWorld(t)
	files := full()
	files["app/values.yaml"] = "hosts: [{name: a.example.org}]\n"
	proposal := w.deploy(files, map[string]any{"exports": map[string]any{"exports": []any{
		map[string]any{"key": "host", "jsonPath": ".Values.hosts[0].name"},
		map[string]any{"key": "a", "jsonPath": ".data.a", "fromResource": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "config"}},
	}}})
	text, err := json.Marshal(proposal.Next.Exports)
	if err != nil {
		t.Fatal(err)
	}
	expected := `[{"key":"","source":{"value":{}}},{"key":"host","source":{"value":"a.example.org"}},` +
		`{"key":"a","source":{"path":{"key":{"apiVersion":"v1","kind":"ConfigMap","namespace":"demo","name":"config"},"path":".data.a"}}}]`
	if string(text) != expected {
		t.Errorf("it exports\n%s\nand not\n%s", text, expected)
	}
}

// TestBadInputIsToldInOneSentence has what can be wrong with a chart or a configuration, and what is said of it.
func TestBadInputIsToldInOneSentence(t *testing.T) {
	good := map[string]string{"templates/a.yaml": configMap("a", "")}
	failing := func(text string) map[string]string { return charted(map[string]string{"templates/bad.yaml": text}) }
	raw := func(text string) map[string]any {
		return map[string]any{"chart": map[string]any{"archive": map[string]any{"raw": text}}}
	}
	for name, one := range map[string]struct {
		files map[string]string
		more  map[string]any
		told  string
	}{
		"no archive": {charted(good), raw("bm8gYXJjaGl2ZQ=="),
			"the chart in chart.archive.raw cannot be used: it is no archive; pack it with helm package"},
		"no base64": {charted(good), raw("§"), "chart.archive.raw: it is not base64: illegal base64 data at input byte 0"},
		"a path that leads out": {map[string]string{"app/../../x": ""}, nil,
			"the chart in chart.archive.raw cannot be used: app/../../x leads out of the chart"},
		"a link": {map[string]string{"app/templates/x.yaml": "link:/etc/passwd"}, nil,
			"the chart in chart.archive.raw cannot be used: app/templates/x.yaml is a link; pack the chart with helm package, which puts the content there"},
		"no Chart.yaml": {map[string]string{"app/templates/x.yaml": ""}, nil,
			"the chart in chart.archive.raw cannot be read: Chart.yaml file is missing"},
		"a library": {map[string]string{"app/Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.2.3\ntype: library\n"}, nil,
			"the chart in chart.archive.raw cannot be installed: it is a library chart; only application charts are installable"},
		"a dependency that is not there": {map[string]string{"app/Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.2.3\ndependencies: [{name: sub, version: 1.0.0, repository: https://x}]\n"}, nil,
			"the chart in chart.archive.raw cannot be installed: its dependencies sub are not in charts/; pack it after helm dependency update"},
		"a template that fails": {failing("\n{{ fail \"no\" }}"), nil,
			"chart app 1.2.3: execution error at (app/templates/bad.yaml:2:3): no"},
		"a template with a mistake": {failing("{{ if }}"), nil,
			"chart app 1.2.3: parse error at (app/templates/bad.yaml:1): missing value for if"},
		"a template that shows a value": {failing(`{{ fail (print "got " .Values.password) }}`), map[string]any{"values": map[string]any{"password": "top-secret"}},
			"chart app 1.2.3: execution error at (app/templates/bad.yaml:1:3): got [...]"},
		"a document that is no YAML": {failing("a: b: c"), nil,
			"chart app 1.2.3: YAML parse error on app/templates/bad.yaml: error converting YAML to JSON: yaml: mapping values are not allowed in this context"},
		"an object without a name": {failing("apiVersion: v1\nkind: ConfigMap\n"), nil,
			"app/templates/bad.yaml: the ConfigMap has no metadata.name; add it"},
		"a kind that is not there": {failing("apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: x}\n"), nil,
			"app/templates/bad.yaml: the cluster does not know the kind Thing of example.org/v1; install its definition first, for example with an item that this one depends on"},
		"values that break the schema": {charted(map[string]string{"values.schema.json": `{"properties": {"replicas": {"type": "integer"}}}`}),
			map[string]any{"values": map[string]any{"replicas": "x"}},
			"chart app 1.2.3: values don't meet the specifications of the schema(s) in the following chart(s): app: - at '/replicas': got string, want integer"},
		"another Kubernetes": {map[string]string{"app/Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.2.3\nkubeVersion: '>=2'\n"}, nil,
			"chart app 1.2.3: it needs Kubernetes >=2, and the cluster is v1.33.4"},
		"no source": {charted(good), map[string]any{"chart": map[string]any{}},
			"chart: 0 sources are given; give exactly one of chart.ref, chart.archive, chart.helmChartRepo and chart.resourceRef"},
		"another digest": {charted(good), map[string]any{"chart": map[string]any{"digest": "sha256:" + strings.Repeat("0", 64), "ref": "x"}}, "no registry here"},
		"a name that is none": {charted(good), map[string]any{"name": "A"},
			`name: "A" is no name of a release: invalid release name, must match regex ^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$ and the length must not be longer than 53`},
		"values that are none": {charted(good), map[string]any{"values": "x"}, "values: they have to be an object, such as {replicas: 2}"},
		"a flag that is none":  {charted(good), map[string]any{"createNamespace": "x"}, "createNamespace: there is a string where the field takes another type (bool)"},
		"an export of nothing": {charted(good), map[string]any{"exports": map[string]any{"exports": []any{map[string]any{"key": "k", "jsonPath": ".Values.nothing"}}}},
			"the export k: the values of the release have nothing at .Values.nothing; without fromResource a path begins with .Values"},
	} {
		t.Run(name, func(t *testing.T) {
			if told := newWorld(t).refused(one.files, one.more); told != one.told {
				t.Errorf("it says\n%s\nand not\n%s", told, one.told)
			}
		})
	}
}

func TestADefinitionInTheFolderOfDefinitionsIsKnownToTemplates(t *testing.T) {
	files := full()
	files["app/templates/has.yaml"] = configMap(`is-{{ .Capabilities.APIVersions.Has "example.org/v1/Thing" }}`, "") +
		"---\n" + configMap(`has-{{ lookup "example.org/v1" "Thing" "demo" "" | len }}`, "")
	w := newWorld(t)
	w.deploy(files, nil)
	for _, name := range []string{"is-true", "has-0"} {
		if w.objects[wire.Key{APIVersion: "v1", Kind: "ConfigMap", Namespace: "demo", Name: name}] == nil {
			t.Errorf("there is no ConfigMap %s: %q", name, w.left())
		}
	}
}
