// Package export_orangery_deployer_tests is what the generated bindings call to find the tests of a release. Its name is
// theirs to choose.
package export_orangery_deployer_tests

import (
	"go.bytecodealliance.org/pkg/wit/types"
	"orangery.dev/helm/wire"

	wit "wit_component/orangery_deployer_tests"
	"wit_component/orangery_deployer_types"
	"wit_component/sandbox"
)

// Find_ finds the tests of a release; it answers false where there is no such release. Set by package main.
var Find_ func(host wire.Host, namespace, name string) ([]wire.Test, bool, error)

// Find is orangery:deployer/tests#find.
func Find(of wit.Subject) wit_types.Result[wit_types.Option[[]wit.Test], orangery_deployer_types.Fault] {
	return sandbox.Tests(Find_(sandbox.Host{}, of.Namespace, of.Name))
}
