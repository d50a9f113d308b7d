// Package gz writes files of gzip (RFC 1952) around parts that are deflated already (RFC 1951), or not at all.
package gz

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// header is that of a file: deflate, no name, no time, no system.
var header = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}

// longest is the size of a block that is not compressed.
const longest = 1<<16 - 1

// File is a file of parts that follow each other; the last one has an end. `sum` is the CRC-32 (IEEE) and `size` the length
// of the text.
func File(sum uint32, size int, parts ...[]byte) []byte {
	file := slices.Concat(append([][]byte{header}, parts...)...)
	file = binary.LittleEndian.AppendUint32(file, sum)
	return binary.LittleEndian.AppendUint32(file, uint32(size))
}

// Stored is a file that has a text as it is.
func Stored(text []byte) []byte {
	blocks := make([]byte, 0, len(text)+5*(len(text)/longest+1))
	for rest, isLast := text, false; !isLast; {
		block := rest[:min(len(rest), longest)]
		rest = rest[len(block):]
		isLast = len(rest) == 0
		kind := byte(0)
		if isLast {
			kind = 1
		}
		size := uint16(len(block))
		blocks = append(blocks, kind)
		blocks = binary.LittleEndian.AppendUint16(blocks, size)
		blocks = binary.LittleEndian.AppendUint16(blocks, ^size)
		blocks = append(blocks, block...)
	}
	return File(crc32.ChecksumIEEE(text), len(text), blocks)
}
