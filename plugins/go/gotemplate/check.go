package gotemplate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"orangery.dev/plugins/diagnosis"
	"orangery.dev/plugins/host"
)

// Check looks at a template, and at the files that it includes by a fixed name, without rendering.
func Check(h host.Host, request host.Request) *host.Findings {
	look := &look{host: h, seen: map[visit]bool{}, found: &host.Findings{}}
	look.text(request.File, request.Template, true)
	return look.found
}

// visit is a file, and whether it is given the inputs as a whole.
type visit struct {
	file   string
	atRoot bool
}

type look struct {
	host  host.Host
	seen  map[visit]bool
	found *host.Findings
}

// text looks at one text; atRoot says whether the inputs are its dot.
func (l *look) text(file, source string, atRoot bool) {
	functions := (&execution{host: l.host, included: map[string]int{}}).functions()
	parsed, err := template.New(mainName).Funcs(sprigFunctions).Funcs(functions).Parse(source)
	if err != nil {
		wrong := failure(&placed{file: file, source: source, err: err}, diagnosis.NewMask(host.Request{Template: source}, nil))
		if strings.HasPrefix(wrong.Message, "function ") {
			wrong.Message += "; correct its name; there are the functions of text/template, of sprig, and of Landscaper"
		}
		l.fail(wrong)
		return
	}
	all := parsed.Templates()
	slices.SortFunc(all, func(a, b *template.Template) int { return strings.Compare(a.Name(), b.Name()) })
	for _, defined := range all {
		if defined.Tree == nil {
			continue
		}
		isMain := defined.Name() == mainName
		walk := &walk{look: l, file: file, source: source, templates: parsed, dollar: atRoot && isMain}
		walk.list(defined.Root, walk.dollar)
	}
}

func (l *look) fail(failure *host.Failure) {
	isKnown := slices.ContainsFunc(l.found.Failures, func(known host.Failure) bool { return reflect.DeepEqual(known, *failure) })
	if !isKnown {
		l.found.Failures = append(l.found.Failures, *failure)
	}
}

// walk is a look at the tree of one defined template. The inputs are known as `$`, and as the dot outside of range and
// with.
type walk struct {
	look         *look
	file, source string
	templates    *template.Template
	dollar       bool
}

func (w *walk) list(list *parse.ListNode, dot bool) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		w.node(node, dot)
	}
}

func (w *walk) node(node parse.Node, dot bool) {
	switch node := node.(type) {
	case *parse.ActionNode:
		w.pipe(node.Pipe, dot)
	case *parse.IfNode:
		w.branch(&node.BranchNode, dot, dot)
	case *parse.RangeNode:
		w.branch(&node.BranchNode, dot, false)
	case *parse.WithNode:
		w.branch(&node.BranchNode, dot, false)
	case *parse.TemplateNode:
		if w.templates.Lookup(node.Name) == nil {
			w.fail(node.Pos, node.Name, fmt.Sprintf("template %q not defined", node.Name))
		}
		w.pipe(node.Pipe, dot)
	}
}

func (w *walk) branch(node *parse.BranchNode, dot, inside bool) {
	w.pipe(node.Pipe, dot)
	w.list(node.List, inside)
	w.list(node.ElseList, dot)
}

func (w *walk) pipe(pipe *parse.PipeNode, dot bool) {
	if pipe == nil {
		return
	}
	for _, command := range pipe.Cmds {
		w.command(command, dot)
		for _, argument := range command.Args {
			w.argument(argument, dot)
		}
	}
}

func (w *walk) argument(node parse.Node, dot bool) {
	switch node := node.(type) {
	case *parse.FieldNode:
		if dot {
			w.refer(node, node.Ident)
		}
	case *parse.VariableNode:
		if w.dollar && node.Ident[0] == "$" && len(node.Ident) > 1 {
			w.refer(node, node.Ident[1:])
		}
	case *parse.ChainNode:
		w.argument(node.Node, dot)
	case *parse.PipeNode:
		w.pipe(node, dot)
	}
}

// command looks at the files that functions read by a fixed name.
func (w *walk) command(node *parse.CommandNode, dot bool) {
	if len(node.Args) < 2 {
		return
	}
	function, isFunction := node.Args[0].(*parse.IdentifierNode)
	name, isFixed := node.Args[1].(*parse.StringNode)
	if !isFunction || !isFixed || function.Ident != "include" && function.Ident != "readFile" {
		return
	}
	path := host.Path(name.Text)
	source, err := w.look.host.ReadFile(path)
	if err != nil {
		w.fail(name.Pos, name.Quoted, err.Error())
		return
	}
	if function.Ident != "include" {
		return
	}
	visit := visit{file: path, atRoot: len(node.Args) > 2 && w.isRoot(node.Args[2], dot)}
	if !w.look.seen[visit] {
		w.look.seen[visit] = true
		w.look.text(path, string(source), visit.atRoot)
	}
}

func (w *walk) isRoot(node parse.Node, dot bool) bool {
	switch node := node.(type) {
	case *parse.DotNode:
		return dot
	case *parse.VariableNode:
		return w.dollar && len(node.Ident) == 1 && node.Ident[0] == "$"
	default:
		return false
	}
}

// place is the line and the column, from 1, where a written node begins. The parser tells where its last part does.
func (w *walk) place(position parse.Pos, written string) (line, column int) {
	end := min(len(w.source), int(position)+len(written))
	start := min(int(position), len(w.source))
	if begin := strings.LastIndex(w.source[:end], written); begin >= 0 && begin+len(written) >= start {
		start = begin
	}
	before := w.source[:start]
	return strings.Count(before, "\n") + 1, len([]rune(before[strings.LastIndex(before, "\n")+1:])) + 1
}

func (w *walk) refer(node parse.Node, path []string) {
	line, column := w.place(node.Position(), node.String())
	reference := host.Reference{Path: path, File: w.file, Line: uint32(line), Column: uint32(column)}
	isKnown := slices.ContainsFunc(w.look.found.References, func(known host.Reference) bool {
		return known.File == reference.File && known.Line == reference.Line && known.Column == reference.Column
	})
	if !isKnown {
		w.look.found.References = append(w.look.found.References, reference)
	}
}

func (w *walk) fail(position parse.Pos, written, message string) {
	line, column := w.place(position, written)
	w.look.fail(&host.Failure{
		Message: message, File: w.file, Line: uint32(line), Column: uint32(column),
		Snippet: diagnosis.Snippet(line, column-1, w.source),
	})
}
