// Package render renders charts with Helm's own engine, and finds the objects in what it answers.
package render

import (
	"bytes"
	"fmt"
	"path"
	"sort"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/util"
	release "helm.sh/helm/v4/pkg/release/v1"

	"orangery.dev/helm/wire"
)

// notes is how the file ends whose rendering is shown to people.
const notes = "NOTES.txt"

// Order is what is rendered.
type Order struct {
	Chart     *chart.Chart
	Values    map[string]any
	Name      string
	Namespace string
	Revision  int
	// Upgrade says that there is a release already.
	Upgrade bool
	// SkipSchemaValidation leaves values.schema.json out of account.
	SkipSchemaValidation bool
}

// Rendered is what came of it.
type Rendered struct {
	// Manifest is all objects but hooks, as the release keeps it.
	Manifest string
	// Hooks are in the order of their kinds.
	Hooks []*release.Hook
	// Notes are for people.
	Notes string
	// Values are those of the user over those of the chart.
	Values map[string]any
}

// Chart renders a chart, as action.Install and action.Upgrade of Helm do before they write. Errors are of type
// *wire.Fault.
func Chart(order Order, cluster *Cluster) (*Rendered, error) {
	if err := util.ProcessDependencies(order.Chart, order.Values); err != nil {
		return nil, order.wrong("/chart", err)
	}
	capabilities := cluster.capabilities()
	if wanted := order.Chart.Metadata.KubeVersion; wanted != "" &&
		!util.IsCompatibleRange(wanted, capabilities.KubeVersion.String()) {
		return nil, order.wrong("/chart", fmt.Errorf("it needs Kubernetes %s, and the cluster is %s",
			wanted, capabilities.KubeVersion.Version))
	}
	options := common.ReleaseOptions{
		Name: order.Name, Namespace: order.Namespace, Revision: order.Revision,
		IsInstall: !order.Upgrade, IsUpgrade: order.Upgrade,
	}
	values, err := commonutil.ToRenderValuesWithSchemaValidation(
		order.Chart, order.Values, options, capabilities, order.SkipSchemaValidation)
	if err != nil {
		return nil, order.wrong("/values", schemaError(err))
	}
	files, err := templates(order.Chart, values, cluster)
	if err != nil {
		if cluster.fault != nil {
			return nil, cluster.fault
		}
		return nil, order.wrong("", err)
	}
	cluster.host.Trace("sorting the objects of the chart " + order.Chart.Name())
	rendered := &Rendered{Notes: takeNotes(files, order.Chart.Name()), Values: settled(values)}
	hooks, manifests, err := cluster.texts.sorted(files)
	if err != nil {
		return nil, order.wrong("", err)
	}
	rendered.Hooks = hooks
	var manifest bytes.Buffer
	for _, one := range manifests {
		fmt.Fprintf(&manifest, "---\n# Source: %s\n%s\n", one.Name, one.Content)
	}
	rendered.Manifest = manifest.String()
	return rendered, nil
}

func (o Order) wrong(at string, err error) *wire.Fault {
	return wire.Wrong(at, "chart %s %s: %s", o.Chart.Name(), o.Chart.Metadata.Version, masked(err.Error(), o))
}

// takeNotes takes the notes of the chart itself out of the files; those of its dependencies are dropped.
func takeNotes(files map[string]string, name string) string {
	own := files[path.Join(name, "templates", notes)]
	for file := range files {
		if strings.HasSuffix(file, notes) {
			delete(files, file)
		}
	}
	return own
}

func settled(values common.Values) map[string]any {
	switch all := values["Values"].(type) {
	case common.Values:
		return all
	case map[string]any:
		return all
	default:
		return map[string]any{}
	}
}

// schemaError is in one line what Helm writes in several.
func schemaError(err error) error {
	lines := []string{}
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return fmt.Errorf("%s", strings.Join(lines, " "))
}

// Definitions are the objects of the folders crds/, of the chart and its dependencies.
func Definitions(of *chart.Chart, cluster *Cluster) ([]Object, error) {
	var objects []Object
	files := of.CRDObjects()
	// As Helm reads them, which is the order of the archive: made the same for the same chart.
	sort.SliceStable(files, func(i, j int) bool { return files[i].Filename < files[j].Filename })
	for _, file := range files {
		read, err := cluster.texts.objects(file.Filename, string(file.File.Data))
		if err != nil {
			return nil, wire.Wrong("/chart", "chart %s %s: %s", of.Name(), of.Metadata.Version, err)
		}
		objects = append(objects, read...)
	}
	return objects, nil
}
