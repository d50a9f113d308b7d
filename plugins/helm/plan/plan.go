// Package plan makes proposals of charts: releases as Helm keeps them, or plain objects.
package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"orangery.dev/helm/config"
	"orangery.dev/helm/release"
	"orangery.dev/helm/render"
	"orangery.dev/helm/source"
	"orangery.dev/helm/wire"
)

// call is one call of the deployer, and what it knows from the first reads on.
type call struct {
	host    wire.Host
	item    wire.Item
	config  *config.Configuration
	cluster *render.Cluster
	secrets release.Secrets
}

// status is the provider status, beside what the host keeps there.
type status struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Release    *standby `json:"release,omitempty"`
	// Previous are releases that the item had, until it is known that they are gone.
	Previous []standby `json:"previous,omitempty"`
}

// standby names the release that an item has.
type standby struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Revision  int    `json:"revision"`
}

func newStatus() status { return status{APIVersion: config.Version, Kind: "ProviderStatus"} }

func (s standby) is(name, namespace string) bool { return s.Name == name && s.Namespace == namespace }

// standing are the releases that the item has had by the last job, the one of that job first.
func (c *call) standing() []stood {
	var before status
	if json.Unmarshal(c.item.Status, &before) != nil {
		return nil
	}
	var all []stood
	if before.Release != nil {
		all = append(all, stood{standby: *before.Release, isLast: true})
	}
	for _, previous := range before.Previous {
		if before.Release == nil || !previous.is(before.Release.Name, before.Release.Namespace) {
			all = append(all, stood{standby: previous})
		}
	}
	return all
}

// stood is a release that the item has had.
type stood struct {
	standby
	// isLast says that it is that of the last job.
	isLast bool
}

// left is the history of a release that the item has no more; none where another has the release by now. A release of an earlier
// job has to have a revision of the item: it may be gone, and another one have its name.
func (c *call) left(of stood) (release.History, error) {
	history, err := release.Read(c.host, of.Namespace, of.Name)
	if err != nil || history.Last() == nil || c.another(history.Last()) {
		return nil, err
	}
	isOwn := func(revision *release.Revision) bool { return revision.Owner == c.mark() }
	if !of.isLast && !slices.ContainsFunc(history, isOwn) {
		return nil, nil
	}
	return history, nil
}

// mark is that of the item on what it writes (C-36).
func (c *call) mark() string { return c.item.Namespace + "/" + c.item.Name + "/" + c.item.UID }

// another tells whether another item has written a revision last.
func (c *call) another(revision *release.Revision) bool {
	return revision.Owner != "" && revision.Owner != c.mark()
}

// alone refuses a release that another item of the same job has deployed: each would take away what the other has written.
func (c *call) alone(history release.History) error {
	for _, revision := range history {
		if revision.Job == c.item.Job && c.another(revision) {
			return wire.Wrong("/name", "%s", shared(revision, c.config.Name))
		}
	}
	return nil
}

func shared(revision *release.Revision, name string) string {
	item := revision.Owner[:max(strings.LastIndex(revision.Owner, "/"), 0)]
	return fmt.Sprintf("name: the release %s is also deployed by DeployItem %s (revision %d); give one of the two another name or namespace",
		name, item, revision.Number)
}

func begin(host wire.Host, item wire.Item) (*call, error) {
	read, err := config.Read(item.Config)
	if err != nil {
		return nil, err
	}
	return &call{host: host, item: item, config: read}, nil
}

func (c *call) look() (err error) {
	c.cluster, err = render.Look(c.host)
	return err
}

// Plan decides what an item needs. Errors are of type *wire.Fault.
func Plan(host wire.Host, item wire.Item) (*wire.Proposal, error) {
	c, err := begin(host, item)
	if err != nil {
		return nil, err
	}
	if item.Failed != nil {
		return c.recover()
	}
	chart, err := source.Chart(c.config.Chart, host)
	if err != nil {
		return nil, err
	}
	if err := c.look(); err != nil {
		return nil, err
	}
	if !c.config.Release {
		return c.objects(chart)
	}
	return c.release(chart)
}

// Uninstall decides what happens before the host deletes what is left of the item. It needs no more than what was recorded, and
// of the configuration only what a release of Landscaper is called, and the groups of objects without a release (C-118). Errors
// are of type *wire.Fault.
func Uninstall(host wire.Host, item wire.Item) (*wire.Proposal, error) {
	read, err := config.ForUninstall(item.Config)
	if err != nil {
		return nil, err
	}
	c := &call{host: host, item: item, config: read}
	proposal := &wire.Proposal{DeletionOrder: read.DeletionOrder}
	standing := c.standing()
	if len(standing) == 0 && !read.Release {
		return proposal, nil
	}
	if len(standing) == 0 {
		// Deployed by Landscaper, which keeps no word of it.
		if read.Name == "" || read.Namespace == "" {
			return nil, wire.Wrong("/name", "name and namespace of the release that is to be uninstalled are missing; add them, or delete "+
				"the item with the annotation landscaper.gardener.cloud/delete-without-uninstall")
		}
		standing = []stood{{standby: standby{Name: read.Name, Namespace: read.Namespace}, isLast: true}}
	}
	if err := c.look(); err != nil {
		return nil, err
	}
	for _, of := range standing {
		read := c.left
		if of.isLast {
			read = func(of stood) (release.History, error) { return release.Read(host, of.Namespace, of.Name) }
		}
		history, err := read(of)
		if err != nil {
			return nil, err
		}
		stages, err := c.uninstall(history)
		if err != nil {
			return nil, err
		}
		for _, stage := range stages {
			if !of.isLast {
				stage.Name = "release " + of.Name + ": " + stage.Name
			}
			stage.Name = unused(proposal, stage.Name)
			proposal.Stages = append(proposal.Stages, stage)
		}
	}
	return proposal, nil
}

// definitions are the objects of the folders crds/; the cluster is told of the kinds that they bring about.
func (c *call) definitions(of *chart.Chart) ([]render.Object, error) {
	definitions, err := render.Definitions(of, c.cluster)
	c.cluster.Define(definitions)
	return definitions, err
}

// live reads the objects that exist, by their keys.
func (c *call) live(keys []wire.Key) (map[wire.Key]render.Object, error) {
	const most = 1000
	var readable []wire.Key
	asked := map[wire.Key]bool{}
	for _, key := range keys {
		if c.cluster.Serves(key.APIVersion, key.Kind) && !asked[key] {
			asked[key] = true
			readable = append(readable, key)
		}
	}
	live := map[wire.Key]render.Object{}
	for len(readable) > 0 {
		part := readable[:min(most, len(readable))]
		readable = readable[len(part):]
		found, err := c.host.GetMany(part)
		if err != nil {
			return nil, err
		}
		for i, content := range found {
			if content != nil {
				live[part[i]] = render.Object{Content: content}
			}
		}
	}
	return live, nil
}
