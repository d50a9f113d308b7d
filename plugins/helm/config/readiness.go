package config

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"orangery.dev/helm/wire"
)

// check is one custom readiness check (docs/wire.md §9).
type check struct {
	Name             string          `json:"name"`
	Disabled         bool            `json:"disabled"`
	ResourceSelector json.RawMessage `json:"resourceSelector"`
	LabelSelector    *struct {
		APIVersion  string            `json:"apiVersion"`
		Kind        string            `json:"kind"`
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"labelSelector"`
	Requirements []struct {
		JSONPath string            `json:"jsonPath"`
		Operator string            `json:"operator"`
		Values   []json.RawMessage `json:"values"`
	} `json:"requirements"`
	TargetName string `json:"targetName"`
}

// reference names one object.
type reference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Namespace  string `json:"namespace"`
}

func (r reference) key(at string) (wire.Key, error) {
	if r.APIVersion == "" || r.Kind == "" || r.Name == "" {
		return wire.Key{}, wire.Wrong(at, "%s: apiVersion, kind and name are needed", name(at))
	}
	return wire.Key{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}, nil
}

// operators are those of a requirement, with how many values they take: none, one, or some.
var operators = map[string]string{
	"exists": "none", "!": "none", "=": "one", "==": "one", "!=": "one", "in": "some", "notin": "some",
}

func (c *Configuration) readReadiness(written *document) error {
	for i, check := range written.ReadinessChecks.Custom {
		checks, err := check.readiness(fmt.Sprintf("/readinessChecks/custom/%d", i))
		if err != nil {
			return err
		}
		c.Readiness = append(c.Readiness, checks...)
	}
	return nil
}

// readiness is one check for each selector; none where it is disabled.
func (c check) readiness(at string) ([]wire.Readiness, error) {
	if c.Name == "" {
		return nil, wire.Wrong(at+"/name", "%s: the check has no name; add it", name(at))
	}
	keys, err := c.keys(at + "/resourceSelector")
	if err != nil {
		return nil, err
	}
	rule, err := c.rule(at + "/requirements")
	if err != nil {
		return nil, err
	}
	scopes := []wire.Scope{}
	if len(keys) > 0 {
		scopes = append(scopes, wire.Scope{Keys: keys})
	}
	if labels := c.LabelSelector; labels != nil {
		if labels.APIVersion == "" || labels.Kind == "" || len(labels.MatchLabels) == 0 {
			return nil, wire.Wrong(at+"/labelSelector", "%s.labelSelector: apiVersion, kind and matchLabels are needed", name(at))
		}
		pairs := []string{}
		for label, value := range labels.MatchLabels {
			pairs = append(pairs, label+"="+value)
		}
		sort.Strings(pairs)
		scopes = append(scopes, wire.Scope{Matching: &wire.Selection{
			APIVersion: labels.APIVersion, Kind: labels.Kind, Labels: strings.Join(pairs, ","),
		}})
	}
	if len(scopes) == 0 {
		return nil, wire.Wrong(at, "the readiness check %s selects nothing; add resourceSelector or labelSelector", c.Name)
	}
	checks := []wire.Readiness{}
	if !c.Disabled {
		for _, scope := range scopes {
			checks = append(checks, wire.Readiness{Name: c.Name, On: wire.Cluster(c.TargetName), Scope: scope, Rule: rule})
		}
	}
	return checks, nil
}

// keys reads a list, as the original takes it, or one object, as its documentation has it.
func (c check) keys(at string) ([]wire.Key, error) {
	if len(c.ResourceSelector) == 0 || string(c.ResourceSelector) == "null" {
		return nil, nil
	}
	var references []reference
	if err := json.Unmarshal(c.ResourceSelector, &references); err != nil {
		var one reference
		if err := json.Unmarshal(c.ResourceSelector, &one); err != nil {
			return nil, undecodable(at, err)
		}
		references = []reference{one}
	}
	keys := []wire.Key{}
	for i, reference := range references {
		key, err := reference.key(fmt.Sprintf("%s/%d", at, i))
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func (c check) rule(at string) (wire.Rule, error) {
	rule := wire.Rule{}
	for i, requirement := range c.Requirements {
		at := fmt.Sprintf("%s/%d", at, i)
		takes, known := operators[requirement.Operator]
		count := len(requirement.Values)
		switch {
		case requirement.JSONPath == "":
			return nil, wire.Wrong(at+"/jsonPath", "%s: jsonPath is missing; add it", name(at))
		case !known:
			return nil, wire.Wrong(at+"/operator", "%s.operator: %q is not known; use exists, !, =, ==, !=, in or notin",
				name(at), requirement.Operator)
		case takes == "one" && count != 1, takes == "some" && count == 0:
			return nil, wire.Wrong(at+"/values", "%s: the operator %s takes %s value; there are %d",
				name(at), requirement.Operator, map[string]string{"one": "exactly one", "some": "at least one"}[takes], count)
		}
		values := []any{}
		for j, text := range requirement.Values {
			value, err := valueOf(text)
			if err != nil {
				return nil, wire.Wrong(fmt.Sprintf("%s/values/%d", at, j), "%s.values: value is missing; write {value: …}", name(at))
			}
			values = append(values, value)
		}
		rule = append(rule, wire.Requirement{Path: requirement.JSONPath, Operator: requirement.Operator, Values: values})
	}
	return rule, nil
}

// valueOf reads any JSON under `value`, which may be null.
func valueOf(text json.RawMessage) (any, error) {
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	for name, value := range fields {
		if strings.EqualFold(name, "value") {
			return value, nil
		}
	}
	return nil, fmt.Errorf("value is missing")
}
