package release

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"slices"
	"sync"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	helm "helm.sh/helm/v4/pkg/release/v1"
)

// small is the size of a chart that is packed fast, which takes a fifth of the time and a fifth more room than what Helm
// does; others are packed at a level that takes a third of the time, and as Helm packs where they fit no other way.
const small, usual = 1 << 20, 5

// bySize leaves the level to the size, or to what has been found to fit.
const bySize = 0

// contents are what several revisions of a job have in common, and most of what there is to compress.
type contents struct {
	Chart    *chart.Chart `json:"chart"`
	Manifest string       `json:"manifest"`
}

// packedContents is the first part of a packed revision. What follows refers to nothing in it, so it can be the first part
// of several.
type packedContents struct {
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
	first, err := s.contents(contents{of.Chart, of.Manifest}, level)
	if err != nil {
		return nil, err
	}
	others := *of
	others.Chart, others.Manifest = nil, ""
	text, err := json.Marshal(others)
	if err != nil {
		return nil, err
	}
	// It goes on with the other fields.
	text[0] = ','
	second, err := deflated(text, first.level, (*flate.Writer).Close)
	if err != nil {
		return nil, err
	}
	packed := gzipped(crc32.Update(first.sum, crc32.IEEETable, text), first.size+len(text), first.deflated, second)
	return base64.StdEncoding.AppendEncode(nil, packed), nil
}

func (s *Secrets) contents(of contents, level int) (*packedContents, error) {
	if known := s.packed[of]; known != nil && (level == bySize || level == known.level) {
		return known, nil
	}
	text, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	text = text[:len(text)-1]
	switch {
	case level != bySize:
	case len(text) <= small:
		level = flate.BestSpeed
	default:
		level = usual
	}
	first := &packedContents{level: level, size: len(text), sum: crc32.ChecksumIEEE(text)}
	if first.deflated, err = deflated(text, first.level, (*flate.Writer).Flush); err != nil {
		return nil, err
	}
	if s.packed == nil {
		s.packed = map[contents]*packedContents{}
	}
	s.packed[of] = first
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

// gzipped is a file (RFC 1952) of parts that follow each other; the last one has an end. `sum` is the CRC-32 (IEEE) and
// `size` the length of the text.
func gzipped(sum uint32, size int, parts ...[]byte) []byte {
	// Deflated, no name, no time, no system.
	header := []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}
	file := slices.Concat(append([][]byte{header}, parts...)...)
	file = binary.LittleEndian.AppendUint32(file, sum)
	return binary.LittleEndian.AppendUint32(file, uint32(size))
}
