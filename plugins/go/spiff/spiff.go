// Package spiff is the template type Spiff and the data mappings of installations: dynaml documents, evaluated by
// github.com/mandelsoft/spiff with the functions of Landscaper (docs/wire.md §4.6).
package spiff

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mandelsoft/spiff/spiffing"
	"github.com/mandelsoft/spiff/yaml"
	kubernetesyaml "sigs.k8s.io/yaml"

	"orangery.dev/plugins/diagnosis"
	"orangery.dev/plugins/host"
)

// What spiff calls the template and the state.
const (
	sourceName = "template"
	stateName  = "state"
)

// Render renders one execution, or one data mapping: its template is then the mapping's value as JSON. The output is a
// document, and the state that is to be kept is answered beside it, also when it is empty.
func Render(h host.Host, request host.Request) (answer host.Rendered, failure *host.Failure) {
	e, err := prepare(h, request)
	if err != nil {
		return host.Rendered{}, &host.Failure{Message: err.Error(), File: request.File}
	}
	// Spiff trusts the types of some arguments.
	defer func() {
		if cause := recover(); cause != nil {
			answer, failure = host.Rendered{}, e.failure(fmt.Errorf("spiff cannot evaluate the template: %v", cause))
		}
	}()
	answer, err = e.render()
	if err != nil {
		return host.Rendered{}, e.failure(err)
	}
	return answer, nil
}

// execution is one rendering.
type execution struct {
	request host.Request
	mask    *diagnosis.Mask
	spiff   spiffing.Spiff
	state   yaml.Node
}

// prepare makes what the execution receives the outermost scope, and what it kept a stub.
func prepare(h host.Host, request host.Request) (*execution, error) {
	values := map[string]any{}
	if err := json.Unmarshal(request.Inputs, &values); err != nil {
		return nil, fmt.Errorf("the inputs of the execution are no JSON object: %w", err)
	}
	mask := diagnosis.NewMask(request, values)
	state, err := stub(request, mask)
	if err != nil {
		return nil, err
	}
	// Plain reads no setting from the environment. Another file system than the machine's switches commands off.
	context, err := spiffing.Plain().
		WithFunctions(functions(diagnosis.Issuing{Host: h, Mask: mask}, request.Execution)).
		WithFileSystem(blueprint{host: h}).
		WithValues(values)
	if err != nil {
		return nil, fmt.Errorf("spiff cannot take the inputs of the execution: %w", err)
	}
	return &execution{request: request, mask: mask, spiff: context, state: state}, nil
}

// keepsState says whether executions of a list have a state.
func keepsState(execution host.Execution) bool {
	switch execution {
	case host.Deploy, host.Subinstallation, host.Export:
		return true
	default:
		return false
	}
}

// stub is the state as a stub; nil for an execution without.
func stub(request host.Request, mask *diagnosis.Mask) (yaml.Node, error) {
	if !keepsState(request.Execution) {
		return nil, nil
	}
	if len(request.State) == 0 {
		return yaml.NewNode(map[string]yaml.Node{}, stateName), nil
	}
	mask.HideDocument(request.State)
	// Read as spiff reads documents: a number that it kept as an integer stays one.
	state, err := yaml.Unmarshal(stateName, request.State)
	if err != nil {
		return nil, errors.New("the state of the execution is no JSON")
	}
	return state, nil
}

func (e *execution) render() (host.Rendered, error) {
	template, err := yaml.Unmarshal(sourceName, []byte(e.request.Template))
	if err != nil {
		return host.Rendered{}, err
	}
	stubs := []yaml.Node{}
	if e.state != nil {
		stubs = append(stubs, e.state)
	}
	result, err := e.spiff.Cascade(template, stubs)
	if err != nil {
		return host.Rendered{}, err
	}
	// Spiff's writer never ends on a text that is no UTF-8.
	if at, ok := notText(result, ""); ok {
		return host.Rendered{}, fmt.Errorf("%s is no UTF-8 text; write binary content by base64", at)
	}
	text, err := yaml.Marshal(result)
	if err != nil {
		return host.Rendered{}, err
	}
	// Through spiff's text, as in Landscaper: it says how numbers are written, and what YAML makes of words.
	document, err := kubernetesyaml.YAMLToJSON(text)
	if err != nil {
		return host.Rendered{}, fmt.Errorf("the evaluated document is no YAML: %w; a template that shall not stand in it needs (( &temporary &template ))", err)
	}
	answer := host.Rendered{Output: host.Output{Document: document}}
	if e.state != nil {
		answer.State, err = yaml.ToJSON(e.spiff.DetermineState(result))
	}
	return answer, err
}

// notText finds a text or a key of a document that is no UTF-8, and says where.
func notText(node yaml.Node, path string) (string, bool) {
	if node == nil {
		return "", false
	}
	switch value := node.Value().(type) {
	case string:
		return strings.TrimPrefix(path, "."), !utf8.ValidString(value)
	case []yaml.Node:
		for i, inner := range value {
			if at, ok := notText(inner, fmt.Sprintf("%s[%d]", path, i)); ok {
				return at, true
			}
		}
	case map[string]yaml.Node:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if !utf8.ValidString(key) {
				return strings.TrimPrefix(path+".", ".") + host.Text(key), true
			}
			if at, ok := notText(value[key], path+"."+key); ok {
				return at, true
			}
		}
	}
	return "", false
}
