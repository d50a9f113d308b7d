package diagnosis_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"orangery.dev/plugins/diagnosis"
	"orangery.dev/plugins/host"
)

func TestReadsAreEachPathOnceAndNoMoreThanTheContractTakes(t *testing.T) {
	each := host.InputStep{Kind: host.Items}
	reads := diagnosis.Reads{}
	longest := strings.Repeat("x", 256-3-len("imports"))
	for _, path := range []host.InputPath{
		nil, host.Fields("imports", "a"), host.Fields("imports", longest+"x").Then(each), host.Fields("imports", "a"),
		host.Fields("imports", longest).Then(each), host.Fields("imports", "a").Then(host.InputStep{Kind: host.Entries}),
	} {
		reads.Add(path)
	}
	written, err := json.Marshal(reads.Paths())
	expected := `[[{"field":"imports"},{"field":"a"}],[{"field":"imports"},{"field":"` + longest +
		`"},"items"],[{"field":"imports"},{"field":"a"},"entries"]]`
	if err != nil || string(written) != expected {
		t.Errorf("%v: %s", err, written)
	}
	for number := range 100 {
		reads.Add(host.Fields(fmt.Sprint(number)))
	}
	if len(reads.Paths()) != 16 {
		t.Errorf("%d", len(reads.Paths()))
	}
}

func TestALongerPathLeavesTheShorterOneAsItIs(t *testing.T) {
	path := make(host.InputPath, 1, 8)
	one, other := path.Then(host.InputStep{Name: "a"}), path.Then(host.InputStep{Name: "b"})
	if one[1].Name != "a" || other[1].Name != "b" {
		t.Errorf("%v %v", one, other)
	}
}
