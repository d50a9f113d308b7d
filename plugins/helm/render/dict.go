package render

import (
	"fmt"
	"reflect"
	"slices"

	"helm.sh/helm/v4/pkg/chart/common"
)

// dict is sprig's dict: pairs of a key and a value, the last one of an odd number without a value. Keys are texts. Some charts
// give the values of a template for one by mistake, with all files of the chart in them: sprig has fmt print these byte by byte,
// which takes a hundred times as long.
func dict(pairs ...any) map[string]any {
	made := make(map[string]any, (len(pairs)+1)/2)
	for i := 0; i < len(pairs); i += 2 {
		var value any = ""
		if i+1 < len(pairs) {
			value = pairs[i+1]
		}
		made[key(pairs[i])] = value
	}
	return made
}

// key is a value as a key: what sprig's toString makes of it.
func key(of any) string {
	switch of := of.(type) {
	case string:
		return of
	case []byte:
		return string(of)
	case error:
		return of.Error()
	case fmt.Stringer:
		return of.String()
	default:
		return string(appendValue(nil, of, true))
	}
}

// appendValue appends what fmt prints of a value with %v: outside of others, or as a part of one.
func appendValue(to []byte, of any, outside bool) []byte {
	switch of := of.(type) {
	case map[string]any:
		return appendMap(to, of)
	case common.Values:
		return appendMap(to, of)
	case []any:
		to = append(to, '[')
		for i, part := range of {
			if i > 0 {
				to = append(to, ' ')
			}
			to = appendValue(to, part, false)
		}
		return append(to, ']')
	case []byte:
		return appendBytes(to, of)
	case string:
		return append(to, of...)
	}
	if files, ok := bytesByName(of); ok {
		return appendMap(to, files)
	}
	if outside {
		return fmt.Append(to, of)
	}
	// Parts of a value are printed otherwise than a value by itself, such as pointers.
	part := fmt.Append(nil, []any{of})
	return append(to, part[1:len(part)-1]...)
}

var bytesByNameType = reflect.TypeFor[map[string][]byte]()

// bytesByName is a value that is a map from names to bytes of whichever type, as the files of a chart are.
func bytesByName(of any) (map[string][]byte, bool) {
	value := reflect.ValueOf(of)
	if !value.IsValid() || value.Kind() != reflect.Map || !value.CanConvert(bytesByNameType) {
		return nil, false
	}
	switch of.(type) {
	case error, fmt.Formatter, fmt.Stringer:
		return nil, false
	}
	return value.Convert(bytesByNameType).Interface().(map[string][]byte), true
}

func appendMap[V any](to []byte, of map[string]V) []byte {
	names := make([]string, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	to = append(to, "map["...)
	for i, name := range names {
		if i > 0 {
			to = append(to, ' ')
		}
		to = append(append(to, name...), ':')
		to = appendValue(to, of[name], false)
	}
	return append(to, ']')
}

func appendBytes(to, of []byte) []byte {
	to = append(to, '[')
	begin := len(to)
	// Three digits and a space, or the bracket in the end.
	to = slices.Grow(to, 4*len(of)+1)
	numbers := to[begin : begin+4*len(of)+1]
	at := 0
	for i, one := range of {
		if i > 0 {
			numbers[at] = ' '
			at++
		}
		if one >= 100 {
			numbers[at] = '0' + one/100
			at++
		}
		if one >= 10 {
			numbers[at] = '0' + one/10%10
			at++
		}
		numbers[at] = '0' + one%10
		at++
	}
	numbers[at] = ']'
	return to[:begin+at+1]
}
