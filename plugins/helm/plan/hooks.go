package plan

import (
	"fmt"
	"slices"

	helm "helm.sh/helm/v4/pkg/release/v1"

	"orangery.dev/helm/render"
	"orangery.dev/helm/wire"
)

// event are the hooks of one point of a release, whatever it is called, in the order in which they run.
func event(of *helm.Release, at ...helm.HookEvent) []*helm.Hook {
	var hooks []*helm.Hook
	for _, hook := range of.Hooks {
		if slices.ContainsFunc(hook.Events, func(event helm.HookEvent) bool { return slices.Contains(at, event) }) {
			if len(hook.DeletePolicies) == 0 {
				hook.DeletePolicies = []helm.HookDeletePolicy{beforeHookCreation}
			}
			hooks = append(hooks, hook)
		}
	}
	byWeight(hooks)
	return hooks
}

// stageOf names the stage of a hook.
func stageOf(at helm.HookEvent, hook *helm.Hook) string {
	return fmt.Sprintf("%s hook %s %s (%s)", at, hook.Kind, hook.Name, hook.Path)
}

// runAnnotation says on a hook that nothing has deleted before which run of it this is: one that is there already is another.
const runAnnotation = "orangery.dev/hook-run"

// creation names the stage that makes a hook which nothing has deleted before.
func creation(stage string) string { return stage + ": create" }

// isMadeOnce tells whether a hook is created and never written over: where no policy deletes it before. Server-side apply is sent
// to whatever is there, as Helm does.
func isMadeOnce(hook *helm.Hook, serverSide bool) bool {
	return !serverSide && !removes(hook, beforeHookCreation)
}

// create is the stage that makes a hook which must not be there. Its gate looks whether it was this run that has made it.
func (c *call) create(of *helm.Release, at helm.HookEvent, name string, objects []render.Object) wire.Stage {
	run := fmt.Sprintf("%s/%d/%s", c.item.Job, of.Version, at)
	stage := wire.Stage{Name: creation(name)}
	var keys []wire.Key
	for _, object := range objects {
		marked := object.Marked(nil, map[string]string{runAnnotation: run})
		stage.Writes = append(stage.Writes, wire.Write{Object: marked.Content, How: wire.Create, Owned: wire.Kept})
		keys = append(keys, object.Key())
	}
	stage.Gate.Ready = []wire.Readiness{{
		Name: "nothing of this name was there", Timeout: 1, Scope: wire.Scope{Keys: keys},
		Rule: wire.Rule{{Path: "metadata.annotations['" + runAnnotation + "']", Operator: "==", Values: []any{run}}},
	}}
	return stage
}

// hooks runs the hooks of one point: each in a stage of its own, jobs and pods to their end.
func (c *call) hooks(proposal *wire.Proposal, of *helm.Release, at helm.HookEvent) error {
	hooks := event(of, at)
	after := wire.Stage{Name: string(at) + " hooks: delete what has succeeded"}
	serverSide := of.ApplyMethod == string(helm.ApplyMethodServerSideApply)
	for _, hook := range hooks {
		objects, err := render.Objects(hook.Manifest, of.Namespace, c.cluster, c.item.Seed)
		if err != nil {
			return err
		}
		stage := wire.Stage{Name: unused(proposal, stageOf(at, hook))}
		madeOnce := isMadeOnce(hook, serverSide)
		if madeOnce {
			proposal.Stages = append(proposal.Stages, c.create(of, at, stage.Name, objects))
		}
		for _, object := range objects {
			key := object.Key()
			if removes(hook, beforeHookCreation) {
				stage.Removals = append(stage.Removals, wire.Removal{Key: key})
			}
			if removes(hook, helm.HookSucceeded) {
				after.Removals = slices.Insert(after.Removals, 0, wire.Removal{Key: key})
			}
			if !madeOnce {
				// Helm leaves hooks where they are: only their policies delete them.
				write := wire.Write{Object: object.Content, How: how(serverSide, false)(object, nil), Owned: wire.Kept}
				stage.Writes = append(stage.Writes, write)
			}
			if runs(key) {
				stage.Gate.Completed = append(stage.Gate.Completed, key)
			}
		}
		if !madeOnce || !stage.Gate.IsOpen() {
			proposal.Stages = append(proposal.Stages, stage)
		}
		hook.LastRun = helm.HookExecution{StartedAt: c.item.Now, CompletedAt: c.item.Now, Phase: helm.HookPhaseSucceeded}
	}
	if len(after.Removals) > 0 {
		proposal.Stages = append(proposal.Stages, after)
	}
	return nil
}

// removes tells whether a policy of a hook deletes it. Definitions of kinds are never deleted: all their objects would go.
func removes(hook *helm.Hook, policy helm.HookDeletePolicy) bool {
	return hook.Kind != definitionOfAKind && slices.Contains(hook.DeletePolicies, policy)
}

// runs tells whether an object comes to an end.
func runs(key wire.Key) bool {
	return key.Group() == "batch" && key.Kind == "Job" || key.Group() == "" && key.Kind == "Pod"
}

// failed are the removals after a hook has failed: of itself, and of those before it.
func (c *call) failed(of *helm.Release, stage string) ([]wire.Removal, error) {
	for _, at := range []helm.HookEvent{
		helm.HookPreInstall, helm.HookPostInstall, helm.HookPreUpgrade, helm.HookPostUpgrade, helm.HookPreRollback, helm.HookPostRollback,
	} {
		hooks := event(of, at)
		for i, hook := range hooks {
			name := stageOf(at, hook)
			if stage != name && stage != creation(name) {
				continue
			}
			hook.LastRun = helm.HookExecution{StartedAt: c.item.Now, CompletedAt: c.item.Now, Phase: helm.HookPhaseFailed}
			if stage != name {
				// Helm deletes nothing where a hook could not be created: what is there is another one.
				return nil, nil
			}
			return c.removals(of, hooks[:i], hook)
		}
	}
	return nil, nil
}

func (c *call) removals(of *helm.Release, before []*helm.Hook, failed *helm.Hook) ([]wire.Removal, error) {
	var removals []wire.Removal
	add := func(hook *helm.Hook, policy helm.HookDeletePolicy) error {
		if !removes(hook, policy) {
			return nil
		}
		objects, err := render.Objects(hook.Manifest, of.Namespace, c.cluster, c.item.Seed)
		for _, object := range objects {
			removals = append(removals, wire.Removal{Key: object.Key()})
		}
		return err
	}
	if err := add(failed, helm.HookFailed); err != nil {
		return nil, err
	}
	for _, hook := range before {
		if err := add(hook, helm.HookSucceeded); err != nil {
			return nil, err
		}
	}
	return removals, nil
}
