package release

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"hash/crc32"
	"sync"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	helm "helm.sh/helm/v4/pkg/release/v1"

	"orangery.dev/helm/gz"
)

// small is the size of a chart that is packed fast, which takes a fifth of the time and a fifth more room than what Helm
// does; others are packed at a level that takes a third of the time, and as Helm packs where they fit no other way.
const small, usual = 1 << 20, 5

// bySize leaves the level to the size, or to what has been found to fit.
const bySize = 0

// packedChart is the first part of a packed revision, which has the chart. What follows refers to nothing in it, so it can
// be the first part of several.
type packedChart struct {
	// level is how it is compressed.
	level int
	// deflated ends between two bytes, without an end.
	deflated []byte
	// size and sum are those of the text.
	size int
	sum  uint32
}

// pack is a revision as Helm keeps it: JSON, compressed, in base64.
func (s *Secrets) pack(of *helm.Release) ([]byte, error) {
	packed, err := s.packAt(of, bySize)
	if err == nil && len(packed) > largest {
		return s.packAt(of, flate.BestCompression)
	}
	return packed, err
}

func (s *Secrets) packAt(of *helm.Release, level int) ([]byte, error) {
	first, err := s.chart(of.Chart, level)
	if err != nil {
		return nil, err
	}
	others := *of
	others.Chart = nil
	text, err := json.Marshal(others)
	if err != nil {
		return nil, err
	}
	// The chart is the first field, and what Marshal writes the others.
	text[0] = ','
	second, err := deflated(text, first.level, (*flate.Writer).Close)
	if err != nil {
		return nil, err
	}
	packed := gz.File(crc32.Update(first.sum, crc32.IEEETable, text), first.size+len(text), first.deflated, second)
	return base64.StdEncoding.AppendEncode(nil, packed), nil
}

func (s *Secrets) chart(of *chart.Chart, level int) (*packedChart, error) {
	if known := s.charts[of]; known != nil && (level == bySize || level == known.level) {
		return known, nil
	}
	var text bytes.Buffer
	text.WriteString(`{"chart":`)
	if err := json.NewEncoder(&text).Encode(of); err != nil {
		return nil, err
	}
	switch {
	case level != bySize:
	case text.Len() <= small:
		level = flate.BestSpeed
	default:
		level = usual
	}
	first := &packedChart{level: level, size: text.Len(), sum: crc32.ChecksumIEEE(text.Bytes())}
	var err error
	if first.deflated, err = deflated(text.Bytes(), first.level, (*flate.Writer).Flush); err != nil {
		return nil, err
	}
	if s.charts == nil {
		s.charts = map[*chart.Chart]*packedChart{}
	}
	s.charts[of] = first
	return first, nil
}

// writers compress at a level each. One takes more than a mebibyte, so those that the rehearsal has made are used again.
var (
	writers = map[int]*flate.Writer{}
	inUse   sync.Mutex
)

// deflated compresses a text by itself.
func deflated(text []byte, level int, end func(*flate.Writer) error) ([]byte, error) {
	inUse.Lock()
	defer inUse.Unlock()
	var deflated bytes.Buffer
	writer := writers[level]
	if writer == nil {
		made, err := flate.NewWriter(nil, level)
		if err != nil {
			return nil, err
		}
		writer, writers[level] = made, made
	}
	writer.Reset(&deflated)
	_, err := writer.Write(text)
	if err == nil {
		err = end(writer)
	}
	return deflated.Bytes(), err
}
