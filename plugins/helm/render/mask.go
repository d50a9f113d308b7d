package render

import (
	"sort"
	"strings"
	"unicode/utf8"
)

const (
	// shortestHidden is the length from which on a value may be a secret; hiding shorter ones would garble words.
	shortestHidden = 6
	// longest is how much of an error is shown: Helm quotes whole templates.
	longest = 2000
	hidden  = "[...]"
)

// masked is an error without the values that the user gave: they may be secrets. Words that the chart has itself are none.
func masked(message string, of Order) string {
	found := map[string]bool{}
	gather(of.Values, found)
	values := []string{}
	for value := range found {
		if strings.Contains(message, value) && !inChart(value, of) {
			values = append(values, value)
		}
	}
	sort.Slice(values, func(i, j int) bool {
		return len(values[i]) > len(values[j]) || len(values[i]) == len(values[j]) && values[i] < values[j]
	})
	for _, value := range values {
		message = strings.ReplaceAll(message, value, hidden)
	}
	if len(message) > longest {
		end := longest
		for !utf8.RuneStart(message[end]) {
			end--
		}
		message = message[:end] + " …"
	}
	return message
}

func gather(value any, found map[string]bool) {
	switch value := value.(type) {
	case string:
		if text := strings.TrimSpace(value); len(text) >= shortestHidden {
			found[text] = true
			for line := range strings.Lines(text) {
				if line = strings.TrimSpace(line); len(line) >= shortestHidden {
					found[line] = true
				}
			}
		}
	case []any:
		for _, item := range value {
			gather(item, found)
		}
	case map[string]any:
		for _, item := range value {
			gather(item, found)
		}
	}
}

func inChart(value string, of Order) bool {
	for _, file := range of.Chart.Raw {
		if strings.Contains(string(file.Data), value) {
			return true
		}
	}
	return value == of.Name || value == of.Namespace
}
