package spiff

import (
	"reflect"
	"slices"
	"strings"

	"github.com/mandelsoft/spiff/dynaml"
	spiffyaml "github.com/mandelsoft/spiff/yaml"
	"go.yaml.in/yaml/v3"

	"orangery.dev/plugins/diagnosis"
	"orangery.dev/plugins/host"
)

// inputNames are the inputs that an execution may have (landscaper.md §4.3).
var inputNames = []string{
	"imports", "cd", "components", "blueprint", "blueprintDef", "componentDescriptorDef",
	"values", "deployitems", "dataobjects", "targets",
}

// Check looks at a template without evaluating it: at its YAML, and at the syntax of every expression that it writes.
// What it reads is told by names that stand in no other sense anywhere in the template.
func Check(_ host.Host, request host.Request) *host.Findings {
	e := &execution{request: request, mask: diagnosis.NewMask(request, nil)}
	found := &host.Findings{}
	if _, err := spiffyaml.Unmarshal(sourceName, []byte(request.Template)); err != nil {
		found.Failures = append(found.Failures, *e.failure(err))
		return found
	}
	var document yaml.Node
	if yaml.Unmarshal([]byte(request.Template), &document) != nil {
		return found
	}
	look := &look{execution: e, found: found, own: map[string]bool{}}
	look.node(&document, nil)
	look.refer()
	return found
}

// look is a walk over a template.
type look struct {
	execution *execution
	found     *host.Findings
	// Names that the template gives to nodes and parameters.
	own  map[string]bool
	read []host.Reference
}

func (l *look) node(node *yaml.Node, path []string) {
	for i, inner := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 {
			l.own[inner.Value] = true
			continue
		}
		l.node(inner, append(slices.Clip(path), inner.Value))
	}
	if node.Kind != yaml.ScalarNode || node.Tag != "!!str" {
		return
	}
	written := spiffyaml.EmbeddedDynaml(spiffyaml.NewNode(node.Value, sourceName), false)
	if written == nil {
		return
	}
	expression, err := dynaml.Parse(*written, path, path)
	if err != nil {
		message := "((" + diagnosis.Bounded(*written, mostExpression) + ")): " + strings.TrimSpace(err.Error())
		l.found.Failures = append(l.found.Failures, *l.execution.at(node.Line, node.Column, message))
		return
	}
	l.expression(reflect.ValueOf(expression), node)
}

var (
	referenceType = reflect.TypeFor[dynaml.ReferenceExpr]()
	parameterType = reflect.TypeFor[dynaml.Parameter]()
)

// expression finds the references and the parameters in an expression, whatever that is made of.
func (l *look) expression(value reflect.Value, node *yaml.Node) {
	switch value.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !value.IsNil() {
			l.expression(value.Elem(), node)
		}
	case reflect.Slice, reflect.Array:
		for i := range value.Len() {
			l.expression(value.Index(i), node)
		}
	case reflect.Struct:
		switch value.Type() {
		case referenceType:
			l.reference(value, node)
		case parameterType:
			l.own[value.FieldByName("Name").String()] = true
		}
		for i := range value.NumField() {
			l.expression(value.Field(i), node)
		}
	}
}

func (l *look) reference(value reflect.Value, node *yaml.Node) {
	path := []string{}
	steps := value.FieldByName("Path")
	for i := range steps.Len() {
		step := steps.Index(i).String()
		if step == "" || strings.HasPrefix(step, "[") {
			break
		}
		path = append(path, step)
	}
	if len(path) == 0 || value.FieldByName("Tag").String() != "" {
		return
	}
	reference := host.Reference{Path: path, File: l.execution.request.File}
	if hasPlaces(l.execution.request) {
		reference.Line, reference.Column = uint32(node.Line), uint32(node.Column)
	}
	l.read = append(l.read, reference)
}

// refer tells what was read of the inputs. An own name covers an input, and a mapping's inputs may be called anything.
func (l *look) refer() {
	execution := l.execution.request.Execution
	if execution == host.ImportMapping || execution == host.ExportMapping {
		return
	}
	for _, reference := range l.read {
		first := reference.Path[0]
		isKnown := slices.ContainsFunc(l.found.References, func(known host.Reference) bool {
			return known.Line == reference.Line && known.Column == reference.Column && slices.Equal(known.Path, reference.Path)
		})
		if !isKnown && slices.Contains(inputNames, first) && !l.own[first] {
			l.found.References = append(l.found.References, reference)
		}
	}
}
