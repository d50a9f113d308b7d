package plan

import (
	"encoding/json"
	"fmt"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"

	"orangery.dev/helm/config"
	"orangery.dev/helm/release"
	"orangery.dev/helm/render"
	"orangery.dev/helm/wire"
)

const (
	// mostRevisions are kept of a release, as the original keeps them (docs/wire.md §8.2).
	mostRevisions = 10
	// fresh is how long an operation of somebody else may be under way; Helm's own timeout.
	fresh = 5 * time.Minute
	// The stages of a release that have no hooks and no objects of the chart.
	stageBegin  = "begin release"
	stageFinish = "finish release"
	stageReady  = "readiness"
	stageWait   = "wait"
	stageLeft   = "delete what left the chart"
)

// attempt is one revision on its way.
type attempt struct {
	*call
	// others are the revisions that this job has not made.
	others release.History
	// base is the revision that is upgraded; nil where there is none.
	base *release.Revision
	// from is what it has deployed; nil where there is none.
	from *helm.Release
	// next is the new revision.
	next       *helm.Release
	terms      config.Terms
	serverSide bool
	created    time.Time
}

// checkpoint is what a failed stage hands over.
type checkpoint struct {
	// Revision is the one that was under way.
	Revision int `json:"revision"`
	// Upgrade says that there was one before.
	Upgrade bool `json:"upgrade,omitempty"`
	// Cause is the failure that is being rolled back; empty where the first attempt has failed.
	Cause *wire.Problem `json:"cause,omitempty"`
}

func (c *call) release(of *chart.Chart) (*wire.Proposal, error) {
	history, err := release.Read(c.host, c.config.Namespace, c.config.Name)
	if err != nil {
		return nil, err
	}
	if err := c.alone(history); err != nil {
		return nil, err
	}
	a := &attempt{call: c, others: history.Without(c.item.Job), created: c.item.Now}
	if err := a.choose(); err != nil {
		return nil, err
	}
	definitions, err := c.definitions(of)
	if err != nil {
		return nil, err
	}
	values, err := a.render(of)
	if err != nil {
		return nil, err
	}
	proposal := &wire.Proposal{}
	if err := a.stages(proposal, definitions); err != nil {
		return nil, err
	}
	if proposal.Next.Exports, err = c.exports(values); err != nil {
		return nil, err
	}
	if proposal.Recover, err = json.Marshal(checkpoint{Revision: a.next.Version, Upgrade: a.from != nil}); err != nil {
		return nil, err
	}
	return proposal, c.replaced(proposal, &standby{Name: a.next.Name, Namespace: a.next.Namespace, Revision: a.next.Version})
}

// choose finds the revision to start from, as action.Upgrade of Helm does; nothing that is pending is left to somebody.
func (a *attempt) choose() error {
	last := a.others.Last()
	number := 1
	switch {
	case last == nil || last.Status == common.StatusUninstalled || !a.others.Stands():
		if last != nil {
			number = last.Number + 1
		}
	case last.Status.IsPending() && last.Job == "" && !last.Created.IsZero() && a.item.Now.Sub(last.Created) < fresh:
		return &wire.Fault{Kind: wire.Later, Problem: wire.Problem{
			Code: "ERR_UNFINISHED",
			Message: fmt.Sprintf("the release %s is %s since %s, by somebody else; this waits for it, and takes it for "+
				"broken off after %s", a.config.Name, last.Status, last.Created.Format(time.RFC3339), fresh),
		}}
	case last.Status == common.StatusPendingInstall && a.others.With(common.StatusDeployed) == nil:
		// Its install was broken off: this is the install again, under its number.
		number = last.Number
	default:
		number = last.Number + 1
		a.base = a.others.With(common.StatusDeployed)
		if a.base == nil {
			a.base = last
		}
	}
	a.terms = a.config.Install
	if a.base != nil {
		a.terms = a.config.Upgrade
		from, err := a.base.Release()
		if err != nil {
			return err
		}
		a.from = from
		newest, err := last.Release()
		if err != nil {
			return err
		}
		a.serverSide = newest.ApplyMethod == string(helm.ApplyMethodServerSideApply)
		a.next = &helm.Release{Labels: newest.Labels}
	} else {
		a.next = &helm.Release{Labels: map[string]string{}}
	}
	if wanted := a.terms.ServerSideApply; wanted != nil {
		a.serverSide = *wanted
	}
	a.next.Name, a.next.Namespace, a.next.Version = a.config.Name, a.config.Namespace, number
	return nil
}

