package render

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"sigs.k8s.io/yaml"
)

// asHelm is what Helm itself takes a text apart into.
func asHelm(text string) []string {
	parts := releaseutil.SplitManifests(text)
	names := slices.SortedFunc(maps.Keys(parts), func(a, b string) int {
		if (releaseutil.BySplitManifestsOrder{a, b}).Less(0, 1) {
			return -1
		}
		return 1
	})
	documents := []string{}
	for _, name := range names {
		documents = append(documents, parts[name])
	}
	return documents
}

func TestATextIsTakenApartAsHelmDoes(t *testing.T) {
	for _, text := range []string{
		"",
		" \n\t\n",
		"\n\n  a: b\n\n",
		"a: b\n---\nc: d\n",
		"--- a: b\n",
		"---\n---\na: b\n",
		"------\na: b\n \t\n\r\n---\f\n  c: d  \n---\n---\n---e: f\n---",
		"a: b\n\u00a0\n---\u00a0\n---\n\u2003\nc: d\n",
		"a: |\n  ---\n",
		"---\n# Source: app/templates/a.yaml\na: b\n",
		"---\n# Source: app/templates/a.yaml\na: b\n---\n# Source: app/templates/b.yaml\nc: |\n  x\n\n---\n# Source: app/c.yaml\n\n",
		// A document within what Helm has put together.
		"---\n# Source: app/templates/a.yaml\na: b\n---\nc: d\n---\n# Source: app/templates/b.yaml\ne: f\n",
		"---\n# Source: app/templates/a.yaml\na: b\n--- # with a word\nc: d\n",
		"---\n# Source: app/templates/a.yaml\na: |\n  x\n  ---\n  y\n",
	} {
		expected := asHelm(text)
		if found := separated(text); !slices.Equal(found, expected) {
			t.Errorf("%q is taken apart into %q and not into %q", text, found, expected)
		}
		trimmed := func(documents []string) []string {
			all := []string{}
			for _, document := range documents {
				all = append(all, strings.TrimSpace(document))
			}
			return all
		}
		if found := split(text); !slices.Equal(trimmed(found), trimmed(expected)) {
			t.Errorf("as a manifest, %q is taken apart into %q and not into %q", text, found, expected)
		}
	}
}

const head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: "

func TestAnyTextIsTakenApartAsHelmDoes(t *testing.T) {
	pieces := []string{"-", "---", "\n", " ", "\r", "\u00a0", "a"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var text strings.Builder
		for range random.IntN(12) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		if found, expected := separated(text.String()), asHelm(text.String()); !slices.Equal(found, expected) {
			t.Fatalf("%q is taken apart into %q and not into %q", text.String(), found, expected)
		}
	}
}

func TestFilesAreSortedAsHelmDoes(t *testing.T) {
	files := map[string]string{
		"app/templates/b.yaml":     head + "b\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: x, annotations: {a: <b>&c}}\n",
		"app/templates/b.yaml-old": head + "old\n",
		"app/templates/a.yaml":     head + "a\n---\n# Nothing but this.\n---\n" + head + "a2\n",
		"app/templates/hook.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: h\n  annotations:\n" +
			"    helm.sh/hook: pre-install, post-upgrade\n    helm.sh/hook-weight: \"-5\"\n    helm.sh/hook-delete-policy: hook-failed\n" +
			"spec: {a: 1}\n---\n" + head + "h2\n  annotations: {helm.sh/hook: test, helm.sh/hook-weight: 3}\n",
		"app/templates/unknown.yaml":  head + "unknown\n  annotations: {helm.sh/hook: whenever}\n",
		"app/templates/numbers.yaml":  "apiVersion: v1\nkind: Secret\nmetadata: {name: 12, annotations: null}\n",
		"app/templates/_partial.yaml": "[",
		"app/templates/empty.yaml":    " \n",
		"app/templates/bare.yaml":     "kind: List\n",
	}
	hooks, manifests, err := texts{}.sorted(files)
	theirHooks, theirManifests, theirErr := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil || theirErr != nil {
		t.Fatal(err, theirErr)
	}
	if !reflect.DeepEqual(hooks, theirHooks) {
		t.Errorf("hooks are %v and not %v", hooks, theirHooks)
	}
	if !reflect.DeepEqual(manifests, theirManifests) {
		t.Errorf("manifests are %v and not %v", manifests, theirManifests)
	}
}

func TestWhatCannotBeSortedIsNamedByHelm(t *testing.T) {
	for _, text := range []string{
		head + "a\n  annotations: [b]\n", head + "a\n  annotations: {b: {c: d}}\n", "- a\n", "a text\n", "a: [\n",
		head + "a\n---\nmetadata: text\n", "kind: [a]\nmetadata: {name: a}\n",
	} {
		files := map[string]string{"app/templates/a.yaml": text}
		_, _, err := texts{}.sorted(files)
		_, _, theirs := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
		if err == nil || theirs == nil || err.Error() != theirs.Error() {
			t.Errorf("of %q is said: %v, and by Helm: %v", text, err, theirs)
		}
	}
}

// What was read before is found again, and nothing else is taken for it.
func TestADocumentIsReadOnce(t *testing.T) {
	known := texts{}
	for text, others := range map[string][]string{
		"a: |\n  b\n":      {"# Source: app/a.yaml\na: |\n  b\n", "a: |\n  b\n\n", "# Source: app/b.yaml\na: |\n  b\n\n\n"},
		"a: |\n  b":        nil,
		"a: |+\n  b\n":     nil,
		"a: |+\n  b\n\n":   {"# Source: app/a.yaml\na: |+\n  b\n\n"},
		"a: |+\n  b\n\n\n": nil,
	} {
		before := len(known)
		for _, same := range append([]string{text}, others...) {
			var expected map[string]any
			if err := yaml.Unmarshal([]byte(same), &expected); err != nil {
				t.Fatal(err)
			}
			if content, err := known.read(same); err != nil || !reflect.DeepEqual(content, expected) {
				t.Errorf("%q is read as %v (%v) and not as %v", same, content, err, expected)
			}
		}
		if len(known) != before+1 {
			t.Errorf("%q and what is the same were read %d times", text, len(known)-before)
		}
	}
}
