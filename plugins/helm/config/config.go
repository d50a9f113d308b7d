// Package config reads the provider configuration of Landscaper's Helm deployer (docs/wire.md §8.2). Field names are
// read in any case, as the original reads them.
package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/chart/v2/util"

	"orangery.dev/helm/wire"
)

const (
	// Version is the API version of the configuration and of the status.
	Version = "helm.deployer.landscaper.gardener.cloud/v1alpha1"
	kind    = "ProviderConfiguration"
)

// Configuration is what an item asks for.
type Configuration struct {
	Chart Chart
	// Name is the name of the release.
	Name string
	// Namespace is where the release is.
	Namespace       string
	CreateNamespace bool
	// Values are laid over those of the chart.
	Values map[string]any
	// Release says whether there is a release of Helm, or only its objects.
	Release                bool
	Install, Upgrade       Terms
	UpdateStrategy         wire.How
	DefaultReadiness       bool
	Readiness              []wire.Readiness
	Exports                []Export
	DeletionOrder, Pruning []wire.DeletionGroup
}

// Terms are how a release is installed or upgraded.
type Terms struct {
	// Atomic rolls back what fails, and waits.
	Atomic bool `json:"atomic"`
	// Force replaces objects instead of merging.
	Force bool `json:"force"`
	// SkipSchemaValidation leaves values.schema.json out of account.
	SkipSchemaValidation bool `json:"skipSchemaValidation"`
	// TakeOwnership adopts objects that exist, whoever owns them.
	TakeOwnership bool `json:"takeOwnership"`
	// Wait lets the release be deployed only when its objects are ready.
	Wait bool `json:"wait"`
	// ServerSideApply lets the API server merge, under Helm's field manager. Without it a release goes on as it began,
	// and begins without.
	ServerSideApply *bool `json:"serverSideApply"`
	// Timeout is checked and has no effect: what is left of the item's own time counts.
	Timeout json.RawMessage `json:"timeout"`
}

// Waits tells whether the release is deployed only when its objects are ready.
func (t Terms) Waits() bool { return t.Wait || t.Atomic }

// document is the configuration as it is written.
type document struct {
	APIVersion           string          `json:"apiVersion"`
	Kind                 string          `json:"kind"`
	Chart                *chart          `json:"chart"`
	Name                 string          `json:"name"`
	Namespace            string          `json:"namespace"`
	CreateNamespace      bool            `json:"createNamespace"`
	Values               json.RawMessage `json:"values"`
	HelmDeployment       *bool           `json:"helmDeployment"`
	HelmDeploymentConfig struct {
		Install   json.RawMessage `json:"install"`
		Upgrade   json.RawMessage `json:"upgrade"`
		Uninstall json.RawMessage `json:"uninstall"`
	} `json:"helmDeploymentConfig"`
	UpdateStrategy  string `json:"updateStrategy"`
	ReadinessChecks struct {
		DisableDefault bool    `json:"disableDefault"`
		Custom         []check `json:"custom"`
	} `json:"readinessChecks"`
	Exports struct {
		Exports []export `json:"exports"`
	} `json:"exports"`
	ExportsFromManifests       []export `json:"exportsFromManifests"`
	DeletionGroups             []group  `json:"deletionGroups"`
	DeletionGroupsDuringUpdate []group  `json:"deletionGroupsDuringUpdate"`
}

