// Package export_orangery_deployer_uninstall is what the generated bindings call before an item is deleted. Its name is
// theirs to choose.
package export_orangery_deployer_uninstall

import (
	"go.bytecodealliance.org/pkg/wit/types"
	"orangery.dev/helm/wire"

	"wit_component/orangery_deployer_deploy"
	"wit_component/orangery_deployer_plan"
	"wit_component/orangery_deployer_types"
	"wit_component/sandbox"
)

// Plan_ plans. Set by package main.
var Plan_ func(wire.Host, wire.Item) (*wire.Proposal, error)

// Plan is orangery:deployer/uninstall#plan.
func Plan(of orangery_deployer_deploy.Item) wit_types.Result[orangery_deployer_plan.Proposal, orangery_deployer_types.Fault] {
	return sandbox.Answer(Plan_, of)
}
