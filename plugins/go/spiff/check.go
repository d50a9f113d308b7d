package spiff

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/mandelsoft/spiff/dynaml"
	spiffyaml "github.com/mandelsoft/spiff/yaml"
	"go.yaml.in/yaml/v3"

	"orangery.dev/plugins/diagnosis"
	"orangery.dev/plugins/host"
)

// inputNames are the inputs that an execution may have (docs/wire.md §4.3).
var inputNames = []string{
	"imports", "cd", "components", "blueprint", "blueprintDef", "componentDescriptorDef",
	"values", "deployitems", "dataobjects", "targets",
}

// Check looks at a template without evaluating it: at its YAML, at the syntax of every expression that it writes, and at
// the functions that those call. What it reads is told by names that stand in no other sense anywhere in the template.
func Check(h host.Host, request host.Request) *host.Findings {
	found := &host.Findings{}
	request.Inputs, request.State = json.RawMessage("{}"), nil
	e, err := prepare(h, request)
	if err != nil {
		found.Failures = append(found.Failures, host.Failure{Message: err.Error(), File: request.File})
		return found
	}
	if _, err := spiffyaml.Unmarshal(sourceName, []byte(request.Template)); err != nil {
		found.Failures = append(found.Failures, *e.failure(err))
		return found
	}
	var document yaml.Node
	if yaml.Unmarshal([]byte(request.Template), &document) != nil {
		return found
	}
	look := newLook(e, found)
	look.functions = map[string]bool{}
	look.node(&document, nil)
	look.refer()
	return found
}

// look is a walk over a template.
type look struct {
	execution *execution
	found     *host.Findings
	// Names that the template gives to nodes and parameters.
	own map[string]bool
	// The mappings around the node that is looked at, and the parameters of lambdas.
	around     []*yaml.Node
	parameters map[string]bool
	read       []reading
	// Names that are called, and whether there is a function of that name; nil where nobody asks.
	functions map[string]bool
}

// reading is a name that an expression reads.
type reading struct {
	host.Reference
	// Whether a mapping around it has the name: then that is no input.
	covered bool
}

func newLook(e *execution, found *host.Findings) *look {
	return &look{execution: e, found: found, own: map[string]bool{}, parameters: map[string]bool{}}
}

func (l *look) node(node *yaml.Node, path []string) {
	if node.Kind == yaml.MappingNode {
		l.around = append(l.around, node)
		defer func() { l.around = l.around[:len(l.around)-1] }()
	}
	for i, inner := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 {
			l.own[inner.Value] = true
			continue
		}
		step := fmt.Sprintf("[%d]", i)
		if node.Kind == yaml.MappingNode {
			step = node.Content[i-1].Value
		}
		if node.Kind == yaml.DocumentNode {
			l.node(inner, path)
			continue
		}
		l.node(inner, append(slices.Clip(path), step))
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
		l.fail(node, path, "(("+diagnosis.Bounded(*written, mostExpression)+")): "+strings.TrimSpace(err.Error()))
		return
	}
	inside := &expressionLook{look: l, node: node, path: path}
	inside.at(reflect.ValueOf(expression), l.functions == nil)
}

// fail tells of a mistake at its place; in a structure, that is its path.
func (l *look) fail(node *yaml.Node, path []string, message string) {
	if len(path) > 0 && !hasPlaces(l.execution.request) {
		message = pathName(path) + ": " + message
	}
	l.found.Failures = append(l.found.Failures, *l.execution.at(node.Line, node.Column, message))
}

var (
	referenceType = reflect.TypeFor[dynaml.ReferenceExpr]()
	parameterType = reflect.TypeFor[dynaml.Parameter]()
	callType      = reflect.TypeFor[dynaml.CallExpr]()
	// What goes on where something in it fails.
	catching = []reflect.Type{
		reflect.TypeFor[dynaml.OrExpr](), reflect.TypeFor[dynaml.ValidOrExpr](), reflect.TypeFor[dynaml.CatchExpr](),
	}
	// The functions that do.
	catchers = []string{"catch", "defined", "optional", "require", "sync", "valid"}
)

// expressionLook is a walk over an expression, whatever that is made of.
type expressionLook struct {
	*look
	node *yaml.Node
	path []string
}

// at finds references, parameters and calls. They may be caught: then what fails in them is no failure of the template.
func (l *expressionLook) at(value reflect.Value, caught bool) {
	switch value.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !value.IsNil() {
			l.at(value.Elem(), caught)
		}
	case reflect.Slice, reflect.Array:
		for i := range value.Len() {
			l.at(value.Index(i), caught)
		}
	case reflect.Struct:
		switch value.Type() {
		case referenceType:
			l.reference(value, l.node)
		case parameterType:
			l.own[value.FieldByName("Name").String()] = true
			l.parameters[value.FieldByName("Name").String()] = true
		case callType:
			name := called(value)
			if name != "" && !caught && !l.isFunction(name) {
				l.fail(l.node, l.path, fmt.Sprintf("unknown function '%s'; correct its name; a lambda of the template is called as .%s(…)", name, name))
			}
			caught = caught || slices.Contains(catchers, name)
		}
		caught = caught || slices.Contains(catching, value.Type())
		for i := range value.NumField() {
			if !isName(value, value.Type().Field(i).Name) {
				l.at(value.Field(i), caught)
			}
		}
	}
}

// isName says whether a part of an expression is no reference to a node: the name of a function, or of a field of what
// was computed.
func isName(of reflect.Value, part string) bool {
	return of.Type() == callType && part == "Function" && called(of) != "" ||
		of.Type() == reflect.TypeFor[dynaml.QualifiedExpr]() && part == "Reference"
}

// called is the name of the function that a call calls; empty for a lambda.
func called(call reflect.Value) string {
	function := call.FieldByName("Function")
	if function.IsNil() || function.Elem().Type() != referenceType {
		return ""
	}
	path := function.Elem().FieldByName("Path")
	if function.Elem().FieldByName("Tag").String() != "" || path.Len() != 1 || path.Index(0).String() == "_" {
		return ""
	}
	return path.Index(0).String()
}

// isFunction asks spiff itself, which keeps no list: it is called with arguments that no function takes.
func (l *look) isFunction(name string) (is bool) {
	if known, asked := l.functions[name]; asked {
		return known
	}
	defer func() {
		// Some functions trust their arguments, so there is one.
		if recover() != nil {
			is = true
		}
		l.functions[name] = is
	}()
	call, err := spiffyaml.Unmarshal(sourceName, []byte("a: (( "+name+"({}, {}, {}) ))"))
	if err != nil {
		return true
	}
	_, err = l.execution.spiff.Cascade(call, nil)
	return err == nil || !strings.Contains(err.Error(), "unknown function")
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
	covered := slices.ContainsFunc(l.around, func(mapping *yaml.Node) bool { return child(mapping, path[0]) != nil })
	l.read = append(l.read, reading{reference, covered})
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
			l.found.References = append(l.found.References, reference.Reference)
		}
	}
}
