// Package runtime gives memory to what passes between a component and its host.
//
// An instance answers one call and is dropped. So what the host writes into it is never given back: it comes from below
// the Go heap (runtime.sbrk), where the collector neither looks nor runs. That also keeps the rules of the component
// model: while the host asks for memory, nothing may call out of the component, not even to read a clock, which the
// collector does. It works before the runtime has started too, and in an instance that wakes from a snapshot, where the
// adapter of WASI preview 1 asks for memory of its own at its first use.
package runtime

import (
	"runtime"
	"unsafe"
)

// chunk is what is taken from the system at once; runtime.sbrk rounds up to pages of 64 KiB anyway.
const chunk = 64 << 10

// Allocate gives Go memory, zeroed, that stays where it is until the pinner lets go. Alignments up to 8 are known.
func Allocate(pinner *runtime.Pinner, size, align uintptr) unsafe.Pointer {
	if size == 0 {
		return nil
	}
	if align > 8 {
		panic("no type of WIT is aligned to more than 8 bytes")
	}
	words := make([]uint64, (size+7)/8)
	pinner.Pin(&words[0])
	return unsafe.Pointer(&words[0])
}

// Unpin lets go of what the host has written for an export, once it is read: see the package.
func Unpin() {}

// PauseClock has the adapter of WASI preview 1 answer its monotonic clock without calling out. Set it around host calls:
// a collection that is under way reads the clock, also while the host asks for memory for its answer.
//
//go:wasmimport wasi_snapshot_preview1 adapter_monotonic_clock_set_paused
func PauseClock(paused bool)

//go:linkname sbrk runtime.sbrk
func sbrk(size uintptr) unsafe.Pointer

// next and end bound what is left of the chunk taken last.
var next, end uintptr

//go:wasmexport cabi_realloc
func cabiRealloc(old unsafe.Pointer, oldSize, align, size uintptr) unsafe.Pointer {
	start := (next + align - 1) &^ (align - 1)
	if start+size > end || start+size < start {
		begin := sbrk(max(size+align, chunk))
		if begin == nil {
			panic("the memory of the component is exhausted")
		}
		if uintptr(begin) != end {
			next = uintptr(begin)
		}
		end = uintptr(begin) + (max(size+align, chunk)+chunk-1)&^(chunk-1)
		start = (next + align - 1) &^ (align - 1)
	}
	next = start + size
	pointer := unsafe.Pointer(start)
	if oldSize > 0 {
		copy(unsafe.Slice((*byte)(pointer), size), unsafe.Slice((*byte)(old), oldSize))
	}
	return pointer
}

// Handle is a resource of the host. It counts for nothing once it is taken.
type Handle struct{ value int32 }

// MakeHandle holds a handle.
func MakeHandle(value int32) *Handle { return &Handle{value} }

// Take gives the handle away. It panics where it was given away before.
func (h *Handle) Take() int32 {
	value := h.Use()
	h.value = 0
	return value
}

// TakeOrNil gives the handle away; 0 where it was given away before.
func (h *Handle) TakeOrNil() int32 {
	value := h.value
	h.value = 0
	return value
}

// Set holds another handle.
func (h *Handle) Set(value int32) { h.value = value }

// Use is the handle. It panics where it was given away.
func (h *Handle) Use() int32 {
	if h.value == 0 {
		panic("the handle of a resource was given away")
	}
	return h.value
}
