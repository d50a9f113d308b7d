package config

import (
	"fmt"

	"orangery.dev/helm/wire"
)

// group is a deletion group (docs/wire.md §8.1).
type group struct {
	Predefined *struct {
		Type        string `json:"type"`
		ForceDelete bool   `json:"forceDelete"`
	} `json:"predefinedResourceGroup"`
	Custom *struct {
		Resources []struct {
			APIVersion string   `json:"apiVersion"`
			Kind       string   `json:"kind"`
			Names      []string `json:"names"`
			Namespaces []string `json:"namespaces"`
		} `json:"resources"`
		ForceDelete        bool   `json:"forceDelete"`
		DeleteAllResources bool   `json:"deleteAllResources"`
		TargetName         string `json:"targetName"`
	} `json:"customResourceGroup"`
}

// predefined are the groups that have a name; `empty` deletes nothing, which switches the usual groups off.
var predefined = map[string][]wire.DeletionScope{
	"namespaced-resources":     {{Word: "namespaced"}},
	"cluster-scoped-resources": {{Word: "clusterScoped"}},
	"crds":                     {{Word: "customResourceDefinitions"}},
	"empty":                    {},
}

func (c *Configuration) readGroups(written *document) error {
	var err error
	if c.DeletionOrder, err = order("/deletionGroups", written.DeletionGroups); err != nil {
		return err
	}
	c.Pruning, err = order("/deletionGroupsDuringUpdate", written.DeletionGroupsDuringUpdate)
	return err
}

func order(at string, groups []group) ([]wire.DeletionGroup, error) {
	var order []wire.DeletionGroup
	for i, group := range groups {
		read, err := group.read(fmt.Sprintf("%s/%d", at, i))
		if err != nil {
			return nil, err
		}
		order = append(order, read)
	}
	return order, nil
}

func (g group) read(at string) (wire.DeletionGroup, error) {
	switch {
	case g.Predefined != nil && g.Custom == nil:
		scopes, known := predefined[g.Predefined.Type]
		if !known {
			return wire.DeletionGroup{}, wire.Wrong(at+"/predefinedResourceGroup/type",
				"%s: the group %q is not known; use namespaced-resources, cluster-scoped-resources, crds or empty",
				name(at), g.Predefined.Type)
		}
		return wire.DeletionGroup{What: scopes, Force: g.Predefined.ForceDelete}, nil
	case g.Custom != nil && g.Predefined == nil:
		return g.custom(at + "/customResourceGroup")
	default:
		return wire.DeletionGroup{}, wire.Wrong(at,
			"%s: a deletion group is either predefinedResourceGroup or customResourceGroup; write one of them", name(at))
	}
}

func (g group) custom(at string) (wire.DeletionGroup, error) {
	custom := g.Custom
	if custom.TargetName != "" && !custom.DeleteAllResources {
		return wire.DeletionGroup{}, wire.Wrong(at+"/targetName",
			"%s.targetName: it is for groups with deleteAllResources: true; add that or drop targetName", name(at))
	}
	if len(custom.Resources) == 0 {
		return wire.DeletionGroup{}, wire.Wrong(at+"/resources",
			"%s.resources: it is empty; name at least one apiVersion and kind", name(at))
	}
	read := wire.DeletionGroup{On: wire.Cluster(custom.TargetName), Force: custom.ForceDelete, What: []wire.DeletionScope{}}
	for i, resource := range custom.Resources {
		if resource.APIVersion == "" || resource.Kind == "" {
			at := fmt.Sprintf("%s/resources/%d", at, i)
			return wire.DeletionGroup{}, wire.Wrong(at, "%s: apiVersion and kind are needed", name(at))
		}
		namespaces := resource.Namespaces
		if len(namespaces) == 0 {
			// All of them.
			namespaces = []string{""}
		}
		for _, namespace := range namespaces {
			selection := &wire.Selection{
				APIVersion: resource.APIVersion, Kind: resource.Kind, Namespace: namespace, Names: resource.Names,
			}
			scope := wire.DeletionScope{Managed: selection}
			if custom.DeleteAllResources {
				scope = wire.DeletionScope{Matching: selection}
			}
			read.What = append(read.What, scope)
		}
	}
	return read, nil
}
