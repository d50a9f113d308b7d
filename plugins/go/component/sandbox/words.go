package sandbox

import (
	"encoding/json"

	"go.bytecodealliance.org/pkg/wit/types"
	"orangery.dev/plugins/host"

	wit "wit_component/orangery_template_template"
)

// executions are the lists of a blueprint by their number in the enum of wit/template/0.1.0/template.wit.
var executions = [...]host.Execution{
	wit.Execution_Import:          host.Import,
	wit.Execution_Deploy:          host.Deploy,
	wit.Execution_Subinstallation: host.Subinstallation,
	wit.Execution_Export:          host.Export,
	wit.Execution_ImportMapping:   host.ImportMapping,
	wit.Execution_ExportMapping:   host.ExportMapping,
}

// Request is a request as engines read it.
func Request(of wit.Request) host.Request {
	request := host.Request{
		Execution: executions[of.Execution],
		Name:      of.Name,
		File:      of.File.SomeOr(""),
		Template:  of.Template,
		Inputs:    json.RawMessage(of.Inputs),
	}
	if of.State.IsSome() {
		request.State = json.RawMessage(of.State.Some())
	}
	return request
}

// Failure is a failure as the host reads it.
func Failure(of host.Failure) wit.Failure {
	return wit.Failure{
		Message: of.Message,
		File:    Some(of.File),
		Line:    Some(of.Line),
		Column:  Some(of.Column),
		Snippet: Some(of.Snippet),
		Reads:   reads(of.Reads),
	}
}

func reads(of []host.InputPath) [][]wit.InputStep {
	paths := make([][]wit.InputStep, 0, len(of))
	for _, path := range of {
		steps := make([]wit.InputStep, 0, len(path))
		for _, step := range path {
			steps = append(steps, inputStep(step))
		}
		paths = append(paths, steps)
	}
	return paths
}

func inputStep(of host.InputStep) wit.InputStep {
	switch of.Kind {
	case host.Items:
		return wit.MakeInputStepItems()
	case host.Entries:
		return wit.MakeInputStepEntries()
	default:
		return wit.MakeInputStepField(of.Name)
	}
}

// Some is the value, or none where it is empty.
func Some[T comparable](value T) wit_types.Option[T] {
	var empty T
	if value == empty {
		return wit_types.None[T]()
	}
	return wit_types.Some(value)
}
