package diagnosis_test

import (
	"encoding/json"
	"strings"
	"testing"

	"orangery.dev/plugins/cases"
	"orangery.dev/plugins/diagnosis"
	"orangery.dev/plugins/host"
)

func masked(t *testing.T, execution host.Execution, template, inputs, text string) string {
	t.Helper()
	decoded := map[string]any{}
	if err := json.Unmarshal([]byte(inputs), &decoded); err != nil {
		t.Fatal(err)
	}
	return diagnosis.NewMask(host.Request{Execution: execution, Template: template}, decoded).Of(text)
}

func TestValuesOfInputsAreHidden(t *testing.T) {
	for name, one := range map[string]struct{ inputs, text, expected string }{
		"texts":          {`{"imports": {"a": {"b": ["hunter22"]}}}`, "bad password hunter22!", "bad password [...] (string)!"},
		"the longest":    {`{"imports": {"a": "secret", "b": "secret-secret"}}`, "secret-secret secret", "[...] (string) [...] (string)"},
		"keys are shown": {`{"imports": {"password": "x"}}`, "no password", "no password"},
		"short ones":     {`{"imports": {"a": "abc", "n": 123, "t": true}}`, "abc 123 true", "abc 123 true"},
		"long numbers":   {`{"imports": {"n": 12345678}}`, "12345678 or 1.2345678e+07", "[...] (string) or [...] (string)"},
		"quoted":         {`{"imports": {"a": "say \"no\"\tnow"}}`, `got "say \"no\"\tnow"`, `got "[...] (string)"`},
		"single lines":   {`{"imports": {"a": "first line\nsecond line\n"}}`, "at second line", "at [...] (string)"},
		"spaces around":  {`{"imports": {"a": "  padded  "}}`, "is padded", "is [...] (string)"},
		"values":         {`{"values": {"a": "exported"}}`, "exported", "[...] (string)"},
		"state":          {`{"state": {"a": "password"}}`, "password", "[...] (string)"},
		"the component":  {`{"cd": {"name": "example.com/x"}, "components": ["comp"], "blueprintDef": "blue"}`, "example.com/x comp blue", "example.com/x comp blue"},
		"a target": {`{"imports": {"t": {"kind": "Target", "metadata": {"name": "my-target"}, "spec": {"config": {"kubeconfig": "token: abcdef"}}}}}`,
			"my-target has token: abcdef", "my-target has [...] (string)"},
		"no target": {`{"imports": {"t": {"kind": "Target", "name": "text"}}}`, "text of Target", "[...] (string) of [...] (string)"},
	} {
		if actual := masked(t, host.Deploy, "", one.inputs, one.text); actual != one.expected {
			t.Errorf("%s: %s", name, actual)
		}
	}
}

func TestAllInputsOfAMappingAreHidden(t *testing.T) {
	for _, execution := range []host.Execution{host.ImportMapping, host.ExportMapping} {
		if actual := masked(t, execution, "", `{"cd": "hunter22"}`, "hunter22"); actual != diagnosis.Hidden {
			t.Errorf("%s", actual)
		}
	}
}

func TestWordsOfTheTemplateAreShown(t *testing.T) {
	if actual := masked(t, host.Deploy, `{{ fail "must be odd" }}`, `{"imports": {"a": "must", "b": "even"}}`, "must be even"); actual != "must be [...] (string)" {
		t.Errorf("%s", actual)
	}
}

func TestMintedCredentialsAreHidden(t *testing.T) {
	mask := diagnosis.NewMask(host.Request{}, nil)
	answers := &cases.Answers{Told: map[string]any{`issue-credential "serviceAccount" {}`: map[string]any{"kubeconfig": "dG9rZW4="}}}
	told, err := diagnosis.Issuing{Host: answers, Mask: mask}.IssueCredential(host.ServiceAccount, []byte(`{}`))
	if err != nil || string(told) != `{"kubeconfig":"dG9rZW4="}` {
		t.Errorf("%v: %s", err, told)
	}
	if actual := mask.Of("a dG9rZW4= b"); actual != "a [...] (string) b" {
		t.Errorf("%s", actual)
	}
	mask.HideDocument([]byte("no JSON"))
	if actual := mask.Of("it is no JSON"); actual != "it is [...] (string)" {
		t.Errorf("%s", actual)
	}
}

func TestASnippetShowsFiveLinesAroundWithAMarker(t *testing.T) {
	lines := []string{}
	for _, letter := range "abcdefghijklmno" {
		lines = append(lines, strings.Repeat(string(letter), 3))
	}
	text := strings.Join(lines, "\n")
	for name, one := range map[string]struct {
		line, column int
		expected     string
	}{
		"the first":  {1, 0, "1:    aaa\n      ˆ≈≈≈≈≈≈≈\n2:    bbb\n3:    ccc\n4:    ddd\n5:    eee\n6:    fff\n"},
		"the middle": {8, 2, "3:    ccc\n4:    ddd\n5:    eee\n6:    fff\n7:    ggg\n8:    hhh\n        ˆ≈≈≈≈≈≈≈\n9:    iii\n10:   jjj\n11:   kkk\n12:   lll\n13:   mmm\n"},
		"the last":   {15, 99, "10:   jjj\n11:   kkk\n12:   lll\n13:   mmm\n14:   nnn\n15:   ooo\n         ˆ≈≈≈≈≈≈≈\n"},
		"none":       {16, 0, ""},
		"unknown":    {0, 0, ""},
	} {
		if actual := diagnosis.Snippet(one.line, one.column, text); actual != one.expected {
			t.Errorf("%s:\n%s", name, actual)
		}
	}
	long := diagnosis.Snippet(1, 10000, strings.Repeat("ä", 5000)+"\r")
	if expected := "1:    " + strings.Repeat("ä", 240) + "…\n" + strings.Repeat(" ", 6+241) + "ˆ≈≈≈≈≈≈≈\n"; long != expected {
		t.Errorf("%s", long)
	}
}

func TestColumnsCountCharacters(t *testing.T) {
	if actual := diagnosis.Characters("x\näb{{", 2, 4); actual != 3 {
		t.Errorf("%d", actual)
	}
	if actual := diagnosis.Characters("x", 7, 4); actual != 4 {
		t.Errorf("%d", actual)
	}
}

func TestALongMessageIsCutBetweenCharacters(t *testing.T) {
	for text, expected := range map[string]string{"abcd": "abcd", "abcde": "abcd… (1 bytes more)", "abcää": "abc… (4 bytes more)"} {
		if actual := diagnosis.Bounded(text, 4); actual != expected {
			t.Errorf("%s", actual)
		}
	}
}
