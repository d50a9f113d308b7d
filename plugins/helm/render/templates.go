package render

import (
	"path"
	"slices"
	"strings"
	"text/template"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
	"orangery.dev/random"
)

// begins is the function that a template calls first, with the name that it has in messages.
const begins = "orangery_begins"

// templates renders all templates of a chart. Each says when its turn comes: a template that never ends is known by that.
func templates(of *chart.Chart, values common.Values, cluster *Cluster) (map[string]string, error) {
	last := ""
	renderer := engine.Engine{CustomTemplateFuncs: template.FuncMap{
		"lookup": cluster.lookup, "randInt": random.Int, "shuffle": random.Shuffle, "dict": dict,
		begins: func(root any) string {
			// Not again where it includes others.
			if name := nameOf(root); name != "" && name != last {
				last = name
				cluster.host.Trace("rendering the template " + name)
			}
			return ""
		},
	}}
	restore := announced(of)
	files, err := renderer.Render(of, values)
	restore()
	if err != nil && cluster.fault == nil {
		// Once more as it is written, so that the message has the right columns.
		return renderer.Render(of, values)
	}
	return files, err
}

// nameOf is the name of the template that is rendered, whichever others it includes; empty where it is included with
// something else than the values of a chart.
func nameOf(root any) string {
	values, _ := root.(common.Values)
	told, _ := values["Template"].(common.Values)
	name, _ := told["Name"].(string)
	return name
}

// announced has the templates of a chart and its dependencies call `begins`, until the answer is called.
func announced(of *chart.Chart) (restore func()) {
	written := of.Templates
	of.Templates = slices.Clone(written)
	for i, file := range written {
		if strings.HasPrefix(path.Base(file.Name), "_") {
			// Only included.
			continue
		}
		marked := append([]byte("{{"+begins+" $}}"), file.Data...)
		of.Templates[i] = &common.File{Name: file.Name, ModTime: file.ModTime, Data: marked}
	}
	restores := []func(){func() { of.Templates = written }}
	for _, dependency := range of.Dependencies() {
		restores = append(restores, announced(dependency))
	}
	return func() {
		for _, one := range restores {
			one()
		}
	}
}
