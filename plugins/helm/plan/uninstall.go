package plan

import (
	"strings"

	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"

	"orangery.dev/helm/release"
	"orangery.dev/helm/render"
	"orangery.dev/helm/wire"
)

// uninstall takes a release away as action.Uninstall of Helm does: hooks, objects kind after kind, hooks, revisions. A
// release that does not exist is away.
func (c *call) uninstall(history release.History) ([]wire.Stage, error) {
	last := history.Last()
	if last == nil {
		return nil, nil
	}
	proposal := &wire.Proposal{}
	if last.Status != common.StatusUninstalled {
		of, err := last.Release()
		if err != nil {
			return nil, err
		}
		if err := c.takeAway(proposal, last, of); err != nil {
			return nil, err
		}
	}
	purge := wire.Stage{Name: "delete release"}
	for _, revision := range history {
		purge.Removals = append(purge.Removals, wire.Removal{Key: revision.Key})
	}
	return append(proposal.Stages, purge), nil
}

func (c *call) takeAway(proposal *wire.Proposal, last *release.Revision, of *helm.Release) error {
	of.Info.Deleted = c.item.Now
	of.SetStatus(common.StatusUninstalling, "Deletion in progress (or silently failed)")
	// Where another item has the release, nothing of it is written and no hook runs: what goes is what nobody holds.
	if c.another(last) {
		return c.take(proposal, of)
	}
	secret, err := c.secrets.Secret(of, last.Job, last.Created, c.item.Now)
	if err != nil {
		return err
	}
	proposal.Stages = append(proposal.Stages, wire.Stage{
		Name: "begin uninstall", Writes: []wire.Write{{Object: secret, How: wire.Replace, Owned: wire.Kept}},
	})
	// Helm applies the hooks of a deletion always on the server.
	of.ApplyMethod = string(helm.ApplyMethodServerSideApply)
	if err := c.hooks(proposal, of, helm.HookPreDelete); err != nil {
		return err
	}
	if err := c.take(proposal, of); err != nil {
		return err
	}
	return c.hooks(proposal, of, helm.HookPostDelete)
}

// take deletes the objects of a revision, kind after kind.
func (c *call) take(proposal *wire.Proposal, of *helm.Release) error {
	keys, err := c.going(of)
	if err != nil {
		return err
	}
	for _, group := range byKind(keys) {
		stage := wire.Stage{Name: unused(proposal, "delete "+group[0].Kind)}
		for _, key := range group {
			stage.Removals = append(stage.Removals, wire.Removal{Key: key})
		}
		proposal.Stages = append(proposal.Stages, stage)
	}
	return nil
}

// going are the objects of a revision that go with it, in the order of Helm's uninstall.
func (c *call) going(of *helm.Release) ([]wire.Key, error) {
	_, manifests, err := releaseutil.SortManifests(releaseutil.SplitManifests(of.Manifest), nil, releaseutil.UninstallOrder)
	if err != nil {
		return nil, wire.Wrong("", "the manifest of revision %d of the release %s cannot be read: %s; delete its objects "+
			"by hand, and the item with the annotation landscaper.gardener.cloud/delete-without-uninstall", of.Version, of.Name, err)
	}
	var sorted strings.Builder
	for _, manifest := range manifests {
		sorted.WriteString("\n---\n" + manifest.Content)
	}
	objects, err := render.Standing(sorted.String(), of.Namespace, c.cluster)
	if err != nil {
		return nil, err
	}
	var all, keys []wire.Key
	for _, object := range objects {
		all = append(all, object.Key())
	}
	live, err := c.live(all)
	if err != nil {
		return nil, err
	}
	// What its owner has marked since counts as well as what the chart says.
	for _, object := range objects {
		key := object.Key()
		existing, exists := live[key]
		if !isKept(object) && !(exists && (isKept(existing) || c.isElsewhere(existing, of))) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}