// Read reads a configuration. Errors are of type *wire.Fault.
func Read(text json.RawMessage) (*Configuration, error) {
	var written document
	if err := json.Unmarshal(text, &written); err != nil {
		return nil, undecodable("", err)
	}
	if written.APIVersion != Version || written.Kind != kind {
		return nil, wire.Wrong("/apiVersion", "the configuration is a %q of %q; the Helm deployer reads %s of %s",
			written.Kind, written.APIVersion, kind, Version)
	}
	c := &Configuration{
		Name: written.Name, Namespace: written.Namespace, CreateNamespace: written.CreateNamespace,
		Release:          written.HelmDeployment == nil || *written.HelmDeployment,
		DefaultReadiness: !written.ReadinessChecks.DisableDefault,
	}
	steps := []func(*document) error{
		c.readRelease, c.readChart, c.readValues, c.readTerms, c.readStrategy, c.readReadiness, c.readExports, c.readGroups,
	}
	for _, step := range steps {
		if err := step(&written); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// ForUninstall reads what a deletion needs of a configuration, also of one that nothing could be deployed by: name and namespace
// of the release, empty where they cannot be read, and the order of deletion where there is no release. Errors are of type
// *wire.Fault.
func ForUninstall(text json.RawMessage) (*Configuration, error) {
	var written struct {
		Name, Namespace, HelmDeployment, DeletionGroups json.RawMessage
	}
	c := &Configuration{Release: true}
	if json.Unmarshal(text, &written) != nil {
		return c, nil
	}
	for _, field := range []struct {
		text json.RawMessage
		into any
	}{{written.Name, &c.Name}, {written.Namespace, &c.Namespace}, {written.HelmDeployment, &c.Release}} {
		if json.Unmarshal(field.text, field.into) != nil {
			continue
		}
	}
	if c.Release || len(written.DeletionGroups) == 0 {
		return c, nil
	}
	var groups document
	if err := json.Unmarshal(written.DeletionGroups, &groups.DeletionGroups); err != nil {
		return nil, undecodable("/deletionGroups", err)
	}
	return c, c.readGroups(&groups)
}

func (c *Configuration) readRelease(written *document) error {
	if err := util.ValidateReleaseName(written.Name); err != nil {
		return wire.Wrong("/name", "name: %q is no name of a release: %s", written.Name, err)
	}
	if written.Namespace == "" {
		return wire.Wrong("/namespace", "namespace: the namespace of the release is missing; add it")
	}
	return nil
}

func (c *Configuration) readValues(written *document) error {
	c.Values = map[string]any{}
	if len(written.Values) == 0 || bytes.Equal(written.Values, []byte("null")) {
		return nil
	}
	// As the command line of Helm reads a file of values: numbers stay as they are written.
	values, err := loader.LoadValues(bytes.NewReader(written.Values))
	if err != nil || !bytes.HasPrefix(bytes.TrimSpace(written.Values), []byte("{")) {
		return wire.Wrong("/values", "values: they have to be an object, such as {replicas: 2}")
	}
	c.Values = values
	return nil
}

func (c *Configuration) readTerms(written *document) error {
	var uninstall Terms
	for name, part := range map[string]struct {
		text json.RawMessage
		into *Terms
	}{
		"install":   {written.HelmDeploymentConfig.Install, &c.Install},
		"upgrade":   {written.HelmDeploymentConfig.Upgrade, &c.Upgrade},
		"uninstall": {written.HelmDeploymentConfig.Uninstall, &uninstall},
	} {
		at := "/helmDeploymentConfig/" + name
		if len(part.text) == 0 {
			continue
		}
		if err := json.Unmarshal(part.text, part.into); err != nil {
			return undecodable(at, err)
		}
		if err := checkTimeout(at+"/timeout", part.into.Timeout); err != nil {
			return err
		}
	}
	return nil
}

// checkTimeout takes nanoseconds too, as the original's type of durations does.
func checkTimeout(at string, text json.RawMessage) error {
	var written string
	var nanoseconds int64
	if len(text) == 0 || json.Unmarshal(text, &nanoseconds) == nil {
		return nil
	}
	if err := json.Unmarshal(text, &written); err != nil {
		return wire.Wrong(at, "%s: %s is no duration; write 10m, for example", name(at), text)
	}
	if _, err := time.ParseDuration(written); err != nil && written != "" {
		return wire.Wrong(at, "%s: %q is no duration; write 10m, for example", name(at), written)
	}
	return nil
}

func (c *Configuration) readStrategy(written *document) error {
	switch written.UpdateStrategy {
	case "", "update":
		c.UpdateStrategy = wire.Replace
	case "patch":
		c.UpdateStrategy = wire.Patch
	default:
		return wire.Wrong("/updateStrategy", "updateStrategy: %q is not known; use update or patch", written.UpdateStrategy)
	}
	return nil
}

func undecodable(at string, err error) *wire.Fault {
	var misfit *json.UnmarshalTypeError
	if errors.As(err, &misfit) {
		place := at
		if misfit.Field != "" {
			place += "/" + strings.ReplaceAll(misfit.Field, ".", "/")
		}
		return wire.Wrong(place, "%s: there is a %s where the field takes another type (%s)", name(place), misfit.Value, misfit.Type)
	}
	return wire.Wrong(at, "the configuration cannot be read: %s", err)
}

// name is a JSON pointer as people write it.
func name(at string) string {
	if at == "" {
		return "the configuration"
	}
	return strings.ReplaceAll(strings.TrimPrefix(at, "/"), "/", ".")
}
