// Package landscaper has the functions that Landscaper adds to both of its template engines (docs/wire.md §4.5, §4.6).
package landscaper

import (
	"errors"
	"path"
	"strings"

	"github.com/distribution/reference"
)

// dockerDomain is what a reference without a registry means. Landscaper writes it index.docker.io, and then strips it.
const dockerDomain = "docker.io"

// ParseOCIRef is the repository and the version of an OCI reference; a reference without a tag has the tag latest,
// one with tag and digest counts by its digest.
func ParseOCIRef(ref string) ([2]string, error) {
	plain := ref
	if _, rest, found := strings.Cut(ref, "://"); found {
		plain = rest
	}
	parsed, err := reference.ParseDockerRef(plain)
	if err != nil {
		return [2]string{}, err
	}
	if !strings.Contains(ref, ":") {
		return [2]string{}, errors.New("invalid reference")
	}
	repository := path.Join(reference.Domain(parsed), reference.Path(parsed))
	if rest, found := strings.CutPrefix(repository, dockerDomain+"/"); found {
		repository = strings.TrimPrefix(rest, "library/")
	}
	version := ""
	switch parsed := parsed.(type) {
	case reference.Tagged:
		version = parsed.Tag()
	case reference.Digested:
		version = parsed.Digest().String()
	}
	return [2]string{repository, version}, nil
}
