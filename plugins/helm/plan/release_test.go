package plan

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"

	"orangery.dev/helm/release"
	"orangery.dev/helm/wire"
)

const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions: [{name: v1, served: true, storage: true}]
`

func full() map[string]string {
	return charted(map[string]string{
		"crds/thing.yaml":        definition,
		"templates/NOTES.txt":    "{{ .Release.Name }} has revision {{ .Release.Revision }}",
		"templates/role.yaml":    "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: role, namespace: ignored}\n",
		"templates/config.yaml":  configMap("config", "") + "---\n" + configMap("second", ""),
		"templates/deploy.yaml":  "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: {{ .Values.replicas | default 1 }}}\n",
		"templates/thing.yaml":   "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: thing}\n",
		"templates/late.yaml":    hook("Job", "late", "pre-install,pre-upgrade", `, "helm.sh/hook-weight": "5"`),
		"templates/early.yaml":   hook("ConfigMap", "early", "pre-install", `, "helm.sh/hook-weight": "-5", "helm.sh/hook-delete-policy": "hook-succeeded"`),
		"templates/after.yaml":   hook("Job", "after", "post-install,post-upgrade", `, "helm.sh/hook-delete-policy": "hook-succeeded,hook-failed"`),
		"templates/removal.yaml": hook("Job", "removal", "pre-delete", ""),
	})
}

func TestAnInstallGoesInTheOrderOfHelm(t *testing.T) {
	w := newWorld(t)
	proposal := w.deploy(full(), nil)
	sameTexts(t, names(proposal),
		"crds", "begin release",
		"pre-install hook ConfigMap early (app/templates/early.yaml): create", "pre-install hook Job late (app/templates/late.yaml)",
		"pre-install hooks: delete what has succeeded",
		"write ConfigMap", "write ClusterRole", "write Deployment", "write Thing",
		"post-install hook Job after (app/templates/after.yaml): create", "post-install hook Job after (app/templates/after.yaml)",
		"post-install hooks: delete what has succeeded",
		"finish release", "readiness")
	late := stage(t, proposal, "pre-install hook Job late (app/templates/late.yaml)")
	key := wire.Key{APIVersion: "batch/v1", Kind: "Job", Namespace: "demo", Name: "late"}
	if fmt.Sprint(late.Removals) != fmt.Sprint([]wire.Removal{{Key: key}}) || !slices.Equal(late.Gate.Completed, []wire.Key{key}) {
		t.Errorf("the hook runs as %+v", late)
	}
	sameTexts(t, w.left(), "ClusterRole role", "ConfigMap demo/config", "ConfigMap demo/second",
		"CustomResourceDefinition things.example.org", "Deployment demo/web", "Job demo/late", "Thing demo/thing")
	sameTexts(t, w.revisions(), "sh.helm.release.v1.rel.v1 deployed: Install complete")
	of := w.revision(1)
	if of.Info.Notes != "rel has revision 1" || of.ApplyMethod != "csa" || len(of.Hooks) != 4 || !of.Info.FirstDeployed.Equal(now.Add(time.Hour)) {
		t.Errorf("the release is %+v", of.Info)
	}
	for _, hook := range of.Hooks {
		ran := hook.Name != "removal"
		if ran != (hook.LastRun.Phase == helm.HookPhaseSucceeded) {
			t.Errorf("the hook %s is %s", hook.Name, hook.LastRun.Phase)
		}
	}
	web := w.objects[wire.Key{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: "web"}]
	if texts(web, "labels")[managedBy] != "Helm" || texts(web, "annotations")[releaseName] != "rel" || texts(web, "annotations")[releaseNamespace] != "demo" {
		t.Errorf("the object has no marks: %v", web["metadata"])
	}
}

func TestTheFirstStageTellsWhoHasTheRelease(t *testing.T) {
	proposal := newWorld(t).deploy(full(), nil)
	begin := stage(t, proposal, "begin release")
	if len(begin.Writes) != 1 || begin.Writes[0].How.Word != "create" || texts(begin.Writes[0].Object, "labels")["status"] != "pending-install" {
		t.Errorf("the revision is stored by %+v", begin.Writes)
	}
	rule := begin.Gate.Ready[0].Rule
	expected := wire.Rule{
		{Path: "metadata.annotations['orangery.dev/job']", Operator: "==", Values: []any{"job-1"}},
		{Path: "metadata.annotations['orangery.dev/owner']", Operator: "==", Values: []any{"items/item/uid"}},
	}
	if !reflect.DeepEqual(rule, expected) {
		t.Errorf("it is seen to be ours by %+v", rule)
	}
}

func TestAnUpgradeMergesDeletesAndSupersedes(t *testing.T) {
	w := newWorld(t)
	w.deploy(charted(map[string]string{
		"templates/a.yaml":    configMap("a", ""),
		"templates/gone.yaml": configMap("gone", ""),
		"templates/kept.yaml": configMap("kept", `"helm.sh/resource-policy": keep`),
	}), nil)
	proposal := w.deploy(charted(map[string]string{"templates/a.yaml": configMap("a", "x: y"), "templates/new.yaml": configMap("new", "")}), nil)
	sameTexts(t, names(proposal), "begin release", "write ConfigMap", "delete what left the chart", "finish release")
	written := stage(t, proposal, "write ConfigMap")
	if written.Writes[0].How.Word != "merge" || written.Writes[0].How.Earlier["metadata"].(map[string]any)["name"] != "a" {
		t.Errorf("what was there is written by %+v", written.Writes[0].How)
	}
	if written.Writes[1].How.Word != "replace" {
		t.Errorf("what is new is written by %+v", written.Writes[1].How)
	}
	sameTexts(t, w.left(), "ConfigMap demo/a", "ConfigMap demo/kept", "ConfigMap demo/new")
	sameTexts(t, w.revisions(),
		"sh.helm.release.v1.rel.v1 superseded: Install complete", "sh.helm.release.v1.rel.v2 deployed: Upgrade complete")
}

func TestWhatIsMarkedAsKeptSinceStaysInEverySpelling(t *testing.T) {
	for _, policy := range []string{"keep", "Keep", " KEEP "} {
		w := newWorld(t)
		both := charted(map[string]string{"templates/a.yaml": configMap("a", ""), "templates/left.yaml": configMap("left", "")})
		w.deploy(both, nil)
		w.keep("left", policy)
		w.deploy(charted(map[string]string{"templates/a.yaml": configMap("a", "x: y")}), nil)
		sameTexts(t, w.left(), "ConfigMap demo/a", "ConfigMap demo/left")
		w.keep("a", policy)
		proposal, err := Uninstall(w, w.again())
		if err != nil {
			t.Fatal(err)
		}
		w.carryOut(proposal, "")
		sameTexts(t, w.left(), "ConfigMap demo/a", "ConfigMap demo/left")
	}
}

func TestForceReplaces(t *testing.T) {
	w := newWorld(t)
	w.deploy(charted(map[string]string{"templates/a.yaml": configMap("a", "")}), nil)
	forced := map[string]any{"helmDeploymentConfig": map[string]any{"upgrade": map[string]any{"force": true}}}
	proposal := w.deploy(charted(map[string]string{"templates/a.yaml": configMap("a", "x: y")}), forced)
	if how := stage(t, proposal, "write ConfigMap").Writes[0].How; how.Word != "replace" {
		t.Errorf("it is written by %+v", how)
	}
}

func TestAReleaseGoesOnWithServerSideApplyAsItBegan(t *testing.T) {
	w := newWorld(t)
	wanted := map[string]any{"helmDeploymentConfig": map[string]any{"install": map[string]any{"serverSideApply": true}}}
	w.deploy(charted(map[string]string{"templates/a.yaml": configMap("a", "")}), wanted)
	proposal := w.deploy(charted(map[string]string{"templates/a.yaml": configMap("a", "x: y")}), nil)
	if how := stage(t, proposal, "write ConfigMap").Writes[0].How; how.Word != "applyAs" || how.Manager != "helm" {
		t.Errorf("it is written by %+v", how)
	}
	if method := w.revision(2).ApplyMethod; method != "ssa" {
		t.Errorf("the release says %s", method)
	}
}

func TestHelmKeepsTenRevisions(t *testing.T) {
	w := newWorld(t)
	for range 13 {
		w.jobs = 0
		w.deploy(charted(map[string]string{"templates/a.yaml": configMap("a", "")}), nil)
		for key, object := range w.objects {
			// As if each had been another job's.
			if strings.HasPrefix(key.Name, "sh.helm") {
				object["metadata"].(map[string]any)["annotations"] = map[string]any{release.JobAnnotation: key.Name}
			}
		}
	}
	told := w.revisions()
	if len(told) != 10 || !strings.HasPrefix(told[0], "sh.helm.release.v1.rel.v4 superseded") || !strings.HasPrefix(told[9], "sh.helm.release.v1.rel.v13 deployed") {
		t.Errorf("there are %q", told)
	}
}

// strand leaves a revision behind as if its operation had been broken off.
func (w *world) strand(number int, state common.Status, job string, at time.Time) {
	of := &helm.Release{
		Name: "rel", Namespace: "demo", Version: number, Chart: w.revisionOrNone(), Info: &helm.Info{Status: state, Description: "stranded"},
	}
	secret, err := new(release.Secrets).Secret(of, job, at, time.Time{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.objects[keyOf(secret)] = throughJSON(w.t, secret)
}

func TestWhatIsPendingFromACrashIsHealed(t *testing.T) {
	w := newWorld(t)
	plain := charted(map[string]string{"templates/a.yaml": configMap("a", "")})
	w.deploy(plain, nil)
	w.strand(2, common.StatusPendingUpgrade, "another job", now)
	w.deploy(plain, nil)
	sameTexts(t, w.revisions(),
		"sh.helm.release.v1.rel.v1 superseded: Install complete",
		"sh.helm.release.v1.rel.v2 failed: Broken off: the operation did not come to its end",
		"sh.helm.release.v1.rel.v3 deployed: Upgrade complete")
}

func TestAnInstallThatWasBrokenOffIsAnInstallAgain(t *testing.T) {
	w := newWorld(t)
	w.strand(1, common.StatusPendingInstall, "another job", now)
	proposal := w.deploy(full(), nil)
	if how := stage(t, proposal, "begin release").Writes[0].How; how.Word != "replace" {
		t.Errorf("the revision is stored by %+v", how)
	}
	stage(t, proposal, "pre-install hook Job late (app/templates/late.yaml)")
	sameTexts(t, w.revisions(), "sh.helm.release.v1.rel.v1 deployed: Install complete")
}

func TestAnOperationOfSomebodyElseIsWaitedForAndInTheEndTakenForBrokenOff(t *testing.T) {
	w := newWorld(t)
	plain := charted(map[string]string{"templates/a.yaml": configMap("a", "")})
	w.deploy(plain, nil)
	item := w.item(plain, nil)
	w.strand(2, common.StatusPendingUpgrade, "", item.Now.Add(-time.Minute))
	_, err := Plan(w, item)
	var fault *wire.Fault
	if !errors.As(err, &fault) || fault.Kind != wire.Later || !strings.Contains(fault.Error(), "the release rel is pending-upgrade since") {
		t.Errorf("it is answered %v", err)
	}
	item.Now = item.Now.Add(10 * time.Minute)
	if _, err := Plan(w, item); err != nil {
		t.Errorf("it is answered %v", err)
	}
}

func TestPlanningAJobAgainMakesNoFurtherRevision(t *testing.T) {
	w := newWorld(t)
	plain := charted(map[string]string{"templates/a.yaml": configMap("a", "")})
	w.deploy(plain, nil)
	w.carryOut(w.plan(w.again()), "")
	sameTexts(t, w.revisions(), "sh.helm.release.v1.rel.v1 deployed: Install complete")
}

func TestObjectsOfOthersAreNotTaken(t *testing.T) {
	w := newWorld(t)
	key := wire.Key{APIVersion: "v1", Kind: "ConfigMap", Namespace: "demo", Name: "a"}
	w.objects[key] = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "demo"}}
	plain := charted(map[string]string{"templates/a.yaml": configMap("a", "")})
	if told := w.refused(plain, nil); !strings.HasPrefix(told, "chart app: ConfigMap demo/a exists and does not belong to the release rel (its label app.kubernetes.io/managed-by is \"\"") {
		t.Errorf("it says %s", told)
	}
	taken := map[string]any{"helmDeploymentConfig": map[string]any{"install": map[string]any{"takeOwnership": true}}}
	proposal := w.deploy(plain, taken)
	if how := stage(t, proposal, "write ConfigMap").Writes[0].How; how.Word != "merge" {
		t.Errorf("it is written by %+v", how)
	}
}

func TestAnUninstallRunsHooksAndLeavesWhatIsKept(t *testing.T) {
	w := newWorld(t)
	files := full()
	files["app/templates/kept.yaml"] = configMap("kept", `"helm.sh/resource-policy": keep`)
	w.deploy(files, nil)
	w.deploy(files, nil)
	proposal, err := Uninstall(w, w.again())
	if err != nil {
		t.Fatal(err)
	}
	w.carryOut(proposal, "")
	sameTexts(t, names(proposal), "begin uninstall", "pre-delete hook Job removal (app/templates/removal.yaml)",
		"delete Deployment", "delete ClusterRole", "delete ConfigMap", "delete Thing", "delete release")
	sameTexts(t, w.left(), "ConfigMap demo/kept", "CustomResourceDefinition things.example.org", "Job demo/late", "Job demo/removal")
	sameTexts(t, w.revisions())
}

func TestAReleaseThatDoesNotExistIsAway(t *testing.T) {
	w := newWorld(t)
	proposal, err := Uninstall(w, w.item(full(), nil))
	if err != nil || len(proposal.Stages) != 0 {
		t.Errorf("it is answered %+v, %v", proposal, err)
	}
}

func TestAReleaseUnderAnotherNameReplacesTheOldOne(t *testing.T) {
	w := newWorld(t)
	plain := charted(map[string]string{"templates/a.yaml": configMap("{{ .Release.Name }}", "")})
	w.deploy(plain, nil)
	w.deploy(plain, map[string]any{"name": "other"})
	sameTexts(t, w.left(), "ConfigMap demo/other")
	sameTexts(t, w.revisions())
}

func TestWhatTheNewReleaseWritesUnderAnotherVersionStaysWhenTheOldOneGoes(t *testing.T) {
	scaler := func(version string) map[string]string {
		return charted(map[string]string{
			"templates/a.yaml": configMap("a", ""),
			"templates/b.yaml": "apiVersion: autoscaling/" + version + "\nkind: HorizontalPodAutoscaler\nmetadata: {name: b}\n",
		})
	}
	taken := map[string]any{"install": map[string]any{"takeOwnership": true}}
	for _, next := range []map[string]any{
		{"name": "other", "helmDeploymentConfig": taken},
		{"helmDeployment": false},
	} {
		w := newWorld(t)
		w.deploy(scaler("v1"), nil)
		proposal := w.deploy(scaler("v2"), next)
		for _, stage := range proposal.Stages {
			for _, removal := range stage.Removals {
				if removal.Key.Kind == "HorizontalPodAutoscaler" {
					t.Errorf("%v: stage %s removes %s", next, stage.Name, removal.Key)
				}
			}
		}
	}
}
