// Package export_orangery_deployer_validate is what the generated bindings call to judge a configuration. Its name is
// theirs to choose.
package export_orangery_deployer_validate

import (
	"encoding/json"

	"orangery.dev/helm/wire"

	"wit_component/orangery_deployer_types"
	"wit_component/sandbox"
)

// Schema_ is the JSON Schema of the configuration. Set by package main.
var Schema_ func() string

// Check_ says what is wrong with a configuration. Set by package main.
var Check_ func(json.RawMessage) []wire.Problem

// Schema is orangery:deployer/validate#schema.
func Schema() string { return Schema_() }

// Check is orangery:deployer/validate#check.
func Check(config string) []orangery_deployer_types.Problem {
	var problems []orangery_deployer_types.Problem
	for _, problem := range Check_(json.RawMessage(config)) {
		problems = append(problems, sandbox.Problem(problem))
	}
	return problems
}
