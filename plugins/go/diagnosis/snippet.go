package diagnosis

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"orangery.dev/plugins/host"
)

const (
	// Lines shown before and after the one that is meant.
	around = 5
	// The width of a line's number with its colon.
	margin = 6
	// Longer lines are cut, so that generated ones do not fill the message.
	widest = 240
	marker = "\u02c6≈≈≈≈≈≈≈"
)

// Snippet is some lines of a text around a place, with a marker below it, as Landscaper prints them. The line counts
// from 1, the column is a number of characters from 0. A line that the text has not gives nothing.
func Snippet(line, column int, text string) string {
	lines := strings.Split(host.Text(text), "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	var shown strings.Builder
	for number := max(1, line-around); number <= min(len(lines), line+around); number++ {
		source := cut(strings.TrimSuffix(lines[number-1], "\r"))
		fmt.Fprintf(&shown, "%-*s%s\n", margin, fmt.Sprintf("%d:", number), source)
		if number == line {
			fmt.Fprintf(&shown, "%s%s\n", strings.Repeat(" ", margin+min(column, utf8.RuneCountInString(source))), marker)
		}
	}
	return shown.String()
}

func cut(line string) string {
	if utf8.RuneCountInString(line) <= widest {
		return line
	}
	return string([]rune(line)[:widest]) + "…"
}

// Characters is how many characters the first bytes of a line are.
func Characters(text string, line, bytes int) int {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) || bytes > len(lines[line-1]) {
		return bytes
	}
	return utf8.RuneCountInString(lines[line-1][:bytes])
}

// Bounded is the text, cut where it is longer than so many bytes.
func Bounded(text string, most int) string {
	text = host.Text(text)
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return fmt.Sprintf("%s… (%d bytes more)", text[:most], len(text)-most)
}
