// Package release is the storage of Helm: which Secrets hold the revisions of a release, and what is in them
// (helm.sh/helm/v4/pkg/storage/driver, whose driver needs a client).
package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	helm "helm.sh/helm/v4/pkg/release/v1"

	"orangery.dev/helm/wire"
)

const (
	// kind is the type of the Secrets.
	kind = "helm.sh/release.v1"
	// JobAnnotation says on the Secret of a revision which job of Orangery made it. Helm drops it when it writes.
	JobAnnotation = "orangery.dev/job"
	// OwnerAnnotation is the mark of the host: which deploy item has written an object (C-36). Helm drops it when it writes.
	OwnerAnnotation = "orangery.dev/owner"
	// largest is what a Secret can hold.
	largest = 1 << 20
	// longest is the size of a revision that is unpacked.
	longest = 64 << 20
)

// system are the labels that Helm itself sets.
var system = map[string]bool{"name": true, "owner": true, "status": true, "version": true, "createdAt": true, "modifiedAt": true}

// SecretKey names the Secret of a revision.
func SecretKey(namespace, name string, revision int) wire.Key {
	return wire.Key{
		APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, revision),
	}
}

// Secrets makes the Secrets of revisions. What several of them have in common is compressed once.
type Secrets struct {
	packed map[contents]*packedContents
}

// Secret is the Secret of a revision. `created` is when the revision began; the same for all its writes, so that they can
// be repeated; a zero time is left out. Errors are of type *wire.Fault.
func (s *Secrets) Secret(of *helm.Release, job string, created, modified time.Time) (map[string]any, error) {
	packed, err := s.pack(of)
	if err != nil {
		return nil, wire.Wrong("", "revision %d of the release %s cannot be stored: %s", of.Version, of.Name, err)
	}
	if len(packed) > largest {
		return nil, wire.Wrong("/chart", "the release %s has %d KiB when packed, and a Secret holds %d KiB; "+
			"leave files out of the chart that it does not need (.helmignore)", of.Name, len(packed)>>10, largest>>10)
	}
	labels := map[string]any{}
	for name, value := range of.Labels {
		if !system[name] {
			labels[name] = value
		}
	}
	labels["name"], labels["owner"] = of.Name, "helm"
	labels["status"], labels["version"] = of.Info.Status.String(), strconv.Itoa(of.Version)
	if !created.IsZero() {
		labels["createdAt"] = strconv.FormatInt(created.Unix(), 10)
	}
	if !modified.IsZero() {
		labels["modifiedAt"] = strconv.FormatInt(modified.Unix(), 10)
	}
	key := SecretKey(of.Namespace, of.Name, of.Version)
	metadata := map[string]any{"name": key.Name, "namespace": key.Namespace, "labels": labels}
	if job != "" {
		metadata["annotations"] = map[string]any{JobAnnotation: job}
	}
	return map[string]any{
		"apiVersion": key.APIVersion, "kind": key.Kind, "metadata": metadata, "type": kind,
		// Twice: once as Helm packs it, once as any data of a Secret.
		"data": map[string]any{"release": base64.StdEncoding.EncodeToString(packed)},
	}, nil
}

func unpack(secret map[string]any) (*helm.Release, error) {
	data, _ := secret["data"].(map[string]any)
	text, _ := data["release"].(string)
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	content, err := base64.StdEncoding.DecodeString(string(packed))
	if err != nil {
		return nil, err
	}
	// Releases of old versions of Helm are not compressed.
	if bytes.HasPrefix(content, []byte{0x1f, 0x8b, 0x08}) {
		reader, err := gzip.NewReader(bytes.NewReader(content))
		if err != nil {
			return nil, err
		}
		if content, err = io.ReadAll(io.LimitReader(reader, longest)); err != nil {
			return nil, err
		}
	}
	read := &helm.Release{}
	if err := json.Unmarshal(content, read); err != nil {
		return nil, err
	}
	if read.Info == nil || read.Chart == nil {
		return nil, fmt.Errorf("it has no info or no chart")
	}
	read.Labels = map[string]string{}
	for name, value := range labels(secret) {
		if !system[name] {
			read.Labels[name] = value
		}
	}
	return read, nil
}

func labels(secret map[string]any) map[string]string { return texts(secret, "labels") }

func texts(secret map[string]any, field string) map[string]string {
	metadata, _ := secret["metadata"].(map[string]any)
	entries, _ := metadata[field].(map[string]any)
	all := map[string]string{}
	for name, value := range entries {
		all[name], _ = value.(string)
	}
	return all
}
