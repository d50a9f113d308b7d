package spiff_test

import (
	"encoding/json"
	"testing"

	"orangery.dev/plugins/cases"
	"orangery.dev/plugins/host"
	"orangery.dev/plugins/spiff"
)

func TestEveryCaseAnswersAsRecorded(t *testing.T) {
	cases.Check(t, "cases", spiff.Render)
}

func TestEveryCheckAnswersAsRecorded(t *testing.T) {
	cases.CheckFindings(t, "checks", spiff.Check)
}

// rendered is the output of a deploy execution as JSON; a failure is told by its message.
func rendered(t *testing.T, h host.Host, template string, inputs any) string {
	t.Helper()
	encoded, err := json.Marshal(inputs)
	if err != nil {
		t.Fatal(err)
	}
	answer, failure := spiff.Render(h, host.Request{Execution: host.Deploy, Name: "default", Template: template, Inputs: encoded})
	if failure != nil {
		return "failure: " + failure.Message
	}
	return string(answer.Output.Document)
}
