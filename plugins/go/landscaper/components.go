package landscaper

import (
	"encoding/json"
	"errors"
	"fmt"

	"orangery.dev/plugins/host"
)

// selection reads `[descriptor,] name, value, …`. Without a descriptor the blueprint's own component is meant.
func selection(args []any) (json.RawMessage, []host.Pair, error) {
	if len(args) < 2 {
		return nil, nil, errors.New("at least 2 arguments are expected")
	}
	var from json.RawMessage
	if descriptor, ok := args[0].(map[string]any); ok {
		encoded, err := json.Marshal(descriptor)
		if err != nil {
			return nil, nil, fmt.Errorf("invalid component descriptor: %w", err)
		}
		from, args = encoded, args[1:]
	}
	if len(args)%2 != 0 {
		return nil, nil, errors.New("odd number of key value pairs")
	}
	identity := []host.Pair{}
	for i := 0; i < len(args); i += 2 {
		name, ok := args[i].(string)
		if !ok {
			return nil, nil, fmt.Errorf("expect argument %d to be a string", i)
		}
		value, ok := args[i+1].(string)
		if !ok {
			return nil, nil, fmt.Errorf("expect argument %d to be a string", i+1)
		}
		identity = append(identity, host.Pair{Name: host.Text(name), Value: host.Text(value)})
	}
	return from, identity, nil
}

// Resources are the resources of a component descriptor by identity, at least one.
func Resources(h host.Host, args []any) ([]map[string]any, error) {
	from, identity, err := selection(args)
	if err != nil {
		return nil, err
	}
	found, err := h.Resources(from, identity)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errors.New("no resource of the component matches the identity")
	}
	resources := []map[string]any{}
	for _, document := range found {
		resource := map[string]any{}
		if err := json.Unmarshal(document, &resource); err != nil {
			return nil, fmt.Errorf("the host answered a resource that is no object: %w", err)
		}
		resources = append(resources, resource)
	}
	return resources, nil
}

// Resource is the first of the matching resources.
func Resource(h host.Host, args []any) (map[string]any, error) {
	resources, err := Resources(h, args)
	if err != nil {
		return nil, err
	}
	return resources[0], nil
}

// Component is the descriptor of a component reference by identity.
func Component(h host.Host, args []any) (map[string]any, error) {
	from, identity, err := selection(args)
	if err != nil {
		return nil, err
	}
	document, err := h.Component(from, identity)
	if err != nil {
		return nil, err
	}
	component := map[string]any{}
	if err := json.Unmarshal(document, &component); err != nil {
		return nil, fmt.Errorf("the host answered a component descriptor that is no object: %w", err)
	}
	return component, nil
}

// oneReference reads the one argument of the functions that name a resource.
func oneReference(args []any, count string) (string, error) {
	if len(args) == 0 {
		return "", errors.New("unable to provide key for empty relative artifact reference")
	}
	if len(args) > 1 {
		return "", errors.New(count)
	}
	text, ok := args[0].(string)
	if !ok {
		return "", errors.New("unable to assert the first argument as string")
	}
	return host.Text(text), nil
}

// ResourceKey is the global identity of the resource behind a relative reference, base64 of YAML.
func ResourceKey(h host.Host, args []any) (string, error) {
	ref, err := oneReference(args, fmt.Sprintf("this function requires 1 argument, but %d were provided", len(args)))
	if err != nil {
		return "", err
	}
	return h.ResourceKey(ref)
}

// ResourceContent is the content of the resource behind a relative reference.
func ResourceContent(h host.Host, args []any) (string, error) {
	ref, err := oneReference(args, "this function only requires a single argument, but multiple were provided")
	if err != nil {
		return "", err
	}
	content, err := h.ResourceContent(ref)
	return string(content), err
}

// RepositoryContext is the effective, that is the last, repository context of a component descriptor of either schema.
// A descriptor of an unknown schema has none.
func RepositoryContext(descriptor any) (map[string]any, error) {
	if descriptor == nil {
		return nil, errors.New("Unable to get effective component descriptor as no ComponentDescriptor is defined.")
	}
	fields, ok := descriptor.(map[string]any)
	if !ok {
		return nil, errors.New("invalid component descriptor")
	}
	if version, _ := fields["apiVersion"].(string); version != "ocm.software/v3alpha1" {
		meta, _ := fields["meta"].(map[string]any)
		if version != "" || meta["schemaVersion"] != "v2" {
			return nil, nil
		}
		fields, _ = fields["component"].(map[string]any)
	}
	contexts, _ := fields["repositoryContexts"].([]any)
	if len(contexts) == 0 {
		return map[string]any{}, nil
	}
	effective, ok := contexts[len(contexts)-1].(map[string]any)
	if !ok {
		return nil, errors.New("unable to serialize repository context: it is no object")
	}
	return effective, nil
}
