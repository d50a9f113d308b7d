package plan

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/release/common"

	"orangery.dev/helm/release"
	"orangery.dev/helm/wire"
)

func cm(name string) wire.Key {
	return wire.Key{APIVersion: "v1", Kind: "ConfigMap", Namespace: "demo", Name: name}
}

func plain() map[string]string {
	return charted(map[string]string{"templates/a.yaml": configMap("{{ .Release.Name }}", "")})
}

func (w *world) uninstall(item wire.Item) *wire.Proposal {
	w.t.Helper()
	proposal, err := Uninstall(w, item)
	if err != nil {
		w.t.Fatal(err)
	}
	w.carryOut(proposal, "")
	return proposal
}

func TestC114WhereOnlySupersededRevisionsAreLeftItIsAnInstall(t *testing.T) {
	w := newWorld(t)
	w.strand(2, common.StatusSuperseded, "another job", now)
	w.strand(3, common.StatusSuperseded, "another job", now)
	proposal := w.deploy(full(), nil)
	stage(t, proposal, "crds")
	stage(t, proposal, "pre-install hook Job late (app/templates/late.yaml)")
	sameTexts(t, w.revisions(),
		"sh.helm.release.v1.rel.v2 superseded: stranded", "sh.helm.release.v1.rel.v3 superseded: stranded",
		"sh.helm.release.v1.rel.v4 deployed: Install complete")
}

func TestC114WhatAnotherReleaseOrAnotherItemHasTakenOverStays(t *testing.T) {
	names := []string{"a", "left", "release", "item", "stripped"}
	templates := map[string]string{}
	for _, name := range names {
		templates["templates/"+name+".yaml"] = configMap(name, "")
	}
	take := func(w *world) {
		w.annotate(cm("left"), release.OwnerAnnotation, "items/gone/uid")
		w.annotate(cm("release"), releaseName, "other")
		w.objects[cm("item")]["metadata"].(map[string]any)["annotations"] = map[string]any{release.OwnerAnnotation: "items/other/uid"}
		delete(w.objects[cm("stripped")]["metadata"].(map[string]any), "annotations")
	}
	w := newWorld(t)
	w.deploy(charted(templates), nil)
	take(w)
	w.deploy(charted(map[string]string{"templates/a.yaml": configMap("a", "")}), nil)
	sameTexts(t, w.left(), "ConfigMap demo/a", "ConfigMap demo/item", "ConfigMap demo/release")
	w = newWorld(t)
	w.deploy(charted(templates), nil)
	take(w)
	w.uninstall(w.again())
	sameTexts(t, w.left(), "ConfigMap demo/item", "ConfigMap demo/release")
}

func TestC114OfAReleaseThatAnotherItemHasNothingIsWrittenAndNoHookRuns(t *testing.T) {
	w := newWorld(t)
	w.deploy(full(), nil)
	w.annotate(release.SecretKey("demo", "rel", 1), release.OwnerAnnotation, "items/other/uid")
	proposal := w.uninstall(w.again())
	sameTexts(t, names(proposal), "delete Deployment", "delete ClusterRole", "delete ConfigMap", "delete Thing", "delete release")
	for _, stage := range proposal.Stages {
		if len(stage.Writes) > 0 {
			t.Errorf("stage %s writes %v", stage.Name, stage.Writes)
		}
	}
}

func TestC116AReleaseThatWasRenamedIsTakenAwayWhateverTheFirstJobComesTo(t *testing.T) {
	removal := "templates/removal.yaml"
	files := charted(map[string]string{"templates/a.yaml": configMap("{{ .Release.Name }}", ""), removal: hook("Job", "removal", "pre-delete", "")})
	other := map[string]any{"name": "other"}
	w := newWorld(t)
	w.deploy(files, nil)
	w.fail(files, other, "write ConfigMap")
	w.fail(files, map[string]any{"name": "third"}, "write ConfigMap")
	proposal := w.deploy(files, other)
	stage(t, proposal, "release rel: pre-delete hook Job removal (app/templates/removal.yaml)")
	stage(t, proposal, "release third: delete release")
	sameTexts(t, w.left(), "ConfigMap demo/other", "Job demo/removal")
	sameTexts(t, w.revisions())
	if told := w.status.(status); len(told.Previous) != 2 {
		t.Errorf("before they are gone, the status says %+v", told)
	}
	w.deploy(files, other)
	if told := w.status.(status); len(told.Previous) != 0 {
		t.Errorf("when they are gone, the status says %+v", told)
	}
}

