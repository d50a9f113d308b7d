package render

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"sigs.k8s.io/yaml"
)

const source = "# Source: "

// texts are the documents that a call has read, by their text. Each is read once: what is sorted is written as a manifest
// and read as objects, and most of an upgrade stands in the release before it. What is read is never changed.
type texts map[string]map[string]any

// read is a document as it is written; empty where there are only comments.
func (t texts) read(document string) (map[string]any, error) {
	key := document
	if strings.HasPrefix(key, source) {
		_, key, _ = strings.Cut(key, "\n")
	}
	// Line ends at the end only count in a text that keeps them (|+).
	for strings.HasSuffix(key, "\n\n") && !strings.Contains(key, "+") {
		key = key[:len(key)-1]
	}
	if content, isKnown := t[key]; isKnown {
		return content, nil
	}
	var content map[string]any
	if err := yaml.Unmarshal([]byte(document), &content); err != nil {
		return nil, err
	}
	t[key] = content
	return content, nil
}

// objects are those of a text of one or more documents.
func (t texts) objects(from, text string) ([]Object, error) {
	var objects []Object
	for _, document := range split(text) {
		from := sourceOf(document, from)
		content, err := t.read(document)
		if err != nil {
			return nil, fmt.Errorf("%s: the rendered document is no object: %w", from, err)
		}
		if len(content) == 0 {
			continue
		}
		taken, err := takeApart(Object{Content: content, Source: from})
		if err != nil {
			return nil, err
		}
		objects = append(objects, taken...)
	}
	return objects, nil
}

// sorted has Helm sort rendered files into hooks and other documents. Helm reads documents whole for their heads; it is
// given the heads.
func (t texts) sorted(files map[string]string) ([]*release.Hook, []releaseutil.Manifest, error) {
	// No name of a file has this, and it comes before all that a name can go on with.
	const mark = "\x00"
	heads, documents := map[string]string{}, map[string]string{}
	for file, text := range files {
		for i, document := range separated(text) {
			name := fmt.Sprintf("%s%s%06d", file, mark, i)
			heads[name], documents[name] = t.head(document), document
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(heads, nil, releaseutil.InstallOrder)
	if err != nil {
		// Whose names are those of the files.
		return releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	}
	for _, hook := range hooks {
		hook.Manifest = documents[hook.Path]
		hook.Path, _, _ = strings.Cut(hook.Path, mark)
	}
	for i := range manifests {
		one := &manifests[i]
		one.Content = documents[one.Name]
		one.Name, _, _ = strings.Cut(one.Name, mark)
	}
	return hooks, manifests, nil
}

// head is a document with nothing but what SortManifests looks at. Where that is not as it should be the document stays as
// it is: Helm knows what to make of it.
func (t texts) head(document string) string {
	content, err := t.read(document)
	metadata, isObject := content["metadata"].(map[string]any)
	annotations, areObject := metadata["annotations"].(map[string]any)
	if err != nil || !isObject || !areObject && metadata["annotations"] != nil {
		return document
	}
	for _, value := range annotations {
		if _, isText := value.(string); !isText {
			return document
		}
	}
	head := map[string]any{"annotations": annotations, "name": metadata["name"]}
	texts := []any{content["apiVersion"], content["kind"], metadata["name"]}
	for _, text := range texts {
		if _, isText := text.(string); !isText {
			return document
		}
	}
	written, err := json.Marshal(map[string]any{"apiVersion": texts[0], "kind": texts[1], "metadata": head})
	if err != nil {
		return document
	}
	return string(written)
}

// sourceOf is the template that Helm names above each document of a manifest; else where the text is from.
func sourceOf(document, from string) string {
	for line := range strings.Lines(document) {
		if after, found := strings.CutPrefix(strings.TrimSpace(line), source); found {
			return after
		}
	}
	return from
}

// split takes the documents of a manifest apart. What Helm has put together itself is known by how each document begins.
func split(text string) []string {
	const begin = "---\n" + source
	if rest, ours := strings.CutPrefix(text, begin); ours && strings.Count(rest, "\n---") == strings.Count(rest, "\n"+begin) {
		documents := strings.Split(rest, "\n"+begin)
		for i, document := range documents {
			documents[i] = source + document
		}
		return documents
	}
	return separated(text)
}

// separated takes the documents of a text apart as SplitManifests of Helm does, which is ten times as fast without its
// regular expression, `(?:^|\s*\n)---\s*`.
func separated(text string) []string {
	const blank, mark = "\t\n\f\r ", "---"
	rest := strings.TrimLeftFunc(text, unicode.IsSpace)
	if after, isMarked := strings.CutPrefix(rest, mark); isMarked {
		rest = strings.TrimLeft(after, blank)
	}
	var documents []string
	for goesOn := true; goesOn; {
		var document, after string
		document, after, goesOn = strings.Cut(rest, "\n"+mark)
		if goesOn {
			document, rest = strings.TrimRight(document, blank), strings.TrimLeft(after, blank)
		}
		if document = strings.TrimLeftFunc(document, unicode.IsSpace); document != "" {
			documents = append(documents, document)
		}
	}
	return documents
}
