package config

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"orangery.dev/helm/wire"
)

// Chart is where the chart comes from: exactly one is set.
type Chart struct {
	// Ref is a reference of an OCI artifact.
	Ref string
	// Archive is the chart itself, a packed archive.
	Archive []byte
	// URL is where an archive is.
	URL string
	// Repository is a chart of a classic repository.
	Repository *Repository
	// Resource is a key of a resource of a component version.
	Resource string
	// Digest is what the archive has to have, `sha256:…`; empty asks for none.
	Digest string
	// Keyring has the public keys one of which has signed the chart, in ASCII armor; empty asks for no signature.
	Keyring string
}

// Repository is a chart of a classic repository.
type Repository struct {
	URL     string `json:"helmChartRepoUrl"`
	Name    string `json:"helmChartName"`
	Version string `json:"helmChartVersion"`
}

// String is the chart for messages.
func (c Chart) String() string {
	switch {
	case c.Ref != "":
		return "the chart " + c.Ref
	case c.URL != "":
		return "the chart at " + withoutCredentials(c.URL)
	case c.Repository != nil:
		return "the chart " + c.Repository.Name + " " + c.Repository.Version + " of " + withoutCredentials(c.Repository.URL)
	case c.Resource != "":
		return "the chart of the component resource"
	default:
		return "the chart in chart.archive.raw"
	}
}

func withoutCredentials(url string) string {
	scheme, rest, found := strings.Cut(url, "://")
	if !found {
		return url
	}
	authority, path, _ := strings.Cut(rest, "/")
	if _, host, has := strings.Cut(authority, "@"); has {
		authority = host
	}
	path, _, _ = strings.Cut(path, "?")
	return scheme + "://" + authority + "/" + path
}

type chart struct {
	Ref     string `json:"ref"`
	Archive *struct {
		Raw    string `json:"raw"`
		Remote *struct {
			URL string `json:"url"`
		} `json:"remote"`
	} `json:"archive"`
	HelmChartRepo *Repository     `json:"helmChartRepo"`
	ResourceRef   string          `json:"resourceRef"`
	FromResource  json.RawMessage `json:"fromResource"`
	Digest        string          `json:"digest"`
	Provenance    *struct {
		Keyring string `json:"keyring"`
	} `json:"provenance"`
}

const sources = "one of chart.ref, chart.archive, chart.helmChartRepo and chart.resourceRef"

func (c *Configuration) readChart(written *document) error {
	if written.Chart == nil {
		return wire.Wrong("/chart", "chart: it is missing; add %s", sources)
	}
	of := written.Chart
	if len(of.FromResource) > 0 && string(of.FromResource) != "null" {
		return wire.Wrong("/chart/fromResource", "chart.fromResource: this is not supported any more; use chart.resourceRef")
	}
	given := 0
	if of.Ref != "" {
		c.Chart.Ref = of.Ref
		given++
	}
	if of.ResourceRef != "" {
		c.Chart.Resource = of.ResourceRef
		given++
	}
	if of.HelmChartRepo != nil {
		c.Chart.Repository = of.HelmChartRepo
		given++
	}
	if of.Archive != nil && of.Archive.Raw != "" {
		raw, err := base64.StdEncoding.DecodeString(of.Archive.Raw)
		if err != nil {
			return wire.Wrong("/chart/archive/raw", "chart.archive.raw: it is not base64: %s", err)
		}
		c.Chart.Archive = raw
		given++
	}
	if of.Archive != nil && of.Archive.Remote != nil {
		c.Chart.URL = of.Archive.Remote.URL
		given++
	}
	if given != 1 {
		return wire.Wrong("/chart", "chart: %d sources are given; give exactly %s", given, sources)
	}
	if repository := c.Chart.Repository; repository != nil && (repository.URL == "" || repository.Name == "") {
		return wire.Wrong("/chart/helmChartRepo", "chart.helmChartRepo: helmChartRepoUrl and helmChartName are needed")
	}
	if of.Archive != nil && of.Archive.Remote != nil && c.Chart.URL == "" {
		return wire.Wrong("/chart/archive/remote/url", "chart.archive.remote.url: it is empty")
	}
	if of.Digest != "" && (!strings.HasPrefix(of.Digest, "sha256:") || len(of.Digest) != len("sha256:")+64) {
		return wire.Wrong("/chart/digest", "chart.digest: %q is no digest; write sha256: and 64 hexadecimal digits", of.Digest)
	}
	c.Chart.Digest = strings.ToLower(of.Digest)
	if of.Provenance != nil {
		c.Chart.Keyring = of.Provenance.Keyring
		switch {
		case c.Chart.Keyring == "":
			return wire.Wrong("/chart/provenance/keyring", "chart.provenance.keyring: it is empty; write public keys there, "+
				"as gpg --armor --export gives them")
		case c.Chart.Archive != nil:
			return wire.Wrong("/chart/provenance", "chart.provenance: a chart in chart.archive.raw has no provenance file; "+
				"use chart.digest")
		}
	}
	return nil
}
