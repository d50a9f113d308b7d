// Package diagnosis is what an error of a template may show: places, lines of source, and no value that an import gave.
package diagnosis

import (
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"orangery.dev/plugins/host"
)

const (
	// Shorter values are no secrets, and hiding them would garble the words of a message.
	shortestHidden = 4
	// Errors quote single lines of longer texts, such as kubeconfigs.
	shortestHiddenLine = 8
	// Hidden replaces a value, as Landscaper writes it (docs/wire.md §4.9).
	Hidden = "[...] (string)"
)

// public are the inputs of an execution that tell nothing about imports (docs/wire.md §4.3).
var public = []string{"cd", "components", "blueprint", "blueprintDef", "componentDescriptorDef"}

// Mask hides values in texts. Most renderings need none, so that the values are gathered with the first text.
type Mask struct {
	hidden []any
	values map[string]bool
	shown  []string
}

// NewMask hides the values of all inputs of an execution that may be secret. What stands in the template is no secret:
// such words are shown.
func NewMask(request host.Request, inputs map[string]any) *Mask {
	mask := &Mask{shown: []string{request.Template}}
	isMapping := request.Execution == host.ImportMapping || request.Execution == host.ExportMapping
	for name, value := range inputs {
		// The inputs of a mapping are imports or exports, whatever they are called.
		if isMapping || !slices.Contains(public, name) {
			mask.Hide(value)
		}
	}
	return mask
}

// Show tells of another text whose words are no secrets, such as an included file.
func (m *Mask) Show(text string) {
	m.shown = append(m.shown, text)
}

// HideDocument hides the values of a JSON document; of a text that is none, the text.
func (m *Mask) HideDocument(document []byte) {
	var value any
	if json.Unmarshal(document, &value) != nil {
		value = string(document)
	}
	m.Hide(value)
}

// Hide hides all texts and long numbers in a value. What a Target is called and where it lies is shown.
func (m *Mask) Hide(value any) {
	m.hidden = append(m.hidden, value)
	m.values = nil
}

func (m *Mask) gather(value any) {
	switch value := value.(type) {
	case string:
		m.hideText(value)
	case float64:
		m.hideNumber(strconv.FormatFloat(value, 'f', -1, 64))
		m.hideNumber(strconv.FormatFloat(value, 'g', -1, 64))
	case []any:
		for _, item := range value {
			m.gather(item)
		}
	case map[string]any:
		if value["kind"] == "Target" && value["spec"] != nil {
			m.gather(value["spec"])
			return
		}
		for _, item := range value {
			m.gather(item)
		}
	}
}

func (m *Mask) hideNumber(digits string) {
	if len(digits) >= shortestHidden {
		m.values[digits] = true
	}
}

func (m *Mask) hideText(text string) {
	text = strings.TrimSpace(text)
	if utf8.RuneCountInString(text) < shortestHidden {
		return
	}
	m.values[text] = true
	if quoted := strconv.Quote(text); quoted != `"`+text+`"` {
		m.values[quoted[1:len(quoted)-1]] = true
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); utf8.RuneCountInString(line) >= shortestHiddenLine {
			m.values[line] = true
		}
	}
}

// Of is the text without any of the values.
func (m *Mask) Of(text string) string {
	if m.values == nil {
		m.values = map[string]bool{}
		for _, value := range m.hidden {
			m.gather(value)
		}
	}
	found := []string{}
	for value := range m.values {
		if strings.Contains(text, value) && !m.isShown(value) {
			found = append(found, value)
		}
	}
	sort.Slice(found, func(i, j int) bool {
		return len(found[i]) > len(found[j]) || len(found[i]) == len(found[j]) && found[i] < found[j]
	})
	pairs := []string{}
	for _, value := range found {
		pairs = append(pairs, value, Hidden)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func (m *Mask) isShown(value string) bool {
	return slices.ContainsFunc(m.shown, func(text string) bool { return strings.Contains(text, value) })
}

// Issuing is a host whose credentials are hidden from all messages.
type Issuing struct {
	host.Host
	// Mask hides them.
	Mask *Mask
}

// IssueCredential asks the host.
func (m Issuing) IssueCredential(kind string, arguments json.RawMessage) (json.RawMessage, error) {
	answer, err := m.Host.IssueCredential(kind, arguments)
	m.Mask.HideDocument(answer)
	return answer, err
}
