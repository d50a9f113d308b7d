package render

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/Masterminds/sprig/v3"
	"helm.sh/helm/v4/pkg/chart/common"
)

// named is a map of bytes by their names, as the files of a chart are.
type named map[string][]byte

// speaking says what it is by itself.
type speaking map[string][]byte

func (speaking) String() string { return "spoken" }

func TestADictIsSprigs(t *testing.T) {
	theirs := sprig.TxtFuncMap()["dict"].(func(...any) map[string]any)
	shared := &struct{ A int }{1}
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, keys := range [][]any{
		{},
		{"a", 1, "b"},
		{"a", 1, "a", 2},
		{nil, 1},
		{1, 2, 1.5, 2, true, 3, uint8(7), 4},
		{[]byte("text"), 1, []byte{}, 2},
		{errors.New("why"), 1, time.Second, 2},
		{named{"b": {1, 20, 255}, "a": nil, "": {0}}, 1},
		{named{"all": all}, 1},
		{speaking{"a": {1}}, 1},
		{map[string]any(nil), 1, []any(nil), 2, map[any]any{1: []byte{2}}, 3},
		{[]any{1, "two words", nil, []any{[]byte{3}, []string{"x", "y"}}, map[string]any{"z": nil, "a": speaking{}}}, 1},
		{shared, 1, []any{shared, *shared, errors.New("why"), time.Second}, 2},
		{common.Values{"Files": named{"crds/a.yaml": bytes.Repeat([]byte("kind: A\n"), 100)}, "Chart": *shared,
			"Values": map[string]any{"list": []any{int64(1), 2.5, "x"}, "none": nil}, "Capabilities": shared}, "context"},
		{common.Values{"Release": map[string]any{"Name": "rel", "IsInstall": true}}},
	} {
		if ours, sprigs := dict(keys...), theirs(keys...); !reflect.DeepEqual(ours, sprigs) {
			t.Errorf("a dict of %v is\n%q and not\n%q", keys, ours, sprigs)
		}
	}
}

// Printed byte by byte, each with an allocation, this takes a second.
func TestAllFilesOfAChartAsAKeyTakeNoTime(t *testing.T) {
	values := common.Values{"Files": named{"crds/all.yaml": bytes.Repeat([]byte("kind: A\n"), 100_000)}}
	if allocations := testing.AllocsPerRun(1, func() { dict(values, "") }); allocations > 100 {
		t.Errorf("%v allocations", allocations)
	}
}
