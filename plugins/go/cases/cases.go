// Package cases runs recorded cases: one folder each, <name>/request.json and response.json, in the form of
// plugins/sdk/src/cases.rs. They run natively here, and through the sandbox by the host's own tests. UPDATE=1 writes
// the responses anew: read what it wrote before you commit it.
package cases

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"orangery.dev/plugins/host"
)

// Engine renders one execution.
type Engine func(host.Host, host.Request) (host.Rendered, *host.Failure)

type request struct {
	Request host.Request      `json:"request"`
	Files   map[string]string `json:"files"`
}

type output struct {
	Text     *string         `json:"text,omitempty"`
	Document json.RawMessage `json:"document,omitempty"`
}

type rendered struct {
	Output   output          `json:"output"`
	State    json.RawMessage `json:"state,omitempty"`
	Warnings []string        `json:"warnings,omitempty"`
}

type response struct {
	Rendered *rendered     `json:"rendered,omitempty"`
	Failure  *host.Failure `json:"failure,omitempty"`
}

type findings struct {
	Findings *host.Findings `json:"findings"`
}

// Check runs every case of a folder.
func Check(t *testing.T, folder string, engine Engine) {
	t.Helper()
	run(t, folder, func(asked request) any { return answer(engine(Files(asked.Files), asked.Request)) })
}

// CheckFindings runs every case of a folder in which an engine only looks at a template.
func CheckFindings(t *testing.T, folder string, look func(host.Host, host.Request) *host.Findings) {
	t.Helper()
	run(t, folder, func(asked request) any { return findings{look(Files(asked.Files), asked.Request)} })
}

func run(t *testing.T, folder string, ask func(request) any) {
	t.Helper()
	requests, err := filepath.Glob(filepath.Join(folder, "*", "request.json"))
	if err != nil || len(requests) == 0 {
		t.Fatalf("there are no cases in %s: %v", folder, err)
	}
	for _, path := range requests {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) { check(t, path, ask) })
	}
}

func check(t *testing.T, path string, ask func(request) any) {
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var asked request
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil {
		t.Fatalf("%s is no request: %v", path, err)
	}
	actual, err := written(ask(asked))
	if err != nil {
		t.Fatal(err)
	}
	beside := filepath.Join(filepath.Dir(path), "response.json")
	expected, _ := os.ReadFile(beside)
	if equal(expected, actual) {
		return
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(beside, actual, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s is\n%s\nbut the answer is\n%s", beside, expected, actual)
}

func answer(of host.Rendered, failure *host.Failure) response {
	if failure != nil {
		return response{Failure: failure}
	}
	told := &rendered{State: of.State, Warnings: of.Warnings, Output: output{Document: of.Output.Document}}
	if of.Output.Document == nil {
		told.Output.Text = &of.Output.Text
	}
	return response{Rendered: told}
}

func written(told any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(told)
	return text.Bytes(), err
}

func equal(expected, actual []byte) bool {
	var left, right any
	return json.Unmarshal(expected, &left) == nil && json.Unmarshal(actual, &right) == nil && reflect.DeepEqual(left, right)
}

// Files is a host that has the files of a blueprint and nothing else.
type Files map[string]string

var errNothing = errors.New("the blueprint belongs to no component version")

// ReadFile reads a recorded file.
func (f Files) ReadFile(path string) ([]byte, error) {
	content, ok := f[path]
	if !ok {
		return nil, fmt.Errorf("the blueprint has no file %s", path)
	}
	return []byte(content), nil
}

// List lists a folder of recorded files.
func (f Files) List(path string) ([]string, error) {
	folder := path + "/"
	if path == "" {
		folder = ""
	}
	names := []string{}
	for file := range f {
		if rest, ok := strings.CutPrefix(file, folder); ok {
			name, _, _ := strings.Cut(rest, "/")
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("the blueprint has no folder %s", path)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Component has none.
func (f Files) Component(json.RawMessage, []host.Pair) (json.RawMessage, error) {
	return nil, errNothing
}

// Resources has none.
func (f Files) Resources(json.RawMessage, []host.Pair) ([]json.RawMessage, error) {
	return nil, errNothing
}

// ResourceKey has none.
func (f Files) ResourceKey(string) (string, error) { return "", errNothing }

// ResourceContent has none.
func (f Files) ResourceContent(string) ([]byte, error) { return nil, errNothing }

// IssueCredential has none.
func (f Files) IssueCredential(kind string, _ json.RawMessage) (json.RawMessage, error) {
	return nil, fmt.Errorf("no credentials of kind %q can be had here", kind)
}

// Answers is a host that also answers what was recorded, keyed by what it is asked.
type Answers struct {
	Files
	// Told is the answer to a question, such as `resources {"name":"x"}`; an error is told as one.
	Told map[string]any
	// Asked is every question, in order.
	Asked []string
}

func (a *Answers) tell(question string, parts ...any) (json.RawMessage, error) {
	for _, part := range parts {
		encoded, err := json.Marshal(part)
		if err != nil {
			return nil, err
		}
		question += " " + string(encoded)
	}
	a.Asked = append(a.Asked, question)
	answer, ok := a.Told[question]
	if err, failed := answer.(error); failed || !ok {
		return nil, either(err, fmt.Errorf("nothing is recorded for %s", question))
	}
	return json.Marshal(answer)
}

func either(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// Component answers `component <from> <identity>`.
func (a *Answers) Component(from json.RawMessage, identity []host.Pair) (json.RawMessage, error) {
	return a.tell("component", from, identity)
}

// Resources answers `resources <from> <identity>`.
func (a *Answers) Resources(from json.RawMessage, identity []host.Pair) ([]json.RawMessage, error) {
	told, err := a.tell("resources", from, identity)
	if err != nil {
		return nil, err
	}
	found := []json.RawMessage{}
	return found, json.Unmarshal(told, &found)
}

// ResourceKey answers `key <reference>`.
func (a *Answers) ResourceKey(reference string) (string, error) {
	return a.text("key", reference)
}

// ResourceContent answers `content <reference>`.
func (a *Answers) ResourceContent(reference string) ([]byte, error) {
	told, err := a.text("content", reference)
	return []byte(told), err
}

func (a *Answers) text(question, reference string) (string, error) {
	told, err := a.tell(question, reference)
	if err != nil {
		return "", err
	}
	var text string
	return text, json.Unmarshal(told, &text)
}

// IssueCredential answers `issue-credential <kind> <arguments>`.
func (a *Answers) IssueCredential(kind string, arguments json.RawMessage) (json.RawMessage, error) {
	return a.tell("issue-credential", kind, arguments)
}
