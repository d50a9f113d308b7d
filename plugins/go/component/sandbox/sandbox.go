// Package sandbox is what an engine in a component has around it: the host behind the imports of wit/template, and the
// words of its requests and failures.
package sandbox

import (
	"encoding/json"
	"errors"

	"go.bytecodealliance.org/pkg/wit/runtime"
	"go.bytecodealliance.org/pkg/wit/types"
	"orangery.dev/plugins/host"

	"wit_component/orangery_template_components"
	"wit_component/orangery_template_files"
	"wit_component/orangery_template_kubeconfigs"
)

// Host is the host as a call in the sandbox reaches it.
type Host struct{}

// ask makes a host call. Its answer lies in memory that no later call gives back, so it need not be copied.
func ask[T any](call func() wit_types.Result[T, string]) (T, error) {
	runtime.PauseClock(true)
	answer := call()
	runtime.PauseClock(false)
	if answer.IsErr() {
		var none T
		return none, errors.New(answer.Err())
	}
	return answer.Ok(), nil
}

func document(answer string, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	return json.RawMessage(answer), nil
}

func optional(from json.RawMessage) wit_types.Option[string] {
	if from == nil {
		return wit_types.None[string]()
	}
	return wit_types.Some(string(from))
}

func identity(pairs []host.Pair) []wit_types.Tuple2[string, string] {
	identity := make([]wit_types.Tuple2[string, string], 0, len(pairs))
	for _, pair := range pairs {
		identity = append(identity, wit_types.Tuple2[string, string]{F0: pair.Name, F1: pair.Value})
	}
	return identity
}

func (Host) ReadFile(path string) ([]byte, error) {
	return ask(func() wit_types.Result[[]byte, string] { return orangery_template_files.Read(path) })
}

func (Host) List(path string) ([]string, error) {
	return ask(func() wit_types.Result[[]string, string] { return orangery_template_files.List(path) })
}

func (Host) Component(from json.RawMessage, pairs []host.Pair) (json.RawMessage, error) {
	return document(ask(func() wit_types.Result[string, string] {
		return orangery_template_components.Component(optional(from), identity(pairs))
	}))
}

func (Host) Resources(from json.RawMessage, pairs []host.Pair) ([]json.RawMessage, error) {
	found, err := ask(func() wit_types.Result[[]string, string] {
		return orangery_template_components.Resources(optional(from), identity(pairs))
	})
	if err != nil {
		return nil, err
	}
	documents := make([]json.RawMessage, 0, len(found))
	for _, one := range found {
		documents = append(documents, json.RawMessage(one))
	}
	return documents, nil
}

func (Host) ResourceKey(reference string) (string, error) {
	return ask(func() wit_types.Result[string, string] { return orangery_template_components.ResourceKey(reference) })
}

func (Host) ResourceContent(reference string) ([]byte, error) {
	return ask(func() wit_types.Result[[]byte, string] {
		return orangery_template_components.ResourceContent(reference)
	})
}

func (Host) IssueCredential(kind string, arguments json.RawMessage) (json.RawMessage, error) {
	return document(ask(func() wit_types.Result[string, string] {
		return orangery_template_kubeconfigs.IssueCredential(kind, string(arguments))
	}))
}
