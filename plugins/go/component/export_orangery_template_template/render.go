// Package export_orangery_template_template is what the generated bindings call: the engine, behind the words of
// wit/template. Its name is theirs to choose.
package export_orangery_template_template

import (
	"encoding/json"

	"go.bytecodealliance.org/pkg/wit/types"
	"orangery.dev/plugins/host"

	wit "wit_component/orangery_template_template"
)

// Engine renders one execution. Set by package main.
var Engine func(host.Host, host.Request) (host.Rendered, *host.Failure)

// executions are the lists of a blueprint by their number in the enum of wit/template/template.wit.
var executions = [...]host.Execution{
	wit.Execution_Import:          host.Import,
	wit.Execution_Deploy:          host.Deploy,
	wit.Execution_Subinstallation: host.Subinstallation,
	wit.Execution_Export:          host.Export,
	wit.Execution_ImportMapping:   host.ImportMapping,
	wit.Execution_ExportMapping:   host.ExportMapping,
}

// Render is orangery:template/template#render.
func Render(of wit.Request) wit_types.Result[wit.Rendered, wit.Failure] {
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
	rendered, failure := Engine(sandbox{}, request)
	if failure != nil {
		return wit_types.Err[wit.Rendered](wit.Failure{
			Message: failure.Message,
			File:    some(failure.File),
			Line:    some(failure.Line),
			Column:  some(failure.Column),
			Snippet: some(failure.Snippet),
		})
	}
	output := wit.MakeOutputText(rendered.Output.Text)
	if rendered.Output.Document != nil {
		output = wit.MakeOutputDocument(string(rendered.Output.Document))
	}
	return wit_types.Ok[wit.Rendered, wit.Failure](wit.Rendered{
		Output:   output,
		State:    some(string(rendered.State)),
		Warnings: rendered.Warnings,
	})
}

// some is the value, or none where it is empty.
func some[T comparable](value T) wit_types.Option[T] {
	var empty T
	if value == empty {
		return wit_types.None[T]()
	}
	return wit_types.Some(value)
}
