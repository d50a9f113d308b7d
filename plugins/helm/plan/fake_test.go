package plan

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	helm "helm.sh/helm/v4/pkg/release/v1"

	"orangery.dev/helm/release"
	"orangery.dev/helm/wire"
)

var now = time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)

// world is a cluster in memory, and carries out proposals as far as these tests look at what comes of them.
type world struct {
	t       *testing.T
	objects map[wire.Key]map[string]any
	jobs    int
	traced  []string
	status  any
	config  map[string]any
}

func newWorld(t *testing.T) *world {
	return &world{t: t, objects: map[wire.Key]map[string]any{}}
}

func (w *world) GetMany(keys []wire.Key) ([]map[string]any, error) {
	found := []map[string]any{}
	for _, key := range keys {
		found = append(found, w.objects[key])
	}
	return found, nil
}

func (w *world) List(what wire.Selection) ([]map[string]any, error) {
	found := []map[string]any{}
	for key, object := range w.objects {
		matches := key.Kind == what.Kind && key.APIVersion == what.APIVersion && key.Namespace == what.Namespace
		labels := texts(object, "labels")
		for pair := range strings.SplitSeq(what.Labels, ",") {
			name, value, _ := strings.Cut(pair, "=")
			matches = matches && (pair == "" || labels[name] == value)
		}
		if matches {
			found = append(found, object)
		}
	}
	return found, nil
}

func texts(object map[string]any, field string) map[string]string {
	metadata, _ := object["metadata"].(map[string]any)
	entries, _ := metadata[field].(map[string]any)
	all := map[string]string{}
	for name, value := range entries {
		all[name], _ = value.(string)
	}
	return all
}

func (w *world) Version() (string, error) { return "v1.33.4", nil }

func (w *world) Trace(message string) { w.traced = append(w.traced, message) }

