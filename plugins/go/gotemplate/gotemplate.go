// Package gotemplate is the template type GoTemplate: text/template with sprig and the functions of Landscaper
// (docs/wire.md §4.5).
package gotemplate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"text/template"

	// Names of time zones for date functions: a sandbox has no files of its own.
	_ "time/tzdata"

	"orangery.dev/plugins/diagnosis"
	"orangery.dev/plugins/host"
)

const (
	// mainName is what Landscaper calls every template, included ones too; a template may call itself by it.
	mainName = "execution"
	// mostIncludes is how often a file may be included inside of itself.
	mostIncludes = 100
)

// Render renders one execution. The output is text; the host decodes it and takes its state out of it.
func Render(h host.Host, request host.Request) (host.Rendered, *host.Failure) {
	inputs, err := inputs(request)
	if err != nil {
		return host.Rendered{}, &host.Failure{Message: err.Error(), File: request.File}
	}
	mask := diagnosis.NewMask(request, inputs)
	e := &execution{host: diagnosis.Issuing{Host: h, Mask: mask}, inputs: inputs, included: map[string]int{}}
	text, err := e.run(request.File, request.Template, inputs)
	if err != nil {
		return host.Rendered{}, failure(err, mask)
	}
	if failure := notText(request, text, mask); failure != nil {
		return host.Rendered{}, failure
	}
	if request.Execution != host.Import {
		if failure := noValue(request, text, mask); failure != nil {
			return host.Rendered{}, failure
		}
	}
	return host.Rendered{Output: host.Output{Text: text}}, nil
}

// inputs is the root of the template: what the execution receives, and its state, which is empty at first. Import
// executions have no state.
func inputs(request host.Request) (map[string]any, error) {
	inputs := map[string]any{}
	if err := json.Unmarshal(request.Inputs, &inputs); err != nil {
		return nil, fmt.Errorf("the inputs of the execution are no JSON object: %w", err)
	}
	if request.Execution == host.Import {
		return inputs, nil
	}
	var state any = map[string]any{}
	if len(request.State) > 0 {
		if err := json.Unmarshal(request.State, &state); err != nil {
			return nil, errors.New("the state of the execution is no JSON")
		}
	}
	inputs["state"] = state
	return inputs, nil
}

// execution is one rendering, with the files that it is inside of.
type execution struct {
	host     host.Host
	inputs   map[string]any
	included map[string]int
}

// run renders a text with a function set of its own.
func (e *execution) run(file, source string, binding any) (string, error) {
	functions := maps.Clone(sprigFunctions)
	maps.Copy(functions, e.functions())
	parsed, err := template.New(mainName).Funcs(functions).Option("missingkey=zero").Parse(source)
	if err != nil {
		return "", &placed{file: file, source: source, err: err}
	}
	var output bytes.Buffer
	if err := parsed.Execute(&output, binding); err != nil {
		return "", &placed{file: file, source: source, err: err, parsed: parsed, atRoot: e.isRoot(binding)}
	}
	return output.String(), nil
}

// isRoot says whether a value is the inputs as a whole.
func (e *execution) isRoot(value any) bool {
	inputs, ok := value.(map[string]any)
	return ok && reflect.ValueOf(inputs).UnsafePointer() == reflect.ValueOf(e.inputs).UnsafePointer()
}

// include renders a file of the blueprint.
func (e *execution) include(name string, binding any) (string, error) {
	if e.included[name] > mostIncludes {
		return "", fmt.Errorf("rendering template has a nested reference name: %s: unable to execute template", name)
	}
	e.included[name]++
	defer func() { e.included[name]-- }()
	source, err := e.host.ReadFile(host.Path(name))
	if err != nil {
		return "", fmt.Errorf("unable to read include file %q: %w", name, err)
	}
	return e.run(host.Path(name), string(source), binding)
}
