package gotemplate

import (
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"orangery.dev/plugins/diagnosis"
	"orangery.dev/plugins/host"
)

// mostCalls is how many calls of defined templates are followed.
const mostCalls = 100

// dollar is the variable that a template is given.
const dollar = "$"

// known is what something in a template stands for: a path, or nil for what is computed.
type known *host.InputPath

func below(of known, steps ...host.InputStep) known {
	if of == nil {
		return nil
	}
	path := (*of).Then(steps...)
	return &path
}

// variable is a variable of a template.
type variable struct {
	name  string
	value known
}

// reader is a walk over the syntax trees of a text, in the order in which they run. It follows variables, the dot and
// loops, as far as they are simple: what is computed, or assigned again, is not followed.
type reader struct {
	templates *template.Template
	// from and to bound the failing line, in bytes.
	from, to  int
	found     diagnosis.Reads
	variables []variable
	// Variables that are assigned again.
	unsure map[string]bool
	// Calls of defined templates that were followed.
	calls map[string]bool
}

// reads is what a line of the text reads of the inputs.
func (p *placed) reads(line int) []host.InputPath {
	if p.parsed == nil || line < 1 {
		return nil
	}
	r := &reader{templates: p.parsed, unsure: map[string]bool{}, calls: map[string]bool{}}
	for range line - 1 {
		next := strings.IndexByte(p.source[r.from:], '\n')
		if next < 0 {
			return nil
		}
		r.from += next + 1
	}
	r.to = len(p.source)
	if end := strings.IndexByte(p.source[r.from:], '\n'); end >= 0 {
		r.to = r.from + end
	}
	for _, defined := range p.parsed.Templates() {
		if defined.Tree != nil {
			r.assigned(defined.Root)
		}
	}
	var root known
	if p.atRoot {
		root = &host.InputPath{}
	}
	r.call(mainName, root)
	return r.found.Paths()
}

// assigned finds the variables that are assigned again.
func (r *reader) assigned(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch node := node.(type) {
		case *parse.ActionNode:
			r.assignedBy(node.Pipe)
		case *parse.IfNode:
			r.assignedIn(&node.BranchNode)
		case *parse.RangeNode:
			r.assignedIn(&node.BranchNode)
		case *parse.WithNode:
			r.assignedIn(&node.BranchNode)
		}
	}
}

func (r *reader) assignedIn(node *parse.BranchNode) {
	r.assignedBy(node.Pipe)
	r.assigned(node.List)
	r.assigned(node.ElseList)
}

func (r *reader) assignedBy(pipe *parse.PipeNode) {
	if pipe == nil || !pipe.IsAssign {
		return
	}
	for _, variable := range pipe.Decl {
		r.unsure[variable.Ident[0]] = true
	}
}

// call follows a defined template, once for each dot that it is given.
func (r *reader) call(name string, dot known) {
	key := name
	if dot != nil {
		key = fmt.Sprint(name, *dot)
	}
	called := r.templates.Lookup(name)
	if called == nil || called.Tree == nil || r.calls[key] || len(r.calls) >= mostCalls {
		return
	}
	r.calls[key] = true
	callers := r.variables
	r.variables = []variable{{dollar, dot}}
	r.list(called.Root, dot)
	r.variables = callers
}

func (r *reader) list(list *parse.ListNode, dot known) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		r.node(node, dot)
	}
}

func (r *reader) node(node parse.Node, dot known) {
	switch node := node.(type) {
	case *parse.ActionNode:
		r.declare(node.Pipe, r.pipe(node.Pipe, dot))
	case *parse.IfNode:
		r.branch(&node.BranchNode, dot, func(known) known { return dot })
	case *parse.WithNode:
		r.branch(&node.BranchNode, dot, func(value known) known { return value })
	case *parse.RangeNode:
		r.branch(&node.BranchNode, dot, func(value known) known { return below(value, host.InputStep{Kind: host.Entries}) })
	case *parse.TemplateNode:
		r.call(node.Name, r.pipe(node.Pipe, dot))
	}
}

// branch is a block of statements; inside is their dot by the value of the pipeline. Its variables end with it.
func (r *reader) branch(node *parse.BranchNode, dot known, inside func(known) known) {
	outer := len(r.variables)
	value := r.pipe(node.Pipe, dot)
	declared := value
	if node.NodeType == parse.NodeRange {
		declared = inside(value)
	}
	r.declare(node.Pipe, declared)
	r.scope(node.List, inside(value))
	r.scope(node.ElseList, dot)
	r.variables = r.variables[:outer]
}

func (r *reader) scope(list *parse.ListNode, dot known) {
	outer := len(r.variables)
	r.list(list, dot)
	r.variables = r.variables[:outer]
}

// declare defines the variables of a pipeline. Of two, which only loops have, the first one is the key.
func (r *reader) declare(pipe *parse.PipeNode, value known) {
	if pipe.IsAssign {
		return
	}
	for i, declared := range pipe.Decl {
		if i < len(pipe.Decl)-1 {
			r.variables = append(r.variables, variable{declared.Ident[0], nil})
			continue
		}
		r.variables = append(r.variables, variable{declared.Ident[0], value})
	}
}

// pipe reads a pipeline, and answers what it stands for.
func (r *reader) pipe(pipe *parse.PipeNode, dot known) known {
	if pipe == nil {
		return nil
	}
	for _, command := range pipe.Cmds {
		for _, argument := range command.Args {
			r.argument(argument, dot)
		}
	}
	return r.value(pipe, dot)
}

func (r *reader) argument(node parse.Node, dot known) {
	value := r.value(node, dot)
	if value != nil {
		if position := int(node.Position()); position >= r.from && position <= r.to {
			r.found.Add(*value)
		}
		return
	}
	switch node := node.(type) {
	case *parse.ChainNode:
		r.argument(node.Node, dot)
	case *parse.PipeNode:
		r.pipe(node, dot)
	}
}

// value is what a node stands for, where it is nothing but an operand.
func (r *reader) value(node parse.Node, dot known) known {
	switch node := node.(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		// A template that is called is mostly given all inputs.
		if dot == nil && len(node.Ident) > 1 && slices.Contains([]string{"imports", "values"}, node.Ident[0]) {
			dot = &host.InputPath{}
		}
		return below(dot, host.Fields(node.Ident...)...)
	case *parse.VariableNode:
		return below(r.variable(node.Ident[0]), host.Fields(node.Ident[1:]...)...)
	case *parse.ChainNode:
		return below(r.value(node.Node, dot), host.Fields(node.Field...)...)
	case *parse.PipeNode:
		if len(node.Cmds) == 1 && len(node.Cmds[0].Args) == 1 {
			return r.value(node.Cmds[0].Args[0], dot)
		}
	}
	return nil
}

func (r *reader) variable(name string) known {
	if r.unsure[name] {
		return nil
	}
	for _, variable := range slices.Backward(r.variables) {
		if variable.name == name {
			return variable.value
		}
	}
	return nil
}