func (w *world) Discover() ([]wire.APIResource, error) {
	kinds := []wire.APIResource{
		{APIVersion: "v1", Kind: "Namespace"}, {APIVersion: "v1", Kind: "ConfigMap", Namespaced: true},
		{APIVersion: "v1", Kind: "Secret", Namespaced: true}, {APIVersion: "v1", Kind: "Pod", Namespaced: true},
		{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespaced: true},
		{APIVersion: "autoscaling/v1", Kind: "HorizontalPodAutoscaler", Namespaced: true},
		{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler", Namespaced: true},
		{APIVersion: "apps/v1", Kind: "Deployment", Namespaced: true}, {APIVersion: "batch/v1", Kind: "Job", Namespaced: true},
		{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
	}
	for key := range w.objects {
		if key.Kind == "CustomResourceDefinition" {
			kinds = append(kinds, wire.APIResource{APIVersion: "example.org/v1", Kind: "Thing", Namespaced: true})
		}
	}
	return kinds, nil
}

func (w *world) OCI(string) (wire.Artifact, error) { return nil, wire.Wrong("", "no registry here") }
func (w *world) URL(string) (wire.Artifact, error) { return nil, wire.Wrong("", "no network here") }
func (w *world) HelmRepository(_, _, _ string) (wire.Artifact, error) {
	return nil, wire.Wrong("", "no network here")
}
func (w *world) ComponentResource(string) (wire.Artifact, error) {
	return nil, wire.Wrong("", "no component here")
}

// item is the deploy item in its next job.
func (w *world) item(files map[string]string, more map[string]any) wire.Item {
	w.jobs++
	config := map[string]any{
		"apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration",
		"name": "rel", "namespace": "demo",
		"chart": map[string]any{"archive": map[string]any{"raw": base64.StdEncoding.EncodeToString(pack(w.t, files))}},
	}
	maps.Copy(config, more)
	w.config = config
	return w.again()
}

// again is the same item, and the same job.
func (w *world) again() wire.Item {
	text, err := json.Marshal(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	status, err := json.Marshal(w.status)
	if err != nil {
		w.t.Fatal(err)
	}
	return wire.Item{
		Namespace: "items", Name: "item", Job: "job-" + string(rune('0'+w.jobs)), Config: text, Status: status,
		UID: "uid", Now: now.Add(time.Duration(w.jobs) * time.Hour),
	}
}

// carryOut does what a proposal says, up to a stage that fails.
func (w *world) carryOut(proposal *wire.Proposal, failing string) *wire.Failure {
	// The host records it before it writes anything.
	if proposal.Status != nil {
		w.status = proposal.Status
	}
	for _, stage := range proposal.Stages {
		for _, removal := range stage.Removals {
			delete(w.objects, removal.Key)
		}
		for _, write := range stage.Writes {
			key := keyOf(write.Object)
			if _, exists := w.objects[key]; exists && write.How.Word == wire.Create.Word {
				continue
			}
			w.objects[key] = throughJSON(w.t, write.Object)
			w.annotate(key, release.OwnerAnnotation, "items/item/uid")
		}
		if stage.Name == failing {
			problem := wire.Problem{Code: "ERR_TEST", Message: "it has failed"}
			return &wire.Failure{Stage: stage.Name, Problem: problem}
		}
	}
	if failing != "" {
		w.t.Fatalf("no stage %q among %q", failing, names(proposal))
	}
	return nil
}

// deploy plans the next job and carries it out.
func (w *world) deploy(files map[string]string, more map[string]any) *wire.Proposal {
	w.t.Helper()
	proposal := w.plan(w.item(files, more))
	w.carryOut(proposal, "")
	return proposal
}

// fail deploys up to a stage that fails, and answers what recovers from that, which is carried out.
func (w *world) fail(files map[string]string, more map[string]any, stage string) *wire.Proposal {
	w.t.Helper()
	proposal := w.plan(w.item(files, more))
	return w.recover(proposal, w.carryOut(proposal, stage), "")
}

func (w *world) recover(from *wire.Proposal, failure *wire.Failure, failing string) *wire.Proposal {
	w.t.Helper()
	item := w.again()
	item.Failed, item.Checkpoint = failure, from.Recover
	proposal := w.plan(item)
	if failing == "" {
		w.carryOut(proposal, "")
		return proposal
	}
	return w.recover(proposal, w.carryOut(proposal, failing), "")
}

func (w *world) plan(item wire.Item) *wire.Proposal {
	w.t.Helper()
	proposal, err := Plan(w, item)
	if err != nil {
		w.t.Fatal(err)
	}
	return proposal
}

// refused is why an item cannot be planned.
func (w *world) refused(files map[string]string, more map[string]any) string {
	w.t.Helper()
	_, err := Plan(w, w.item(files, more))
	if err == nil {
		w.t.Fatal("it is planned")
	}
	return err.Error()
}

// revisions are number, state and description of all revisions of the release.
func (w *world) revisions() []string {
	w.t.Helper()
	history, err := release.Read(w, "demo", "rel")
	if err != nil {
		w.t.Fatal(err)
	}
	told := []string{}
	for _, revision := range history {
		of, err := revision.Release()
		if err != nil {
			w.t.Fatal(err)
		}
		told = append(told, revision.Key.Name+" "+string(revision.Status)+": "+of.Info.Description)
	}
	return told
}

func (w *world) revision(number int) *helm.Release {
	w.t.Helper()
	history, err := release.Read(w, "demo", "rel")
	if err != nil {
		w.t.Fatal(err)
	}
	of, err := history.Find(number).Release()
	if err != nil {
		w.t.Fatal(err)
	}
	return of
}

// annotate writes an annotation as somebody does.
func (w *world) annotate(key wire.Key, name, value string) {
	metadata := w.objects[key]["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[name] = value
}

// keep marks a config map as somebody does who wants it to stay.
func (w *world) keep(name, policy string) {
	for key, object := range w.objects {
		if key.Kind == "ConfigMap" && key.Name == name {
			metadata := object["metadata"].(map[string]any)
			annotations, _ := metadata["annotations"].(map[string]any)
			if annotations == nil {
				annotations = map[string]any{}
				metadata["annotations"] = annotations
			}
			annotations[policyAnnotation] = policy
		}
	}
}

// left are the objects that there are, but for the revisions.
func (w *world) left() []string {
	names := []string{}
	for key := range w.objects {
		if !strings.HasPrefix(key.Name, "sh.helm.release") {
			names = append(names, key.String())
		}
	}
	slices.Sort(names)
	return names
}

func throughJSON(t *testing.T, object map[string]any) map[string]any {
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var read map[string]any
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

func names(proposal *wire.Proposal) []string {
	all := []string{}
	for _, stage := range proposal.Stages {
		all = append(all, stage.Name)
	}
	return all
}

// stage is the one of this name.
func stage(t *testing.T, proposal *wire.Proposal, name string) wire.Stage {
	t.Helper()
	for _, stage := range proposal.Stages {
		if stage.Name == name {
			return stage
		}
	}
	t.Fatalf("no stage %q among %q", name, names(proposal))
	return wire.Stage{}
}

func pack(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}
		if target, isLink := strings.CutPrefix(files[name], "link:"); isLink {
			header = &tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
		}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeSymlink {
			if _, err := archive.Write([]byte(files[name])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// charted is one with these templates.
func charted(templates map[string]string) map[string]string {
	files := map[string]string{"app/Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.2.3\n"}
	for name, text := range templates {
		files["app/"+name] = text
	}
	return files
}

func configMap(name, annotations string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n  annotations: {" + annotations + "}\ndata: {a: b}\n"
}

func hook(kind, name, at, more string) string {
	version := map[string]string{"Job": "batch/v1", "ConfigMap": "v1"}[kind]
	return "apiVersion: " + version + "\nkind: " + kind + "\nmetadata:\n  name: " + name +
		"\n  annotations: {\"helm.sh/hook\": \"" + at + "\"" + more + "}\n"
}

func sameTexts(t *testing.T, actual []string, expected ...string) {
	t.Helper()
	if !slices.Equal(actual, expected) {
		t.Errorf("it is\n%q\nand not\n%q", actual, expected)
	}
}
