package gotemplate_test

import (
	"encoding/json"
	"testing"
	"time"

	"orangery.dev/plugins/cases"
	"orangery.dev/plugins/gotemplate"
	"orangery.dev/plugins/host"
)

// The sandbox has no time zone of its own.
func TestMain(m *testing.M) {
	time.Local = time.UTC
	m.Run()
}

func TestEveryCaseAnswersAsRecorded(t *testing.T) {
	cases.Check(t, "cases", gotemplate.Render)
}

func TestEveryCheckAnswersAsRecorded(t *testing.T) {
	cases.CheckFindings(t, "checks", gotemplate.Check)
}

// rendered is the output of a deploy execution; a failure is told by its message.
func rendered(t *testing.T, h host.Host, template string, inputs any) string {
	t.Helper()
	encoded, err := json.Marshal(inputs)
	if err != nil {
		t.Fatal(err)
	}
	answer, failure := gotemplate.Render(h, host.Request{Execution: host.Deploy, Name: "default", Template: template, Inputs: encoded})
	if failure != nil {
		return "failure: " + failure.Message
	}
	return answer.Output.Text
}
