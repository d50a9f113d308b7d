// Package export_orangery_template_check is what the generated bindings call to look at a template. Its name is theirs
// to choose.
package export_orangery_template_check

import (
	"go.bytecodealliance.org/pkg/wit/types"
	"orangery.dev/plugins/host"

	wit "wit_component/orangery_template_check"
	"wit_component/orangery_template_template"
	"wit_component/sandbox"
)

// Look looks at one execution without rendering it. Set by package main.
var Look func(host.Host, host.Request) *host.Findings

// Check is orangery:template/check#check.
func Check(of orangery_template_template.Request) wit_types.Option[wit.Findings] {
	found := Look(sandbox.Host{}, sandbox.Request(of))
	findings := wit.Findings{}
	for _, failure := range found.Failures {
		findings.Failures = append(findings.Failures, sandbox.Failure(failure))
	}
	for _, reference := range found.References {
		findings.References = append(findings.References, wit.Reference{
			Path:   reference.Path,
			File:   sandbox.Some(reference.File),
			Line:   sandbox.Some(reference.Line),
			Column: sandbox.Some(reference.Column),
		})
	}
	return wit_types.Some(findings)
}
