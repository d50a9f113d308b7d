package config

import (
	"fmt"

	"orangery.dev/helm/wire"
)

// Export is one export of the item: from an object, or from the values of the release.
type Export struct {
	Key string
	// Path is a JSONPath.
	Path string
	// From is the object; nil for the values.
	From *wire.Key
	// On is the cluster of the object.
	On wire.Cluster
	// Then is a second object, which the first one names.
	Then *wire.Follow
	// At is where in the configuration.
	At string
}

type export struct {
	Key           string     `json:"key"`
	JSONPath      string     `json:"jsonPath"`
	FromResource  *reference `json:"fromResource"`
	FromObjectRef *struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		JSONPath   string `json:"jsonPath"`
	} `json:"fromObjectRef"`
	TargetName string `json:"targetName"`
}

func (c *Configuration) readExports(written *document) error {
	for _, list := range []struct {
		at      string
		exports []export
	}{{"/exports/exports", written.Exports.Exports}, {"/exportsFromManifests", written.ExportsFromManifests}} {
		for i, export := range list.exports {
			read, err := export.read(fmt.Sprintf("%s/%d", list.at, i))
			if err != nil {
				return err
			}
			c.Exports = append(c.Exports, read)
		}
	}
	return nil
}

func (e export) read(at string) (Export, error) {
	if e.Key == "" || e.JSONPath == "" {
		return Export{}, wire.Wrong(at, "%s: key and jsonPath are needed", name(at))
	}
	read := Export{Key: e.Key, Path: e.JSONPath, On: wire.Cluster(e.TargetName), At: at}
	if e.FromResource != nil {
		key, err := e.FromResource.key(at + "/fromResource")
		if err != nil {
			return Export{}, err
		}
		read.From = &key
	}
	if then := e.FromObjectRef; then != nil {
		if e.FromResource == nil || then.APIVersion == "" || then.Kind == "" || then.JSONPath == "" {
			return Export{}, wire.Wrong(at+"/fromObjectRef",
				"%s.fromObjectRef: apiVersion, kind and jsonPath are needed, and fromResource beside it", name(at))
		}
		read.Then = &wire.Follow{APIVersion: then.APIVersion, Kind: then.Kind, Path: then.JSONPath}
	}
	return read, nil
}