// render renders the revision and answers its values.
func (a *attempt) render(of *chart.Chart) (map[string]any, error) {
	rendered, err := render.Chart(render.Order{
		Chart: of, Values: a.config.Values, Name: a.next.Name, Namespace: a.next.Namespace, Revision: a.next.Version,
		Upgrade: a.from != nil, SkipSchemaValidation: a.terms.SkipSchemaValidation,
	}, a.cluster)
	if err != nil {
		return nil, err
	}
	a.next.Chart, a.next.Config = of, a.config.Values
	a.next.Manifest, a.next.Hooks = rendered.Manifest, rendered.Hooks
	a.next.ApplyMethod = string(helm.ApplyMethodClientSideApply)
	if a.serverSide {
		a.next.ApplyMethod = string(helm.ApplyMethodServerSideApply)
	}
	a.next.Info = &helm.Info{
		FirstDeployed: a.item.Now, LastDeployed: a.item.Now, Notes: rendered.Notes,
		Status: common.StatusPendingInstall, Description: "Initial install underway",
	}
	if a.from != nil {
		a.next.Info.FirstDeployed = a.from.Info.FirstDeployed
		a.next.SetStatus(common.StatusPendingUpgrade, "Preparing upgrade")
	}
	return rendered.Values, nil
}

// stages are those of an install or an upgrade.
func (a *attempt) stages(proposal *wire.Proposal, definitions []render.Object) error {
	before, after, done := helm.HookPreInstall, helm.HookPostInstall, "Install complete"
	if a.from != nil {
		before, after, done = helm.HookPreUpgrade, helm.HookPostUpgrade, "Upgrade complete"
	}
	change, err := a.change(a.next, a.from, a.config.Namespace, a.terms.TakeOwnership)
	if err != nil {
		return err
	}
	if a.config.CreateNamespace {
		if err := a.createNamespace(proposal); err != nil {
			return err
		}
	}
	if a.from == nil {
		if err := a.define(proposal, definitions); err != nil {
			return err
		}
	}
	begin, err := a.begin()
	if err != nil {
		return err
	}
	proposal.Stages = append(proposal.Stages, begin)
	if err := a.hooks(proposal, a.next, before); err != nil {
		return err
	}
	change.stages(proposal, how(a.serverSide, a.terms.Force && a.from != nil))
	if a.terms.Waits() {
		wait(proposal, change.objects)
	}
	if err := a.hooks(proposal, a.next, after); err != nil {
		return err
	}
	a.next.SetStatus(common.StatusDeployed, done)
	finish, err := a.finish(a.superseded())
	if err != nil {
		return err
	}
	proposal.Stages = append(proposal.Stages, finish)
	if checks := a.readiness(change.objects); len(checks) > 0 {
		proposal.Stages = append(proposal.Stages, wire.Stage{Name: stageReady, Gate: wire.Gate{Ready: checks}})
	}
	return nil
}

// superseded are the revisions whose place the new one takes.
func (a *attempt) superseded() []*release.Revision {
	var all []*release.Revision
	for _, revision := range a.others {
		if revision == a.base || revision.Status == common.StatusDeployed {
			all = append(all, revision)
		}
	}
	return all
}

func wait(proposal *wire.Proposal, objects []render.Object) {
	if checks := waiting(objects); len(checks) > 0 {
		proposal.Stages = append(proposal.Stages, wire.Stage{Name: stageWait, Gate: wire.Gate{Ready: checks}})
	}
}

