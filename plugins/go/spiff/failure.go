package spiff

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mandelsoft/spiff/dynaml"
	spiffyaml "github.com/mandelsoft/spiff/yaml"
	"go.yaml.in/yaml/v3"

	"orangery.dev/plugins/diagnosis"
	"orangery.dev/plugins/host"
)

const (
	// mostMessage is how many bytes a message may have.
	mostMessage = 4096
	// mostExpression is how many bytes of an expression are shown.
	mostExpression = 200
	// mostNodes is how many unresolved expressions are told.
	mostNodes = 10
)

// parsePlace is how spiff's YAML parser ends its errors.
var parsePlace = regexp.MustCompile(` at line (\d+), column (\d+)$`)

// failure tells an error and, where it can be found, its place in the template.
func (e *execution) failure(err error) *host.Failure {
	message, line, column := err.Error(), 0, 0
	var unresolved dynaml.UnresolvedNodes
	if errors.As(err, &unresolved) && len(unresolved.Nodes) > 0 {
		message, line, column = e.tell(unresolved.Nodes)
	} else if found := parsePlace.FindStringSubmatch(message); found != nil {
		message = strings.Replace(strings.TrimSuffix(message, found[0]), "yaml: [] ", "yaml: ", 1)
		line, _ = strconv.Atoi(found[1])
		column, _ = strconv.Atoi(found[2])
	}
	failure := e.at(line, column, refused(message))
	failure.Reads = e.reads(failure.Line)
	return failure
}

// reads is what the expressions that begin in a line read of the inputs: names that neither a mapping around them nor a
// lambda covers.
func (e *execution) reads(line uint32) []host.InputPath {
	var document yaml.Node
	if line == 0 || yaml.Unmarshal([]byte(e.request.Template), &document) != nil {
		return nil
	}
	look := newLook(e, &host.Findings{})
	look.node(&document, nil)
	reads := diagnosis.Reads{}
	for _, reading := range look.read {
		if reading.Line == line && !reading.covered && !look.parameters[reading.Path[0]] {
			reads.Add(host.Fields(reading.Path...))
		}
	}
	return reads.Paths()
}

// at is a failure at a place of the template, if that says anything.
func (e *execution) at(line, column int, message string) *host.Failure {
	failure := &host.Failure{Message: diagnosis.Bounded(e.mask.Of(message), mostMessage), File: e.request.File}
	if hasPlaces(e.request) {
		failure.Line, failure.Column = uint32(line), uint32(column)
		failure.Snippet = diagnosis.Snippet(line, max(column-1, 0), e.request.Template)
	}
	return failure
}

// hasPlaces says whether lines of the template are lines of a text that an author wrote. A structure of the blueprint
// arrives as one line of JSON.
func hasPlaces(request host.Request) bool {
	return request.File != "" || !json.Valid([]byte(request.Template))
}

// tell is one sentence about the expressions that failed, those with a reason of their own first, and the place of
// the first.
func (e *execution) tell(nodes []dynaml.UnresolvedNode) (string, int, int) {
	positions := map[string][2]int{}
	var document yaml.Node
	if yaml.Unmarshal([]byte(e.request.Template), &document) == nil {
		for _, node := range nodes {
			line, column := position(&document, node.Context)
			positions[strings.Join(node.Context, ".")] = [2]int{line, column}
		}
	}
	at := func(node dynaml.UnresolvedNode) [2]int { return positions[strings.Join(node.Context, ".")] }
	slices.SortFunc(nodes, func(a, b dynaml.UnresolvedNode) int {
		if a.HasError() != b.HasError() {
			if a.HasError() {
				return -1
			}
			return 1
		}
		left, right := at(a), at(b)
		if order := slices.Compare(left[:], right[:]); order != 0 {
			return order
		}
		return slices.Compare(a.Context, b.Context)
	})
	told := []string{}
	for _, node := range nodes[:min(len(nodes), mostNodes)] {
		told = append(told, describe(node))
	}
	if more := len(nodes) - len(told); more > 0 {
		told = append(told, fmt.Sprintf("%d more", more))
	}
	first := at(nodes[0])
	return strings.Join(told, "; "), first[0], first[1]
}

// describe is `path: (( expression )): reason`, with the reasons behind the reason.
func describe(node dynaml.UnresolvedNode) string {
	value := fmt.Sprintf("%v", dynaml.PrintableNodeValue(node))
	if _, ok := node.Value().(dynaml.Expression); ok {
		value = fmt.Sprintf("(( %s ))", value)
	}
	told := diagnosis.Bounded(value, mostExpression)
	if len(node.Context) > 0 {
		told = pathName(node.Context) + ": " + told
	}
	issue := node.Issue()
	reason := issue.Issue
	if reason == "" {
		reason = "cannot be resolved"
	}
	return told + ": " + reason + nested(issue)
}

// pathName is a path of keys and `[index]` in words.
func pathName(path []string) string {
	return strings.ReplaceAll(strings.Join(path, "."), ".[", "[")
}

func nested(issue spiffyaml.Issue) string {
	told := ""
	for _, inner := range issue.Nested {
		told += " (" + strings.TrimSpace(strings.ReplaceAll(inner.Issue, "\t", " ")) + nested(inner) + ")"
	}
	return told
}

// position is where a path of keys and `[index]` leads in a document, or the deepest part of it that there is. A key
// that the template writes is found by its own place.
func position(node *yaml.Node, path []string) (line, column int) {
	if node.Kind == yaml.DocumentNode && len(node.Content) == 1 {
		node = node.Content[0]
	}
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if len(path) == 0 {
		return node.Line, node.Column
	}
	next := child(node, path[0])
	if next == nil {
		return node.Line, node.Column
	}
	return position(next, path[1:])
}

func child(node *yaml.Node, step string) *yaml.Node {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		index, err := strconv.Atoi(strings.Trim(step, "[]"))
		if err == nil && index >= 0 && index < len(node.Content) {
			return node.Content[index]
		}
	}
	return nil
}
