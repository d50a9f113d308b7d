package plan

import (
	"reflect"
	"testing"

	helm "helm.sh/helm/v4/pkg/release/v1"

	"orangery.dev/helm/wire"
)

const checking = "pre-upgrade hook Job check (app/templates/check.yaml)"

var checked = wire.Key{APIVersion: "batch/v1", Kind: "Job", Namespace: "demo", Name: "check"}

// policed is a chart with a hook of these policies.
func policed(policies string) map[string]string {
	more := ""
	if policies != "" {
		more = `, "helm.sh/hook-delete-policy": "` + policies + `"`
	}
	return charted(map[string]string{"templates/check.yaml": hook("Job", "check", "pre-install,pre-upgrade", more)})
}

func TestC121AHookThatNoPolicyDeletesBeforeIsCreated(t *testing.T) {
	w := newWorld(t)
	for _, policies := range []string{"hook-failed", "hook-succeeded", "hook-succeeded,hook-failed"} {
		w.deploy(policed("before-hook-creation"), nil)
		proposal := w.plan(w.item(policed(policies), nil))
		create := stage(t, proposal, checking+": create")
		run := "job-" + string(rune('0'+w.jobs)) + "/" + string(rune('0'+w.jobs)) + "/pre-upgrade"
		rule := wire.Rule{{Path: "metadata.annotations['orangery.dev/hook-run']", Operator: "==", Values: []any{run}}}
		if len(create.Removals) != 0 || create.Writes[0].How.Word != "create" ||
			texts(create.Writes[0].Object, "annotations")[runAnnotation] != run || !reflect.DeepEqual(create.Gate.Ready[0].Rule, rule) ||
			!reflect.DeepEqual(create.Gate.Ready[0].Scope.Keys, []wire.Key{checked}) {
			t.Errorf("%s: it is created by %+v", policies, create)
		}
		if wait := stage(t, proposal, checking); len(wait.Writes) != 0 || !reflect.DeepEqual(wait.Gate.Completed, []wire.Key{checked}) {
			t.Errorf("%s: it is waited for in %+v", policies, wait)
		}
		w.carryOut(proposal, "")
	}
}

func TestC121AHookIsDeletedBeforeWhereAPolicySaysSoOrNoneIsGiven(t *testing.T) {
	w := newWorld(t)
	w.deploy(policed(""), nil)
	for _, policies := range []string{"", "before-hook-creation", "hook-failed,before-hook-creation"} {
		proposal := w.deploy(policed(policies), nil)
		run := stage(t, proposal, checking)
		if !reflect.DeepEqual(run.Removals, []wire.Removal{{Key: checked}}) || run.Writes[0].How.Word != "replace" {
			t.Errorf("%q: it runs by %+v", policies, run)
		}
	}
}

func TestC121AHookIsAppliedToWhatIsThereWhereHelmDoesSo(t *testing.T) {
	w := newWorld(t)
	w.deploy(policed("hook-failed"), nil)
	proposal := w.deploy(policed("hook-failed"), map[string]any{"helmDeploymentConfig": map[string]any{
		"upgrade": map[string]any{"serverSideApply": true}}})
	run := stage(t, proposal, checking)
	if len(run.Removals) != 0 || run.Writes[0].How.Manager != fieldManager {
		t.Errorf("it runs by %+v", run)
	}
}

func TestC121AHookThatIsThereFailsTheReleaseAndStays(t *testing.T) {
	w := newWorld(t)
	files := policed("hook-failed")
	w.deploy(files, nil)
	proposal := w.plan(w.item(files, nil))
	failure := w.carryOut(proposal, checking+": create")
	failure.Key, failure.Problem = &checked, wire.Problem{Code: "ERR_TIMEOUT", Message: "check nothing of this name was there did not hold"}
	failed := w.recover(proposal, failure, "")
	expected := wire.Problem{Code: wire.ConfigurationProblem, Message: checking + ": Job demo/check exists already, and none of its " +
		"policies deletes it before the hook runs; delete it by hand, or add before-hook-creation to its annotation helm.sh/hook-delete-policy"}
	if *failed.Next.Fail != expected {
		t.Errorf("the item fails with %+v", failed.Next.Fail)
	}
	sameTexts(t, w.left(), "Job demo/check")
	sameTexts(t, w.revisions(), "sh.helm.release.v1.rel.v1 deployed: Install complete",
		`sh.helm.release.v1.rel.v2 failed: Upgrade "rel" failed: `+expected.Message)
	if ran := w.revision(2).Hooks[0].LastRun.Phase; ran != helm.HookPhaseFailed {
		t.Errorf("the hook is %s", ran)
	}
}

func TestC121AHookThatCannotBeCreatedForAnotherReasonSaysWhy(t *testing.T) {
	w := newWorld(t)
	proposal := w.fail(policed("hook-failed"), nil, "pre-install hook Job check (app/templates/check.yaml): create")
	if told := proposal.Next.Fail.Message; told != "pre-install hook Job check (app/templates/check.yaml): create: it has failed" {
		t.Errorf("it says %s", told)
	}
}
