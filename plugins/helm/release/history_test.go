package release

import (
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	state "helm.sh/helm/v4/pkg/release/common"
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
	of := &helm.Release{Name: "web", Namespace: "demo", Version: 1, Info: &helm.Info{Status: state.StatusDeployed}}
	written, err := new(Secrets).Secret(of, "", created, time.Time{})
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
	// The last one only fits as Helm packs.
	random := make([]byte, 3<<18)
	rand.NewChaCha8([32]byte{}).Read(random)
	for _, text := range []string{"", strings.Repeat("a: b\n", small/5), strings.Repeat("a: b\n", small), hex.EncodeToString(random)[:3<<18]} {
		of := &helm.Release{
			Name: "web", Namespace: "demo", Version: 3, Labels: map[string]string{"mine": "yes"},
			Chart: &chart.Chart{
				Metadata: &chart.Metadata{Name: "app", Version: "1.2.3"}, Values: map[string]any{"a": "b"},
				Files: []*common.File{{Name: "text", Data: []byte(text)}},
			},
			Config: map[string]any{"c": "d"}, Manifest: "e: f\n", Info: &helm.Info{Status: state.StatusPendingInstall},
			Hooks: []*helm.Hook{{Name: "migrate", Manifest: "g: h"}},
		}
		// As an install does: the chart is compressed for the first one.
		var secrets Secrets
		for _, status := range []state.Status{state.StatusPendingInstall, state.StatusDeployed} {
			of.Info.Status = status
			written, err := secrets.Secret(of, "", time.Time{}, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			read, err := unpack(written)
			if err != nil {
				t.Fatalf("%d bytes: %v", len(text), err)
			}
			expected, _ := json.Marshal(of)
			found, _ := json.Marshal(read)
			if string(found) != string(expected) || read.Labels["mine"] != "yes" {
				t.Errorf("%d bytes, %s: it is not what was written", len(text), status)
			}
		}
	}
}
