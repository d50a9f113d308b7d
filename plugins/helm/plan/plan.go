// Package plan makes proposals of charts: releases as Helm keeps them, or plain objects.
package plan

import (
	"encoding/json"

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
}

// standby names the release that an item has.
type standby struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Revision  int    `json:"revision"`
}

func newStatus() status { return status{APIVersion: config.Version, Kind: "ProviderStatus"} }

// before is the release of the last job; nil where there is none.
func (c *call) before() *standby {
	var before status
	if json.Unmarshal(c.item.Status, &before) != nil {
		return nil
	}
	return before.Release
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

// Uninstall decides what happens before the host deletes what is left of the item. Errors are of type *wire.Fault.
func Uninstall(host wire.Host, item wire.Item) (*wire.Proposal, error) {
	c, err := begin(host, item)
	if err != nil {
		return nil, err
	}
	proposal := &wire.Proposal{DeletionOrder: c.config.DeletionOrder}
	before := c.before()
	if before == nil && !c.config.Release {
		return proposal, nil
	}
	if before == nil {
		// Deployed by Landscaper, which keeps no word of it.
		before = &standby{Name: c.config.Name, Namespace: c.config.Namespace}
	}
	if err := c.look(); err != nil {
		return nil, err
	}
	history, err := release.Read(host, before.Namespace, before.Name)
	if err != nil {
		return nil, err
	}
	proposal.Stages, err = c.uninstall(history)
	return proposal, err
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
