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
		for _, object := range objects {
			key := object.Key()
			if removes(hook, beforeHookCreation) {
				stage.Removals = append(stage.Removals, wire.Removal{Key: key})
			}
			if removes(hook, helm.HookSucceeded) {
				after.Removals = slices.Insert(after.Removals, 0, wire.Removal{Key: key})
			}
			// Helm leaves hooks where they are: only their policies delete them.
			stage.Writes = append(stage.Writes, wire.Write{Object: object.Content, How: how(serverSide, false)(object, nil), Owned: wire.Kept})
			if runs(key) {
				stage.Gate.Completed = append(stage.Gate.Completed, key)
			}
		}
		proposal.Stages = append(proposal.Stages, stage)
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
			if stageOf(at, hook) != stage {
				continue
			}
			hook.LastRun = helm.HookExecution{StartedAt: c.item.Now, CompletedAt: c.item.Now, Phase: helm.HookPhaseFailed}
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