func TestC116ADeletionTakesAwayAllReleasesThatTheItemHas(t *testing.T) {
	for _, next := range []map[string]any{{"name": "other"}, {"helmDeployment": false}} {
		w := newWorld(t)
		w.deploy(plain(), nil)
		proposal := w.plan(w.item(plain(), next))
		// Nothing but the first stage has passed.
		w.carryOut(proposal, names(proposal)[0])
		w.uninstall(w.again())
		sameTexts(t, w.revisions())
	}
}

func TestC116WhoeverHasAFormerNameKeepsIt(t *testing.T) {
	w := newWorld(t)
	other := map[string]any{"name": "other"}
	w.deploy(plain(), nil)
	w.deploy(plain(), other)
	for _, owner := range []string{"", "items/another/uid"} {
		w.strand(1, common.StatusDeployed, "", now)
		if owner != "" {
			w.annotate(release.SecretKey("demo", "rel", 1), release.OwnerAnnotation, owner)
		}
		w.status = status{Release: &standby{Name: "other", Namespace: "demo", Revision: 1}, Previous: []standby{{Name: "rel", Namespace: "demo"}}}
		if owner != "" {
			// Of the time when the release was the item's.
			w.strand(0, common.StatusSuperseded, "", now)
			w.annotate(release.SecretKey("demo", "rel", 0), release.OwnerAnnotation, "items/item/uid")
		}
		w.deploy(plain(), other)
		w.status = status{Release: &standby{Name: "other", Namespace: "demo", Revision: 1}, Previous: []standby{{Name: "rel", Namespace: "demo"}}}
		w.uninstall(w.again())
		told := w.revisions()
		sameTexts(t, told[len(told)-1:], "sh.helm.release.v1.rel.v1 deployed: stranded")
	}
}

func TestC118ADeletionNeedsNoConfiguration(t *testing.T) {
	for _, broken := range []string{`{"chart": {"bogus": 1}, "deletionGroups": 7}`, `{"name": 5, "deletionGroups": 7}`, `[]`} {
		w := newWorld(t)
		w.deploy(full(), nil)
		item := w.again()
		item.Config = []byte(broken)
		w.uninstall(item)
		sameTexts(t, w.revisions())
	}
	w := newWorld(t)
	item := w.item(full(), nil)
	item.Config = []byte(`{"chart": {}}`)
	_, err := Uninstall(w, item)
	expected := "name and namespace of the release that is to be uninstalled are missing; add them, or delete the item with the annotation " +
		"landscaper.gardener.cloud/delete-without-uninstall"
	if err == nil || err.Error() != expected {
		t.Errorf("it is answered %v", err)
	}
}

func TestC117ReleasesHaveNoDeletionGroups(t *testing.T) {
	groups := []any{map[string]any{"customResourceGroup": map[string]any{
		"resources": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}, "deleteAllResources": true}}}
	for isRelease, expected := range map[bool]int{true: 0, false: 1} {
		w := newWorld(t)
		more := map[string]any{"helmDeployment": isRelease, "deletionGroups": groups}
		deployed := w.deploy(plain(), more)
		deleted := w.uninstall(w.again())
		if len(deployed.DeletionOrder) != expected || len(deleted.DeletionOrder) != expected {
			t.Errorf("helmDeployment %t: %v, %v", isRelease, deployed.DeletionOrder, deleted.DeletionOrder)
		}
	}
}

func TestC115TwoItemsOfAJobDoNotShareARelease(t *testing.T) {
	said := "name: the release rel is also deployed by DeployItem items/other (revision 1); give one of the two another name or namespace"
	w := newWorld(t)
	w.deploy(plain(), nil)
	w.annotate(release.SecretKey("demo", "rel", 1), release.OwnerAnnotation, "items/other/uid")
	if _, err := Plan(w, w.again()); err == nil || !strings.HasSuffix(err.Error(), said) {
		t.Errorf("it is answered %v", err)
	}
	w = newWorld(t)
	proposal := w.plan(w.item(plain(), nil))
	w.strand(1, common.StatusPendingInstall, w.again().Job, now)
	w.annotate(release.SecretKey("demo", "rel", 1), release.OwnerAnnotation, "items/other/uid")
	failed := w.recover(proposal, &wire.Failure{Stage: stageBegin, Problem: wire.Problem{Message: "it did not hold"}}, "")
	if len(failed.Stages) != 0 || failed.Next.Fail.Message != said {
		t.Errorf("it is answered %+v", failed)
	}
}
