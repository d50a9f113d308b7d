package plan

import (
	"fmt"
	"strings"
	"testing"

	"orangery.dev/helm/wire"
)

// told is a test as `Job a of app/templates/a.yaml: before`.
func told(of wire.Test) string {
	deletions := []string{}
	for _, one := range []struct {
		name string
		is   bool
	}{{"before", of.DeleteBefore}, {"success", of.DeleteAfterSuccess}, {"failure", of.DeleteAfterFailure}} {
		if one.is {
			deletions = append(deletions, one.name)
		}
	}
	return fmt.Sprintf("%s of %s: %s", keyOf(of.Object), of.Source, strings.Join(deletions, ", "))
}

func TestTheTestsOfAReleaseAreInTheOrderOfWeightAndName(t *testing.T) {
	w := newWorld(t)
	if tests, known, err := Tests(w, "demo", "rel"); tests != nil || known || err != nil {
		t.Errorf("%v %v %v", tests, known, err)
	}
	w.deploy(charted(map[string]string{"templates/a.yaml": configMap("a", "")}), nil)
	if tests, known, err := Tests(w, "demo", "rel"); tests != nil || !known || err != nil {
		t.Errorf("%v %v %v", tests, known, err)
	}
	w.deploy(charted(map[string]string{
		"templates/b.yaml": hook("Job", "b", "test", ""),
		"templates/c.yaml": hook("Job", "c", "test-success", `, "helm.sh/hook-weight": "-5", "helm.sh/hook-delete-policy": "hook-succeeded,hook-failed"`),
		"templates/d.yaml": hook("ConfigMap", "a", "test, pre-install", `, "helm.sh/hook-delete-policy": "hook-failed"`),
		"templates/e.yaml": hook("Job", "e", "pre-install", ""),
	}), nil)
	tests, known, err := Tests(w, "demo", "rel")
	if !known || err != nil {
		t.Fatalf("%v %v", known, err)
	}
	found := []string{}
	for _, test := range tests {
		found = append(found, told(test))
	}
	sameTexts(t, found,
		"Job demo/c of app/templates/c.yaml: success, failure", "ConfigMap demo/a of app/templates/d.yaml: failure",
		"Job demo/b of app/templates/b.yaml: before")
}

func TestARevisionThatCannotBeReadIsTold(t *testing.T) {
	w := newWorld(t)
	w.deploy(charted(map[string]string{"templates/a.yaml": configMap("a", "")}), nil)
	for key, object := range w.objects {
		if key.Kind == "Secret" {
			object["data"] = map[string]any{"release": "%"}
		}
	}
	_, _, err := Tests(w, "demo", "rel")
	if err == nil || !strings.HasPrefix(err.Error(), "Secret demo/sh.helm.release.v1.rel.v1 holds revision 1 of the release, and it cannot be read: ") {
		t.Errorf("%v", err)
	}
}
