// Package export_orangery_template_template is what the generated bindings call. Its name is theirs to choose.
//
// An execution of one's own: how many crates the harvest of each tree fills, as a ConfigMap.
package export_orangery_template_template

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.bytecodealliance.org/pkg/wit/runtime"
	"go.bytecodealliance.org/pkg/wit/types"

	"wit_component/orangery_template_files"
	wit "wit_component/orangery_template_template"
)

const kilogramsPerCrate = 12

type inputs struct {
	Imports struct {
		Trees []struct {
			Name      string `json:"name"`
			Kilograms int    `json:"kilograms"`
		} `json:"trees"`
	} `json:"imports"`
}

// Render is orangery:template/template#render.
func Render(of wit.Request) wit_types.Result[wit.Rendered, wit.Failure] {
	var given inputs
	if err := json.Unmarshal([]byte(of.Inputs), &given); err != nil {
		// The host shows what is there, by its type and never by its value.
		trees := []wit.InputStep{wit.MakeInputStepField("imports"), wit.MakeInputStepField("trees")}
		return wit_types.Err[wit.Rendered](wit.Failure{
			Message: "the imports have another form than this component reads",
			Reads:   [][]wit.InputStep{trees},
		})
	}
	document, err := render(given)
	if err != nil {
		return wit_types.Err[wit.Rendered](wit.Failure{Message: err.Error()})
	}
	return wit_types.Ok[wit.Rendered, wit.Failure](wit.Rendered{Output: wit.MakeOutputDocument(string(document))})
}

func render(given inputs) ([]byte, error) {
	season, err := read("season.txt")
	if err != nil {
		return nil, err
	}
	data := map[string]string{"season": strings.TrimSpace(season)}
	for _, tree := range given.Imports.Trees {
		data[tree.Name] = fmt.Sprintf("%d crates", (tree.Kilograms+kilogramsPerCrate-1)/kilogramsPerCrate)
	}
	return json.Marshal(map[string]any{"deployItems": []any{item(data)}})
}

// read reads a file of the blueprint.
func read(path string) (string, error) {
	// While the host writes its answer into our memory, the collector must not ask it for the time.
	runtime.PauseClock(true)
	answer := orangery_template_files.Read(path)
	runtime.PauseClock(false)
	if answer.IsErr() {
		return "", errors.New(answer.Err())
	}
	return string(answer.Ok()), nil
}

func item(data map[string]string) map[string]any {
	manifest := map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]string{"name": "harvest", "namespace": "default"},
		"data":       data,
	}
	return map[string]any{
		"name":   "harvest",
		"type":   "landscaper.gardener.cloud/kubernetes-manifest",
		"target": map[string]string{"import": "cluster"},
		"config": map[string]any{
			"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2",
			"kind":       "ProviderConfiguration",
			"manifests":  []any{map[string]any{"manifest": manifest}},
		},
	}
}
