// Package source gets charts: from where the configuration says, checked before Helm reads them.
package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"orangery.dev/helm/config"
	"orangery.dev/helm/wire"
)

// Chart fetches, checks and reads a chart. Errors are of type *wire.Fault.
func Chart(from config.Chart, host wire.Host) (*chart.Chart, error) {
	host.Trace(fmt.Sprintf("reading %s", from))
	packed, provenance, err := fetch(from, host)
	if err != nil {
		return nil, err
	}
	if from.Digest != "" {
		if sum := sha256.Sum256(packed); "sha256:"+hex.EncodeToString(sum[:]) != from.Digest {
			return nil, wire.Wrong("/chart/digest", "%s has the digest sha256:%s, and chart.digest asks for %s; "+
				"the chart was replaced, or the digest is of another one", from, hex.EncodeToString(sum[:]), from.Digest)
		}
	}
	found, err := read(from, packed)
	if err == nil && from.Keyring != "" {
		err = verify(from, found, packed, provenance)
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// fetch gets an archive, and its provenance file where that is asked for.
func fetch(from config.Chart, host wire.Host) (packed, provenance []byte, err error) {
	var artifact wire.Artifact
	switch {
	case from.Archive != nil:
		return from.Archive, nil, nil
	case from.Ref != "":
		artifact, err = host.OCI(strings.TrimPrefix(from.Ref, "oci://"))
	case from.URL != "":
		artifact, err = host.URL(from.URL)
	case from.Repository != nil:
		artifact, err = host.HelmRepository(from.Repository.URL, from.Repository.Name, from.Repository.Version)
	default:
		artifact, err = host.ComponentResource(from.Resource)
	}
	if err != nil {
		return nil, nil, err
	}
	if artifact.Size() > largest {
		return nil, nil, wire.Wrong("/chart", "%s has %d MiB; at most %d MiB are read", from, artifact.Size()>>20, largest>>20)
	}
	if from.Keyring != "" {
		if provenance, err = provenanceOf(from, artifact, host); err != nil {
			return nil, nil, err
		}
	}
	packed, err = artifact.Read()
	return packed, provenance, err
}

func read(from config.Chart, packed []byte) (*chart.Chart, error) {
	if len(packed) > largest {
		return nil, wire.Wrong("/chart", "%s has %d MiB; at most %d MiB are read", from, len(packed)>>20, largest>>20)
	}
	files, err := unpack(packed)
	if err != nil {
		return nil, wire.Wrong("/chart", "%s cannot be used: %s", from, err)
	}
	read, err := loader.LoadFiles(files)
	if err != nil {
		return nil, wire.Wrong("/chart", "%s cannot be read: %s", from, err)
	}
	if err := installable(read); err != nil {
		return nil, wire.Wrong("/chart", "%s cannot be installed: %s", from, err)
	}
	return read, nil
}

// installable is what the command line of Helm checks before it installs (pkg/cmd/install.go).
func installable(of *chart.Chart) error {
	if kind := of.Metadata.Type; kind != "" && kind != "application" {
		return fmt.Errorf("it is a %s chart; only application charts are installable", kind)
	}
	vendored := map[string]bool{}
	for _, dependency := range of.Dependencies() {
		vendored[dependency.Name()] = true
	}
	missing := []string{}
	for _, dependency := range of.Metadata.Dependencies {
		if !vendored[dependency.Name] {
			missing = append(missing, dependency.Name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("its dependencies %s are not in charts/; pack it after helm dependency update",
			strings.Join(missing, ", "))
	}
	return nil
}
