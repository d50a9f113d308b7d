package render

import (
	"slices"
	"sort"
	"strings"
	"testing"

	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
)

// asHelm is what Helm itself takes a text apart into.
func asHelm(text string) []string {
	parts := releaseutil.SplitManifests(text)
	names := []string{}
	for name := range parts {
		names = append(names, name)
	}
	sort.Sort(releaseutil.BySplitManifestsOrder(names))
	documents := []string{}
	for _, name := range names {
		documents = append(documents, strings.TrimSpace(parts[name]))
	}
	return documents
}

func TestATextIsTakenApartAsHelmDoes(t *testing.T) {
	for _, text := range []string{
		"",
		"a: b\n---\nc: d\n",
		"---\n# Source: app/templates/a.yaml\na: b\n",
		"---\n# Source: app/templates/a.yaml\na: b\n---\n# Source: app/templates/b.yaml\nc: |\n  x\n\n---\n# Source: app/c.yaml\n\n",
		// A document within what Helm has put together.
		"---\n# Source: app/templates/a.yaml\na: b\n---\nc: d\n---\n# Source: app/templates/b.yaml\ne: f\n",
		"---\n# Source: app/templates/a.yaml\na: b\n--- # with a word\nc: d\n",
		"---\n# Source: app/templates/a.yaml\na: |\n  x\n  ---\n  y\n",
	} {
		found := []string{}
		for _, document := range split(text) {
			found = append(found, strings.TrimSpace(document))
		}
		if !slices.Equal(found, asHelm(text)) {
			t.Errorf("%q is taken apart into %q and not into %q", text, found, asHelm(text))
		}
	}
}
