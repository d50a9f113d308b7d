package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"

	"orangery.dev/helm/release"
	"orangery.dev/helm/wire"
)

// recover is what follows a stage that has failed: the revision is stored as failed, and an atomic one is rolled back.
// The item fails in the end.
func (c *call) recover() (*wire.Proposal, error) {
	var at checkpoint
	if err := json.Unmarshal(c.item.Checkpoint, &at); err != nil {
		return nil, wire.Wrong("", "the checkpoint of the release %s cannot be read: %s", c.config.Name, err)
	}
	if err := c.look(); err != nil {
		return nil, err
	}
	history, err := release.Read(c.host, c.config.Namespace, c.config.Name)
	if err != nil {
		return nil, err
	}
	cause := c.cause()
	proposal := &wire.Proposal{Next: wire.Next{Fail: &cause}}
	revision := history.Find(at.Revision)
	if revision != nil && revision.Status != common.StatusSuperseded && c.another(revision) {
		cause.Message = shared(revision, c.config.Name)
		return proposal, nil
	}
	if revision == nil || revision.Job != c.item.Job || revision.Status == common.StatusDeployed {
		// Nothing has begun, somebody else has, or all is deployed and only not ready.
		return proposal, nil
	}
	of, err := revision.Release()
	if err != nil {
		return nil, err
	}
	a := &attempt{call: c, others: history.Without(""), next: of, terms: c.config.Install, created: revision.Created}
	if at.Upgrade {
		a.terms = c.config.Upgrade
	}
	if err := a.fail(proposal, at, cause); err != nil {
		return nil, err
	}
	switch {
	case at.Cause != nil:
		*proposal.Next.Fail = *at.Cause
		proposal.Next.Fail.Message += "; and the rollback has failed too: " + cause.Message
	case a.terms.Atomic && !at.Upgrade:
		err = a.undo(proposal, history)
	case a.terms.Atomic:
		err = a.rollBack(proposal, history, cause)
	}
	return proposal, err
}

// cause is why a stage has failed. A hook that must not be there and is, is told as Helm tells it.
func (c *call) cause() wire.Problem {
	failed, cause := c.item.Failed, c.item.Failed.Problem
	hook, isCreated := strings.CutSuffix(failed.Stage, creation(""))
	if isCreated && failed.Key != nil && cause.Code == "ERR_TIMEOUT" {
		cause.Code = wire.ConfigurationProblem
		cause.Message = fmt.Sprintf("%s: %s exists already, and none of its policies deletes it before the hook runs; delete it by hand, or "+
			"add before-hook-creation to its annotation helm.sh/hook-delete-policy", hook, failed.Key)
		return cause
	}
	cause.Message = fmt.Sprintf("%s: %s", failed.Stage, cause.Message)
	return cause
}

// fail stores the revision as failed, after the policies of a failed hook.
func (a *attempt) fail(proposal *wire.Proposal, at checkpoint, cause wire.Problem) error {
	removals, err := a.failed(a.next, a.item.Failed.Stage)
	if err != nil {
		return err
	}
	operation := map[bool]string{true: "Upgrade", false: "Release"}[at.Upgrade]
	if at.Cause != nil {
		operation = "Rollback"
	}
	a.next.SetStatus(common.StatusFailed, fmt.Sprintf("%s %q failed: %s", operation, a.next.Name, cause.Message))
	stage, err := a.finish(nil)
	if err != nil {
		return err
	}
	stage.Name, stage.Removals = "fail release", removals
	proposal.Stages = append(proposal.Stages, stage)
	return nil
}

// undo takes a failed install away.
func (a *attempt) undo(proposal *wire.Proposal, history release.History) error {
	stages, err := a.uninstall(history)
	proposal.Stages = append(proposal.Stages, stages...)
	proposal.Next.Fail.Message += "; the release is atomic and was uninstalled"
	return err
}

