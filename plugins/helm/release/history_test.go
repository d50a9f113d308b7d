package release

import (
	"strings"
	"testing"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"

	"orangery.dev/helm/wire"
)

// stored is a host whose cluster holds these Secrets.
type stored struct {
	wire.Host
	secrets []map[string]any
}

func (s stored) List(wire.Selection) ([]map[string]any, error) { return s.secrets, nil }

func secret(t *testing.T, created time.Time) map[string]any {
	t.Helper()
	of := &helm.Release{Name: "web", Namespace: "demo", Version: 1, Info: &helm.Info{Status: common.StatusDeployed}}
	written, err := Secret(of, "", created, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return written
}

func TestARevisionTellsWhenItBeganAlsoWhereHelmHasDroppedItsLabel(t *testing.T) {
	began := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	labelled := secret(t, began)
	if found := texts(labelled, "labels")["createdAt"]; found != "1795420800" {
		t.Errorf("the label is %q", found)
	}
	updated := secret(t, time.Time{})
	if found, exists := texts(updated, "labels")["createdAt"]; exists {
		t.Errorf("a time that nobody knows is written as %q", found)
	}
	updated["metadata"].(map[string]any)["creationTimestamp"] = "2026-11-23T08:00:00Z"
	silent := secret(t, time.Time{})
	for expected, of := range map[time.Time]map[string]any{began: labelled, {}: silent} {
		if found := created(of); !found.Equal(expected) {
			t.Errorf("it was created %s, and it says %s", expected, found)
		}
	}
	history, err := Read(stored{secrets: []map[string]any{updated}}, "demo", "web")
	if err != nil || len(history) != 1 || !history[0].Created.Equal(began) {
		t.Errorf("the history is %+v, %v", history, err)
	}
}

func TestARevisionIsReadBackHoweverItWasPacked(t *testing.T) {
	for _, size := range []int{0, small, 4 * small} {
		of := &helm.Release{Name: "web", Chart: &chart.Chart{}, Manifest: strings.Repeat("a: b\n", size/5), Info: &helm.Info{}}
		written, err := Secret(of, "", time.Time{}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		read, err := unpack(written)
		if err != nil || read.Manifest != of.Manifest {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
