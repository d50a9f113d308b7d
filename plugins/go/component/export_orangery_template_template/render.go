// Package export_orangery_template_template is what the generated bindings call: the engine, behind the words of
// wit/template. Its name is theirs to choose.
package export_orangery_template_template

import (
	"go.bytecodealliance.org/pkg/wit/types"
	"orangery.dev/plugins/host"

	wit "wit_component/orangery_template_template"
	"wit_component/sandbox"
)

// Engine renders one execution. Set by package main.
var Engine func(host.Host, host.Request) (host.Rendered, *host.Failure)

// Render is orangery:template/template#render.
func Render(of wit.Request) wit_types.Result[wit.Rendered, wit.Failure] {
	rendered, failure := Engine(sandbox.Host{}, sandbox.Request(of))
	if failure != nil {
		return wit_types.Err[wit.Rendered](sandbox.Failure(*failure))
	}
	output := wit.MakeOutputText(rendered.Output.Text)
	if rendered.Output.Document != nil {
		output = wit.MakeOutputDocument(string(rendered.Output.Document))
	}
	return wit_types.Ok[wit.Rendered, wit.Failure](wit.Rendered{
		Output:   output,
		State:    sandbox.Some(string(rendered.State)),
		Warnings: rendered.Warnings,
	})
}
