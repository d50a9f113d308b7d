// Package source gets charts: from where the configuration says, checked before Helm reads them.
package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"orangery.dev/helm/config"
	"orangery.dev/helm/gz"
	"orangery.dev/helm/wire"
)

// largest is the size of an archive that is still read, packed as unpacked: there is room for that in a call, and none for the
// 100 MiB that Helm takes.
const largest = 32 << 20

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

// read reads an archive. What Helm would take without a word, such as a link, is an error here.
func read(from config.Chart, packed []byte) (*chart.Chart, error) {
	if len(packed) > largest {
		return nil, wire.Wrong("/chart", "%s has %d MiB; at most %d MiB are read", from, len(packed)>>20, largest>>20)
	}
	files, err := unpack(packed)
	if err == nil {
		err = check(files)
	}
	if err != nil {
		return nil, wire.Wrong("/chart", "%s cannot be used: %s", from, err)
	}
	// Helm reads archives; this one costs nothing to unpack again.
	read, err := loader.LoadArchive(bytes.NewReader(gz.Stored(files)))
	if err != nil {
		return nil, wire.Wrong("/chart", "%s cannot be read: %s", from, err)
	}
	if err := installable(read); err != nil {
		return nil, wire.Wrong("/chart", "%s cannot be installed: %s", from, err)
	}
	return read, nil
}

// unpack is the files of an archive, as tar has them.
func unpack(packed []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, errors.New("it is no archive; pack it with helm package")
	}
	var files bytes.Buffer
	// An archive ends with its size when unpacked, which nobody has to believe.
	files.Grow(int(min(binary.LittleEndian.Uint32(packed[len(packed)-4:]), 1<<20)) + bytes.MinRead)
	switch _, err := files.ReadFrom(io.LimitReader(reader, largest+1)); {
	case err != nil:
		return nil, fmt.Errorf("the archive is damaged: %w", err)
	case files.Len() > largest:
		return nil, fmt.Errorf("it has more than %d MiB when unpacked", largest>>20)
	default:
		return files.Bytes(), nil
	}
}

func check(unpacked []byte) error {
	files := tar.NewReader(bytes.NewReader(unpacked))
	for {
		file, err := files.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("the archive is damaged: %w", err)
		case file.Typeflag == tar.TypeSymlink || file.Typeflag == tar.TypeLink:
			return fmt.Errorf("%s is a link; pack the chart with helm package, which puts the content there", file.Name)
		case leaves(file.Name):
			return fmt.Errorf("%s leads out of the chart", file.Name)
		}
	}
}

func leaves(name string) bool {
	if strings.HasPrefix(name, "/") {
		return true
	}
	for part := range strings.SplitSeq(strings.ReplaceAll(name, "\\", "/"), "/") {
		if part == ".." {
			return true
		}
	}
	return false
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