func (a *attempt) createNamespace(proposal *wire.Proposal) error {
	key := wire.Key{APIVersion: "v1", Kind: "Namespace", Name: a.config.Namespace}
	live, err := a.live([]wire.Key{key})
	if err != nil {
		return err
	}
	if _, exists := live[key]; !exists {
		proposal.Stages = append(proposal.Stages, wire.Stage{Name: "namespace", Writes: []wire.Write{a.namespace()}})
	}
	return nil
}

// define writes the definitions of crds/ that do not exist. Helm never changes and never deletes them.
func (a *attempt) define(proposal *wire.Proposal, definitions []render.Object) error {
	keys := []wire.Key{}
	for _, definition := range definitions {
		keys = append(keys, definition.Key())
	}
	live, err := a.live(keys)
	if err != nil {
		return err
	}
	stage := wire.Stage{Name: "crds"}
	for _, definition := range definitions {
		if _, exists := live[definition.Key()]; !exists {
			stage.Writes = append(stage.Writes, wire.Write{Object: definition.Content, How: wire.Create, Owned: wire.Kept})
		}
	}
	if len(stage.Writes) > 0 {
		proposal.Stages = append(proposal.Stages, stage)
	}
	return nil
}

// begin stores the revision as pending, and heals and forgets older ones. Whoever else stores a revision of this number
// first has the release: the gate looks who it was.
func (a *attempt) begin() (wire.Stage, error) {
	secret, err := a.secrets.Secret(a.next, a.item.Job, a.created, time.Time{})
	if err != nil {
		return wire.Stage{}, err
	}
	key := release.SecretKey(a.next.Namespace, a.next.Name, a.next.Version)
	stage := wire.Stage{Name: stageBegin, Writes: []wire.Write{{Object: secret, How: wire.Create, Owned: wire.Kept}}}
	if a.others.Find(a.next.Version) != nil {
		// Its own attempt that was broken off.
		stage.Writes[0].How = wire.Replace
	}
	for _, revision := range a.others {
		if revision.Status.IsPending() && revision.Number != a.next.Version {
			healed, err := a.stored(revision, common.StatusFailed, "Broken off: the operation did not come to its end")
			if err != nil {
				return wire.Stage{}, err
			}
			stage.Writes = append(stage.Writes, healed)
		}
	}
	for _, revision := range a.others.Excess(mostRevisions) {
		if revision != a.base {
			stage.Removals = append(stage.Removals, wire.Removal{Key: revision.Key})
		}
	}
	stage.Gate.Ready = []wire.Readiness{{
		Name: fmt.Sprintf("nobody else works on the release %s", a.next.Name), Timeout: 1,
		Scope: wire.Scope{Keys: []wire.Key{key}},
		Rule: wire.Rule{
			{Path: "metadata.annotations['" + release.JobAnnotation + "']", Operator: "==", Values: []any{a.item.Job}},
			{Path: "metadata.annotations['" + release.OwnerAnnotation + "']", Operator: "==", Values: []any{a.mark()}},
		},
	}}
	return stage, nil
}

// finish stores the revision as it is now, and others as superseded.
func (a *attempt) finish(superseded []*release.Revision) (wire.Stage, error) {
	stage := wire.Stage{Name: stageFinish}
	for _, revision := range superseded {
		write, err := a.stored(revision, common.StatusSuperseded, "")
		if err != nil {
			return wire.Stage{}, err
		}
		stage.Writes = append(stage.Writes, write)
	}
	secret, err := a.secrets.Secret(a.next, a.item.Job, a.created, a.item.Now)
	if err != nil {
		return wire.Stage{}, err
	}
	stage.Writes = append(stage.Writes, wire.Write{Object: secret, How: wire.Replace, Owned: wire.Kept})
	return stage, nil
}

// stored is a revision in another state; an empty description leaves what it has.
func (c *call) stored(revision *release.Revision, state common.Status, description string) (wire.Write, error) {
	of, err := revision.Release()
	if err != nil {
		return wire.Write{}, err
	}
	if description == "" {
		description = of.Info.Description
	}
	of.SetStatus(state, description)
	secret, err := c.secrets.Secret(of, revision.Job, revision.Created, c.item.Now)
	return wire.Write{Object: secret, How: wire.Replace, Owned: wire.Kept}, err
}
