package gotemplate

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"unicode/utf8"

	"orangery.dev/plugins/diagnosis"
	"orangery.dev/plugins/host"
)

const (
	// mostMessage is how many bytes a message may have.
	mostMessage = 4096
	// noValueMark is what text/template prints for what is not there.
	noValueMark = "<no value>"
	// mostIncluders is how many of the files that include a failing one are told.
	mostIncluders = 3
	// mostNoValues is how many places are listed.
	mostNoValues = 20
	// mostSnippets is how many of them are shown with the lines around.
	mostSnippets = 3
)

// placed is an error of a template with the text that its place is in.
type placed struct {
	file, source string
	err          error
	// parsed is what the text was parsed to; nil for an error of the parser.
	parsed *template.Template
	// atRoot says whether the inputs are its dot.
	atRoot bool
}

// Error is as text/template has it: included templates repeat it in their own.
func (p *placed) Error() string { return p.err.Error() }

// place is how text/template begins its errors: the template's name, the line, and the column in bytes from 0.
var place = regexp.MustCompile(`^template: (.*?):(\d+)(?::(\d+))?: `)

// at is where in its text the error is.
func (p *placed) at() (line, column int, rest string) {
	found := place.FindStringSubmatch(p.err.Error())
	if found == nil {
		return 0, 0, p.err.Error()
	}
	line, _ = strconv.Atoi(found[2])
	rest = p.err.Error()[len(found[0]):]
	if found[3] == "" {
		return line, p.named(line, rest), rest
	}
	bytes, _ := strconv.Atoi(found[3])
	return line, diagnosis.Characters(p.source, line, bytes), rest
}

// quoted is what an error of the parser names. It tells no column.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)+"`)

// named is the column of what an error names, where that stands once in the line, and -1 elsewhere.
func (p *placed) named(line int, message string) int {
	word, err := strconv.Unquote(quoted.FindString(message))
	lines := strings.Split(p.source, "\n")
	if err != nil || line < 1 || line > len(lines) {
		return -1
	}
	content := lines[line-1]
	if strings.Count(content, word) != 1 {
		return -1
	}
	return utf8.RuneCountInString(content[:strings.Index(content, word)])
}

// failure tells an error at its innermost place, and which files include that.
func failure(err error, mask *diagnosis.Mask) *host.Failure {
	chain := []*placed{}
	for next := (*placed)(nil); errors.As(err, &next); err = next.err {
		chain = append(chain, next)
		mask.Show(next.source)
	}
	if len(chain) == 0 {
		return &host.Failure{Message: mask.Of(diagnosis.Bounded(err.Error(), mostMessage))}
	}
	innermost := chain[len(chain)-1]
	line, column, message := innermost.at()
	message = strings.TrimPrefix(message, fmt.Sprintf("executing %q at ", mainName))
	message = strings.TrimSpace(message) + includedAt(chain[:len(chain)-1])
	failure := &host.Failure{
		Message: diagnosis.Bounded(mask.Of(message), mostMessage),
		File:    innermost.file,
		Line:    uint32(line),
		Snippet: diagnosis.Snippet(line, max(column, 0), innermost.source),
		Reads:   innermost.reads(line),
	}
	if column >= 0 {
		failure.Column = uint32(column) + 1
	}
	return failure
}

// includedAt tells from where a file is included, outermost last. The middle of a long chain is left out.
func includedAt(chain []*placed) string {
	places := []string{}
	for i := len(chain) - 1; i >= 0; i-- {
		places = append(places, "included at "+chain[i].where())
	}
	if left := len(places) - mostIncluders - 1; left > 0 {
		places = slices.Replace(places, mostIncluders, mostIncluders+left, fmt.Sprintf("… (%d more)", left))
	}
	if len(places) == 0 {
		return ""
	}
	return ", " + strings.Join(places, ", ")
}

// where is the place in words.
func (p *placed) where() string {
	line, column, _ := p.at()
	if p.file == "" {
		return fmt.Sprintf("%d:%d of the template", line, column+1)
	}
	return fmt.Sprintf("%d:%d of %s", line, column+1, p.file)
}

// notText refuses an output that is no UTF-8, which YAML would not read.
func notText(request host.Request, output string, mask *diagnosis.Mask) *host.Failure {
	if utf8.ValidString(output) {
		return nil
	}
	before := output
	for i, character := range output {
		if _, size := utf8.DecodeRuneInString(output[i:]); character == utf8.RuneError && size == 1 {
			before = output[:i]
			break
		}
	}
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndex(before, "\n")+1:])
	return &host.Failure{
		Message: fmt.Sprintf("the output is no UTF-8 text, at %d:%d of the output; write binary content by `b64enc`, and cut texts at characters",
			line, column+1),
		File:    request.File,
		Snippet: mask.Of(diagnosis.Snippet(line, column, output)),
	}
}

// names of the lists, as Landscaper's message has them.
var names = map[host.Execution]string{
	host.Deploy:          "deploy execution",
	host.Subinstallation: "subinstallation execution",
	host.Export:          "export execution",
}

// noValue refuses an output with something that was not there, and lists the places in the output.
func noValue(request host.Request, output string, mask *diagnosis.Mask) *host.Failure {
	if !strings.Contains(output, noValueMark) {
		return nil
	}
	places, snippets := []string{}, []string{}
	for i, content := range strings.Split(output, "\n") {
		before, _, found := strings.Cut(content, noValueMark)
		if !found {
			continue
		}
		column := len([]rune(before))
		places = append(places, fmt.Sprintf("%d:%d", i+1, column+1))
		snippets = append(snippets, fmt.Sprintf("line %d:%d\n%s", i+1, column+1, diagnosis.Snippet(i+1, column, output)))
	}
	listed, more := places[:min(len(places), mostNoValues)], ""
	if len(places) > len(listed) {
		more = fmt.Sprintf(" and %d more", len(places)-len(listed))
	}
	name := names[request.Execution]
	if name == "" {
		name = string(request.Execution)
	}
	return &host.Failure{
		Message: fmt.Sprintf("template %q contains fields with \"no value\": what the template printed there is not among its inputs; at %s%s of the output; give the values or a `default`",
			name, strings.Join(listed, ", "), more),
		File:    request.File,
		Snippet: mask.Of(strings.Join(snippets[:min(len(snippets), mostSnippets)], "\n")),
	}
}