// rollBack goes back to the last revision that was deployed, as a new revision (action.Rollback of Helm).
func (a *attempt) rollBack(proposal *wire.Proposal, history release.History, cause wire.Problem) error {
	var before *release.Revision
	for _, revision := range history {
		if revision.Number != a.next.Version &&
			(revision.Status == common.StatusDeployed || revision.Status == common.StatusSuperseded) {
			before = revision
		}
	}
	if before == nil {
		proposal.Next.Fail.Message += "; the release is atomic, and no revision of it was ever deployed to which it could go back"
		return nil
	}
	to, err := before.Release()
	if err != nil {
		return err
	}
	back := &attempt{call: a.call, others: history, from: a.next, terms: a.terms, created: a.item.Now}
	back.next = &helm.Release{
		Name: to.Name, Namespace: to.Namespace, Chart: to.Chart, Config: to.Config, Manifest: to.Manifest, Hooks: to.Hooks,
		Labels: to.Labels, ApplyMethod: to.ApplyMethod, Version: a.next.Version + 1,
		Info: &helm.Info{
			FirstDeployed: a.next.Info.FirstDeployed, LastDeployed: a.item.Now, Notes: to.Info.Notes,
			Status: common.StatusPendingRollback, Description: fmt.Sprintf("Rollback to %d", before.Number),
		},
	}
	back.serverSide = to.ApplyMethod == string(helm.ApplyMethodServerSideApply)
	if err := back.rollBackStages(proposal); err != nil {
		return err
	}
	proposal.Next.Fail.Message += fmt.Sprintf("; the release is atomic and was rolled back to revision %d", before.Number)
	proposal.Recover, err = json.Marshal(checkpoint{Revision: back.next.Version, Upgrade: true, Cause: &cause})
	return err
}

func (a *attempt) rollBackStages(proposal *wire.Proposal) error {
	change, err := a.change(a.next, a.from, a.next.Namespace, true)
	if err != nil {
		return err
	}
	secret, err := a.secrets.Secret(a.next, a.item.Job, a.created, a.created)
	if err != nil {
		return err
	}
	proposal.Stages = append(proposal.Stages, wire.Stage{
		Name: "begin rollback", Writes: []wire.Write{{Object: secret, How: wire.Replace, Owned: wire.Kept}},
	})
	if err := a.hooks(proposal, a.next, helm.HookPreRollback); err != nil {
		return err
	}
	change.stages(proposal, how(a.serverSide, a.terms.Force))
	wait(proposal, change.objects)
	if err := a.hooks(proposal, a.next, helm.HookPostRollback); err != nil {
		return err
	}
	var deployed []*release.Revision
	for _, revision := range a.others {
		if revision.Status == common.StatusDeployed {
			deployed = append(deployed, revision)
		}
	}
	a.next.Info.Status = common.StatusDeployed
	finish, err := a.finish(deployed)
	finish.Name = "finish rollback"
	proposal.Stages = append(proposal.Stages, finish)
	return err
}

// replaced adds what takes away the releases that the item had under another name or elsewhere, or when it is none any more,
// and notes in the status which releases the item has from now on: `now`, and those until they are gone. Their objects go
// with the inventory; their hooks run, and their revisions go.
func (c *call) replaced(proposal *wire.Proposal, now *standby) error {
	told := newStatus()
	told.Release = now
	var written []wire.Key
	for _, stage := range proposal.Stages {
		for _, write := range stage.Writes {
			written = append(written, keyOf(write.Object))
		}
	}
	for _, old := range c.standing() {
		if now != nil && old.is(now.Name, now.Namespace) {
			continue
		}
		history, err := c.left(old)
		if err != nil {
			return err
		}
		if history.Last() == nil {
			continue
		}
		told.Previous = append(told.Previous, old.standby)
		stages, err := c.uninstall(history)
		if err != nil {
			return err
		}
		for _, stage := range stages {
			// What the new release has taken over stays, under whatever version of its kind.
			stage.Removals = slices.DeleteFunc(stage.Removals, func(removal wire.Removal) bool {
				return slices.ContainsFunc(written, removal.Key.SameObject)
			})
			stage.Name = unused(proposal, "release "+old.Name+": "+stage.Name)
			proposal.Stages = append(proposal.Stages, stage)
		}
	}
	proposal.Status = told
	return nil
}

func keyOf(object map[string]any) wire.Key {
	text := func(fields map[string]any, name string) string { value, _ := fields[name].(string); return value }
	metadata, _ := object["metadata"].(map[string]any)
	return wire.Key{
		APIVersion: text(object, "apiVersion"), Kind: text(object, "kind"),
		Namespace: text(metadata, "namespace"), Name: text(metadata, "name"),
	}
}
