package plan

import (
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"orangery.dev/helm/render"
	"orangery.dev/helm/wire"
)

// The labels by which Landscaper's deployers know their objects again (docs/wire.md §8.1).
const (
	manifestLabel = "manifest.deployer.landscaper.gardener.cloud/deployitem"
	helmLabel     = "helm.deployer.landscaper.gardener.cloud/deployitem"
)

const (
	policyAnnotation = "helm.sh/resource-policy"
	keep             = "keep"
)

// objects is the plan of a chart without a release: hooks are objects like others, and the schema of the values is not
// looked at, as in the original.
func (c *call) objects(of *chart.Chart) (*wire.Proposal, error) {
	definitions, err := c.definitions(of)
	if err != nil {
		return nil, err
	}
	rendered, err := render.Chart(render.Order{
		Chart: of, Values: c.config.Values, Name: c.config.Name, Namespace: c.config.Namespace, SkipSchemaValidation: true,
	}, c.cluster)
	if err != nil {
		return nil, err
	}
	all := rendered.Manifest
	for _, hook := range rendered.Hooks {
		all += "---\n# Source: " + hook.Path + "\n" + hook.Manifest + "\n"
	}
	plain, err := c.known(all, definitions)
	if err != nil {
		return nil, err
	}
	stage := wire.Stage{Name: "objects"}
	if c.config.CreateNamespace {
		stage.Writes = append(stage.Writes, c.namespace())
	}
	marks := map[string]string{manifestLabel: c.item.Name, helmLabel: c.item.Name}
	for _, object := range plain {
		marked := object.Marked(marks, nil)
		stage.Writes = append(stage.Writes, wire.Write{Object: marked.Content, How: c.config.UpdateStrategy, Owned: ownership(object)})
	}
	stage.Gate.Ready = c.readiness(plain)
	exports, err := c.exports(rendered.Values)
	if err != nil {
		return nil, err
	}
	proposal := &wire.Proposal{
		Stages: []wire.Stage{stage}, Next: wire.Next{Exports: exports},
		DeletionOrder: c.config.DeletionOrder, PruningOrder: c.config.Pruning,
	}
	return proposal, c.replaced(proposal, nil)
}

// known are the objects of the folders crds/ and of a manifest, which may have definitions of its own.
func (c *call) known(manifest string, definitions []render.Object) ([]render.Object, error) {
	c.cluster.DefineIn(manifest)
	rendered, err := render.Objects(manifest, c.config.Namespace, c.cluster, c.item.Seed)
	return append(append([]render.Object{}, definitions...), rendered...), err
}

// namespace is that of the release. It stays when the item goes: others may have put something there.
func (c *call) namespace() wire.Write {
	object := map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": c.config.Namespace, "labels": map[string]any{"name": c.config.Namespace}},
	}
	return wire.Write{Object: object, How: wire.Create, Owned: wire.Kept}
}

// isKept says whether an object stays when it has left: Helm takes the word in any case and with spaces around it.
func isKept(object render.Object) bool {
	return strings.ToLower(strings.TrimSpace(object.Annotation(policyAnnotation))) == keep
}

// ownership of an object that the chart wants kept.
func ownership(object render.Object) wire.Ownership {
	if isKept(object) {
		return wire.Kept
	}
	return wire.Managed
}
