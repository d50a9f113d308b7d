package config

import (
	_ "embed"
	"encoding/json"
	"errors"

	"orangery.dev/helm/wire"
)

//go:embed schema.json
var schema string

// Schema is the JSON Schema of the configuration.
func Schema() string { return schema }

// Check says what is wrong with a configuration: the first thing that a reader would meet.
func Check(text json.RawMessage) []wire.Problem {
	_, err := Read(text)
	var fault *wire.Fault
	if errors.As(err, &fault) {
		return []wire.Problem{fault.Problem}
	}
	return nil
}
