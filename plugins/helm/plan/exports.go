package plan

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"orangery.dev/helm/config"
	"orangery.dev/helm/wire"
)

// exports are what the item exports: from objects, which the host looks at, or from the values of the release. An item
// without any exports an empty object, as the original does.
func (c *call) exports(values map[string]any) ([]wire.Export, error) {
	exports := []wire.Export{{Source: wire.ExportSource{Value: map[string]any{}}}}
	for _, export := range c.config.Exports {
		if export.From != nil {
			source := &wire.PathSource{On: export.On, Key: c.within(*export.From), Path: export.Path, Then: export.Then}
			exports = append(exports, wire.Export{Key: export.Key, Source: wire.ExportSource{Path: source}})
			continue
		}
		value, err := of(values, export)
		if err != nil {
			return nil, err
		}
		exports = append(exports, wire.Export{Key: export.Key, Source: wire.ExportSource{Value: value}})
	}
	return exports, nil
}

// within is a key whose namespace is that of the release where it names none.
func (c *call) within(key wire.Key) wire.Key {
	if key.Namespace == "" && c.cluster.HasNamespaces(key.APIVersion, key.Kind) {
		key.Namespace = c.config.Namespace
	}
	return key
}

// of is the value at a path such as `.Values.ingress.hosts[0]`.
func of(values map[string]any, export config.Export) (any, error) {
	// Numbers and nested maps as JSON has them.
	text, err := json.Marshal(map[string]any{"Values": values})
	if err != nil {
		return nil, wire.Wrong(export.At, "the values of the release cannot be exported: %s", err)
	}
	var found any
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, wire.Wrong(export.At, "the values of the release cannot be exported: %s", err)
	}
	steps, err := steps(export.Path)
	if err != nil {
		return nil, wire.Wrong(export.At+"/jsonPath", "the export %s: jsonPath %s: %s", export.Key, export.Path, err)
	}
	for _, step := range steps {
		var there bool
		if found, there = next(found, step); !there {
			return nil, wire.Wrong(export.At+"/jsonPath",
				"the export %s: the values of the release have nothing at %s; without fromResource a path begins with .Values",
				export.Key, export.Path)
		}
	}
	return found, nil
}

func next(in any, step string) (any, bool) {
	switch in := in.(type) {
	case map[string]any:
		value, there := in[step]
		return value, there
	case []any:
		index, err := strconv.Atoi(step)
		if err != nil || index < 0 || index >= len(in) {
			return nil, false
		}
		return in[index], true
	default:
		return nil, false
	}
}

// steps are the names and indexes of a path: `.a.b`, `a[0]`, `a['b.c']`.
func steps(path string) ([]string, error) {
	rest := strings.TrimPrefix(strings.Trim(path, "{}"), "$")
	var steps []string
	for rest != "" {
		var step string
		switch {
		case rest[0] == '[':
			inside, after, closed := strings.Cut(rest[1:], "]")
			if !closed {
				return nil, fmt.Errorf("a bracket is not closed")
			}
			step, rest = strings.Trim(inside, `'"`), after
		default:
			rest = strings.TrimPrefix(rest, ".")
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			step, rest = rest[:end], rest[end:]
		}
		if step == "" || strings.ContainsAny(step, "*?@:,") {
			return nil, fmt.Errorf("of values it takes names and indexes only, such as .Values.hosts[0].name")
		}
		steps = append(steps, step)
	}
	return steps, nil
}
