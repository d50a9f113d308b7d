package plan

import (
	"strings"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"orangery.dev/helm/wire"
)

// revisionOrNone is some chart for a revision.
func (w *world) revisionOrNone() *chart.Chart {
	return &chart.Chart{Metadata: &chart.Metadata{Name: "app", Version: "1.2.3", APIVersion: "v2"}}
}

func atomic(operation string) map[string]any {
	return map[string]any{"helmDeploymentConfig": map[string]any{operation: map[string]any{"atomic": true}}}
}

func TestAFailedHookFailsTheReleaseAndGoesByItsPolicy(t *testing.T) {
	w := newWorld(t)
	proposal := w.fail(full(), nil, "post-install hook Job after (app/templates/after.yaml)")
	sameTexts(t, names(proposal), "fail release")
	sameTexts(t, w.revisions(), `sh.helm.release.v1.rel.v1 failed: Release "rel" failed: post-install hook Job after (app/templates/after.yaml): it has failed`)
	if _, exists := w.objects[wire.Key{APIVersion: "batch/v1", Kind: "Job", Namespace: "demo", Name: "after"}]; exists {
		t.Error("the failed hook is still there")
	}
	expected := wire.Problem{Code: "ERR_TEST", Message: "post-install hook Job after (app/templates/after.yaml): it has failed"}
	if *proposal.Next.Fail != expected {
		t.Errorf("the item fails with %+v", proposal.Next.Fail)
	}
}

func TestAnAtomicInstallIsTakenAway(t *testing.T) {
	w := newWorld(t)
	proposal := w.fail(full(), atomic("install"), "write Deployment")
	sameTexts(t, w.left(), "CustomResourceDefinition things.example.org", "Job demo/late", "Job demo/removal")
	sameTexts(t, w.revisions())
	if !strings.HasSuffix(proposal.Next.Fail.Message, "it has failed; the release is atomic and was uninstalled") {
		t.Errorf("it says %s", proposal.Next.Fail.Message)
	}
}

func two() (map[string]string, map[string]string) {
	first := charted(map[string]string{"templates/a.yaml": configMap("a", ""), "templates/old.yaml": configMap("old", "")})
	second := charted(map[string]string{
		"templates/a.yaml": configMap("a", "x: y"), "templates/new.yaml": configMap("new", ""),
		"templates/hook.yaml": hook("Job", "check", "post-upgrade", ""),
	})
	return first, second
}

func TestAnAtomicUpgradeIsRolledBack(t *testing.T) {
	w := newWorld(t)
	first, second := two()
	w.deploy(first, nil)
	proposal := w.fail(second, atomic("upgrade"), "post-upgrade hook Job check (app/templates/hook.yaml)")
	sameTexts(t, names(proposal), "fail release", "begin rollback", "write ConfigMap", "delete what left the chart", "finish rollback")
	sameTexts(t, w.revisions(),
		"sh.helm.release.v1.rel.v1 superseded: Install complete",
		`sh.helm.release.v1.rel.v2 failed: Upgrade "rel" failed: post-upgrade hook Job check (app/templates/hook.yaml): it has failed`,
		"sh.helm.release.v1.rel.v3 deployed: Rollback to 1")
	sameTexts(t, w.left(), "ConfigMap demo/a", "ConfigMap demo/old", "Job demo/check")
	if !strings.HasSuffix(proposal.Next.Fail.Message, "the release is atomic and was rolled back to revision 1") {
		t.Errorf("it says %s", proposal.Next.Fail.Message)
	}
}

func TestARollbackThatFailsTellsBoth(t *testing.T) {
	w := newWorld(t)
	first, second := two()
	w.deploy(first, nil)
	proposal := w.plan(w.item(second, atomic("upgrade")))
	failure := w.carryOut(proposal, "write ConfigMap")
	proposal = w.recover(proposal, failure, "write ConfigMap")
	sameTexts(t, names(proposal), "fail release")
	told := w.revisions()
	if len(told) != 3 || told[2] != `sh.helm.release.v1.rel.v3 failed: Rollback "rel" failed: write ConfigMap: it has failed` {
		t.Errorf("there are %q", told)
	}
	if proposal.Next.Fail.Message != "write ConfigMap: it has failed; and the rollback has failed too: write ConfigMap: it has failed" {
		t.Errorf("it says %s", proposal.Next.Fail.Message)
	}
}

func TestWhatIsDeployedAndNotReadyStaysDeployed(t *testing.T) {
	w := newWorld(t)
	proposal := w.fail(full(), nil, "readiness")
	sameTexts(t, names(proposal))
	sameTexts(t, w.revisions(), "sh.helm.release.v1.rel.v1 deployed: Install complete")
}

func TestAFailedInstallIsUpgradedByTheNextJob(t *testing.T) {
	w := newWorld(t)
	w.fail(full(), nil, "write Deployment")
	w.deploy(full(), nil)
	told := w.revisions()
	if len(told) != 2 || told[1] != "sh.helm.release.v1.rel.v2 deployed: Upgrade complete" {
		t.Errorf("there are %q", told)
	}
}
