package render

import (
	"fmt"
	"hash/fnv"
	"strings"

	"orangery.dev/helm/wire"
)

// Object is one object of a manifest.
type Object struct {
	// Content is the whole object.
	Content map[string]any
	// Source is the template it comes from.
	Source string
}

// Key names the object.
func (o Object) Key() wire.Key {
	return wire.Key{
		APIVersion: o.text("apiVersion"), Kind: o.text("kind"), Namespace: o.meta("namespace"), Name: o.meta("name"),
	}
}

func (o Object) text(field string) string {
	text, _ := o.Content[field].(string)
	return text
}

func (o Object) metadata() map[string]any {
	metadata, _ := o.Content["metadata"].(map[string]any)
	return metadata
}

func (o Object) meta(field string) string {
	text, _ := o.metadata()[field].(string)
	return text
}

// Annotation is the value of an annotation; empty where it has none.
func (o Object) Annotation(name string) string { return entry(o.metadata(), "annotations", name) }

// Label is the value of a label; empty where it has none.
func (o Object) Label(name string) string { return entry(o.metadata(), "labels", name) }

func entry(metadata map[string]any, field, name string) string {
	entries, _ := metadata[field].(map[string]any)
	text, _ := entries[name].(string)
	return text
}

// Marked is a copy with more labels and annotations.
func (o Object) Marked(labels, annotations map[string]string) Object {
	content := copied(o.Content)
	metadata := copied(o.metadata())
	for field, entries := range map[string]map[string]string{"labels": labels, "annotations": annotations} {
		if len(entries) == 0 {
			continue
		}
		before, _ := metadata[field].(map[string]any)
		all := copied(before)
		for name, value := range entries {
			all[name] = value
		}
		metadata[field] = all
	}
	content["metadata"] = metadata
	return Object{Content: content, Source: o.Source}
}

func copied(of map[string]any) map[string]any {
	all := make(map[string]any, len(of)+2)
	for name, value := range of {
		all[name] = value
	}
	return all
}

// Objects are those of the manifest of a release, in its order: lists are taken apart, and namespaced objects without a
// namespace are in that of the release. Errors are of type *wire.Fault.
func Objects(manifest, namespace string, cluster *Cluster, seed uint64) ([]Object, error) {
	objects, err := cluster.texts.objects("the manifest", manifest)
	if err != nil {
		return nil, wire.Wrong("", "%s", err)
	}
	for i := range objects {
		if err := place(&objects[i], namespace, cluster, seed); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// Standing are the objects of a manifest that was deployed before, as far as they can be told: those of kinds that the
// cluster does not know any more are gone, and the names that it generated are not known.
func Standing(manifest, namespace string, cluster *Cluster) ([]Object, error) {
	objects, err := cluster.texts.objects("the manifest", manifest)
	if err != nil {
		return nil, wire.Wrong("", "%s", err)
	}
	standing := objects[:0]
	for _, object := range objects {
		known := cluster.Serves(object.text("apiVersion"), object.text("kind"))
		if known && object.meta("name") != "" && place(&object, namespace, cluster, 0) == nil {
			standing = append(standing, object)
		}
	}
	return standing, nil
}

// takeApart is the object, or the items of a list.
func takeApart(object Object) ([]Object, error) {
	if object.text("apiVersion") == "" || object.text("kind") == "" {
		return nil, fmt.Errorf("%s: the rendered document has no apiVersion or no kind", object.Source)
	}
	items, isList := object.Content["items"].([]any)
	if !isList || !strings.HasSuffix(object.text("kind"), "List") || object.meta("name") != "" {
		return []Object{object}, nil
	}
	var objects []Object
	for _, item := range items {
		content, isObject := item.(map[string]any)
		if !isObject {
			return nil, fmt.Errorf("%s: the list has an item that is no object", object.Source)
		}
		taken, err := takeApart(Object{Content: content, Source: object.Source})
		if err != nil {
			return nil, err
		}
		objects = append(objects, taken...)
	}
	return objects, nil
}

// place gives an object a name where it asks for a generated one, and the namespace of the release where its kind has
// namespaces and it names none.
func place(object *Object, namespace string, cluster *Cluster, seed uint64) error {
	metadata := copied(object.metadata())
	if prefix := object.meta("generateName"); prefix != "" && object.meta("name") == "" {
		metadata["name"] = prefix + suffix(seed, object)
		delete(metadata, "generateName")
	}
	if name, _ := metadata["name"].(string); name == "" {
		return wire.Wrong("", "%s: the %s has no metadata.name; add it", object.Source, object.text("kind"))
	}
	switch cluster.scope(object.text("apiVersion"), object.text("kind")) {
	case namespaced:
		if object.meta("namespace") == "" {
			metadata["namespace"] = namespace
		}
	case clusterWide:
		delete(metadata, "namespace")
	case unserved:
		return wire.Wrong("", "%s: the cluster does not know the kind %s of %s; install its definition first, for "+
			"example with an item that this one depends on", object.Source, object.text("kind"), object.text("apiVersion"))
	}
	content := copied(object.Content)
	content["metadata"] = metadata
	object.Content = content
	return nil
}

// suffix is the same for an object in every call of a job.
func suffix(seed uint64, object *Object) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%d %s %s", seed, object.Source, object.meta("generateName"))
	left := sum.Sum64()
	text := make([]byte, 5)
	for i := range text {
		text[i] = letters[left%uint64(len(letters))]
		left /= uint64(len(letters))
	}
	return string(text)
}
