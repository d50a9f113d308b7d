package render

import (
	"errors"
	"runtime/debug"
	"sort"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"

	"orangery.dev/helm/wire"
)

// Cluster is what a chart sees of the cluster it goes to, and what was read of what goes there.
type Cluster struct {
	host    wire.Host
	version *common.KubeVersion
	kinds   map[kind]scope
	// brought are the kinds that the chart's own definitions bring about: there are no objects of them yet.
	brought map[kind]bool
	// fault is why a look into the cluster failed: the template's error only says where.
	fault *wire.Fault
	texts texts
}

type kind struct{ apiVersion, kind string }

type scope int

const (
	unserved scope = iota
	namespaced
	clusterWide
)

// Look asks a cluster what it is. Errors are of type *wire.Fault.
func Look(host wire.Host) (*Cluster, error) {
	told, err := host.Version()
	if err != nil {
		return nil, err
	}
	version, err := common.ParseKubeVersion(told)
	if err != nil {
		return nil, wire.Wrong("", "the version of the cluster, %q, cannot be read: %s", told, err)
	}
	served, err := host.Discover()
	if err != nil {
		return nil, err
	}
	cluster := &Cluster{host: host, version: version, kinds: map[kind]scope{}, brought: map[kind]bool{}, texts: texts{}}
	for _, resource := range served {
		cluster.add(resource.APIVersion, resource.Kind, resource.Namespaced)
	}
	return cluster, nil
}

func (c *Cluster) add(apiVersion, name string, hasNamespaces bool) {
	c.kinds[kind{apiVersion, name}] = map[bool]scope{true: namespaced, false: clusterWide}[hasNamespaces]
}

// Define adds the kinds that definitions among these objects bring about, as Helm sees them once it has written those.
func (c *Cluster) Define(objects []Object) {
	for _, object := range objects {
		if object.text("kind") != "CustomResourceDefinition" {
			continue
		}
		spec, _ := object.Content["spec"].(map[string]any)
		group, _ := spec["group"].(string)
		names, _ := spec["names"].(map[string]any)
		name, _ := names["kind"].(string)
		versions, _ := spec["versions"].([]any)
		for _, one := range versions {
			version, _ := one.(map[string]any)
			text, _ := version["name"].(string)
			of := kind{group + "/" + text, name}
			if _, known := c.kinds[of]; !known && version["served"] == true {
				c.add(of.apiVersion, name, spec["scope"] == "Namespaced")
				c.brought[of] = true
			}
		}
	}
}

// DefineIn adds the kinds that definitions in a manifest bring about. What cannot be read there is told of later.
func (c *Cluster) DefineIn(manifest string) {
	if strings.Contains(manifest, "CustomResourceDefinition") {
		objects, _ := c.texts.objects("the manifest", manifest)
		c.Define(objects)
	}
}

// HasNamespaces tells whether objects of this kind are known to live in namespaces.
func (c *Cluster) HasNamespaces(apiVersion, name string) bool {
	return c.scope(apiVersion, name) == namespaced
}

// Serves tells whether objects of this kind can be read.
func (c *Cluster) Serves(apiVersion, name string) bool {
	of := kind{apiVersion, name}
	return c.kinds[of] != unserved && !c.brought[of]
}

func (c *Cluster) scope(apiVersion, name string) scope { return c.kinds[kind{apiVersion, name}] }

// engineVersion is that of Helm as this program was built with it, such as `v4.2.3`: what the stock command line is told by
// its linker. Empty in tests, which know nothing of how they were built.
var engineVersion = func() string {
	built, _ := debug.ReadBuildInfo()
	if built == nil {
		return ""
	}
	for _, module := range built.Deps {
		if module.Path == "helm.sh/helm/v4" {
			return module.Version
		}
	}
	return ""
}()

func (c *Cluster) capabilities() *common.Capabilities {
	versions := map[string]bool{}
	for of := range c.kinds {
		versions[of.apiVersion] = true
		versions[of.apiVersion+"/"+of.kind] = true
	}
	all := make(common.VersionSet, 0, len(versions))
	for version := range versions {
		all = append(all, version)
	}
	sort.Strings(all)
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion, capabilities.APIVersions = *c.version, all
	if engineVersion != "" {
		capabilities.HelmVersion.Version = engineVersion
	}
	return capabilities
}

// lookup is the template function: one object, or the list of all; empty where there is none.
func (c *Cluster) lookup(apiVersion, name, namespace, object string) (map[string]any, error) {
	switch {
	case c.scope(apiVersion, name) == unserved:
		return nil, errors.New("lookup: the cluster does not know the kind " + name + " of " + apiVersion)
	case !c.Serves(apiVersion, name):
		return map[string]any{}, nil
	case c.scope(apiVersion, name) == clusterWide:
		namespace = ""
	case namespace == "" && object != "":
		return nil, errors.New("lookup: the " + name + " " + object + " is looked for without a namespace; add it")
	}
	if object == "" {
		return c.all(apiVersion, name, namespace)
	}
	found, err := c.host.GetMany([]wire.Key{{APIVersion: apiVersion, Kind: name, Namespace: namespace, Name: object}})
	if err != nil {
		return nil, c.failed(err)
	}
	if found[0] == nil {
		return map[string]any{}, nil
	}
	return found[0], nil
}

func (c *Cluster) all(apiVersion, name, namespace string) (map[string]any, error) {
	found, err := c.host.List(wire.Selection{APIVersion: apiVersion, Kind: name, Namespace: namespace})
	if err != nil {
		return nil, c.failed(err)
	}
	items := make([]any, 0, len(found))
	for _, item := range found {
		items = append(items, item)
	}
	list := name + "List"
	if strings.HasSuffix(name, "List") {
		list = name
	}
	return map[string]any{"apiVersion": apiVersion, "kind": list, "metadata": map[string]any{}, "items": items}, nil
}

func (c *Cluster) failed(err error) error {
	errors.As(err, &c.fault)
	return err
}
