package plan

import (
	"fmt"
	"sort"
	"strings"

	helm "helm.sh/helm/v4/pkg/release/v1"

	"orangery.dev/helm/release"
	"orangery.dev/helm/render"
	"orangery.dev/helm/wire"
)

// The marks by which Helm knows the objects of a release (pkg/action/validate.go).
const (
	managedBy          = "app.kubernetes.io/managed-by"
	releaseName        = "meta.helm.sh/release-name"
	releaseNamespace   = "meta.helm.sh/release-namespace"
	fieldManager       = "helm"
	definitionOfAKind  = "CustomResourceDefinition"
	beforeHookCreation = helm.HookBeforeHookCreation
)

// change is what brings a cluster from the objects of one revision to those of another.
type change struct {
	// objects are those of the new revision, in the order of Helm, with its marks.
	objects []render.Object
	// earlier are the forms that the last revision wanted, of those that exist.
	earlier map[wire.Key]map[string]any
	// leaving are those of the last revision that the new one does not have.
	leaving []wire.Key
}

// change compares revisions. `from` is nil where there is none yet.
func (c *call) change(to, from *helm.Release, namespace string, adopt bool) (*change, error) {
	c.cluster.DefineIn(to.Manifest)
	objects, err := render.Objects(to.Manifest, namespace, c.cluster, c.item.Seed)
	if err != nil {
		return nil, err
	}
	var standing []render.Object
	if from != nil {
		if standing, err = render.Standing(from.Manifest, namespace, c.cluster); err != nil {
			return nil, err
		}
	}
	result := &change{earlier: map[wire.Key]map[string]any{}}
	keys := []wire.Key{}
	for _, object := range objects {
		marked := object.Marked(map[string]string{managedBy: "Helm"},
			map[string]string{releaseName: to.Name, releaseNamespace: to.Namespace})
		result.objects = append(result.objects, marked)
		keys = append(keys, object.Key())
	}
	for _, object := range standing {
		keys = append(keys, object.Key())
	}
	live, err := c.live(keys)
	if err != nil {
		return nil, err
	}
	for _, object := range result.objects {
		if err := result.meet(object, standing, live, to, adopt); err != nil {
			return nil, err
		}
	}
	result.leave(standing, func(key wire.Key) bool {
		existing, exists := live[key]
		return exists && !isKept(existing) && !c.isElsewhere(existing, from)
	})
	return result, nil
}

// meet finds out how an object that exists is written: over what the last revision wanted, or adopted.
func (r *change) meet(object render.Object, standing []render.Object, live map[wire.Key]render.Object, to *helm.Release, adopt bool) error {
	key := object.Key()
	existing, exists := live[key]
	if !exists {
		return nil
	}
	for _, old := range standing {
		if old.Key() == key {
			r.earlier[key] = old.Content
			return nil
		}
	}
	if wrong := foreign(existing, to); len(wrong) > 0 && !adopt {
		return wire.Wrong("", "chart %s: %s exists and does not belong to the release %s (%s); delete it, name the release "+
			"otherwise, or set takeOwnership: true in helmDeploymentConfig", to.Chart.Name(), key, to.Name, strings.Join(wrong, ", "))
	}
	r.earlier[key] = object.Content
	return nil
}

// foreign says what an object lacks to belong to a release.
func foreign(object render.Object, to *helm.Release) []string {
	var wrong []string
	miss := func(what, name, actual, wanted string) {
		if actual != wanted {
			wrong = append(wrong, fmt.Sprintf("its %s %s is %q and not %q", what, name, actual, wanted))
		}
	}
	miss("label", managedBy, object.Label(managedBy), "Helm")
	miss("annotation", releaseName, object.Annotation(releaseName), to.Name)
	miss("annotation", releaseNamespace, object.Annotation(releaseNamespace), to.Namespace)
	return wrong
}

// isElsewhere tells whether an object belongs to no revision of a release any more: it says so of another one, or another deploy
// item has written it for none. What an item has left that does not exist any more is the host's to tell (C-114).
func (c *call) isElsewhere(object render.Object, of *helm.Release) bool {
	name, namespace := object.Annotation(releaseName), object.Annotation(releaseNamespace)
	if name == "" && namespace == "" {
		mark := object.Annotation(release.OwnerAnnotation)
		return mark != "" && mark != c.mark()
	}
	return name != of.Name || namespace != of.Namespace
}

// leave finds what the new revision does not have, and may go.
func (r *change) leave(standing []render.Object, goes func(wire.Key) bool) {
	for _, old := range standing {
		key := old.Key()
		if !goes(key) {
			continue
		}
		stays := false
		for _, object := range r.objects {
			stays = stays || object.Key().SameObject(key)
		}
		if !stays {
			r.leaving = append(r.leaving, key)
		}
	}
}

// writing is how objects are written.
type writing func(object render.Object, earlier map[string]any) wire.How

// how is the way of a release: server-side apply, replacement by force, or a merge of three.
func how(serverSide, force bool) writing {
	return func(_ render.Object, earlier map[string]any) wire.How {
		switch {
		case serverSide:
			return wire.ApplyAs(fieldManager)
		case earlier == nil || force:
			return wire.Replace
		default:
			return wire.Merge(earlier)
		}
	}
}

// stages writes the objects, kind after kind as Helm does, and then deletes what has left.
func (r *change) stages(proposal *wire.Proposal, how writing) {
	var stage *wire.Stage
	kind := ""
	for _, object := range r.objects {
		key := object.Key()
		if stage == nil || key.Kind != kind {
			proposal.Stages = append(proposal.Stages, wire.Stage{Name: unused(proposal, "write "+key.Kind)})
			stage, kind = &proposal.Stages[len(proposal.Stages)-1], key.Kind
		}
		stage.Writes = append(stage.Writes, wire.Write{
			Object: object.Content, How: how(object, r.earlier[key]), Owned: ownership(object),
		})
	}
	if len(r.leaving) > 0 {
		left := wire.Stage{Name: stageLeft}
		for _, key := range r.leaving {
			left.Removals = append(left.Removals, wire.Removal{Key: key})
		}
		proposal.Stages = append(proposal.Stages, left)
	}
}

// unused is a name of a stage that none has yet.
func unused(proposal *wire.Proposal, name string) string {
	taken := map[string]bool{}
	for _, stage := range proposal.Stages {
		taken[stage.Name] = true
	}
	for number, wanted := 2, name; ; number++ {
		if !taken[name] {
			return name
		}
		name = fmt.Sprintf("%s (%d)", wanted, number)
	}
}

// byKind groups keys in the order of Helm's uninstall, which the manifest sorter has given them.
func byKind(keys []wire.Key) [][]wire.Key {
	var groups [][]wire.Key
	for i, key := range keys {
		if i == 0 || keys[i-1].Kind != key.Kind {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], key)
	}
	return groups
}

// byWeight sorts hooks as Helm runs them.
func byWeight(hooks []*helm.Hook) {
	sort.SliceStable(hooks, func(i, j int) bool {
		if hooks[i].Weight != hooks[j].Weight {
			return hooks[i].Weight < hooks[j].Weight
		}
		return hooks[i].Name < hooks[j].Name
	})
}
