//! Memory for a component while it is read: pages of its own, which go back to the system at once. An allocator may keep what it
//! is given back.

use std::{
    io,
    ops::{Deref, DerefMut},
    ptr::{self, NonNull},
    slice,
};

/// Bytes in pages of their own.
#[derive(Debug)]
pub(crate) struct Pages {
    start: NonNull<u8>,
    mapped: usize,
    used: usize,
}

#[expect(unsafe_code, reason = "a pointer is of one thread unless somebody says otherwise")]
// SAFETY: nobody else has the pages.
unsafe impl Send for Pages {}
#[expect(unsafe_code, reason = "as above")]
// SAFETY: they are written by their one owner only.
unsafe impl Sync for Pages {}

impl Pages {
    /// So many bytes, which are zero; there is at least one.
    pub(crate) fn new(size: usize) -> io::Result<Self> {
        let mapped = size.max(1);
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        #[expect(unsafe_code, reason = "the system is asked for memory without the allocator")]
        // SAFETY: the system chooses a place where nothing is.
        let start = unsafe { libc::mmap(ptr::null_mut(), mapped, access, kind, -1, 0) };
        let start = if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast::<u8>()) };
        let start = start.ok_or_else(io::Error::last_os_error)?;
        Ok(Self { start, mapped, used: mapped })
    }

    /// Leaves the first bytes only.
    pub(crate) fn truncate(&mut self, size: usize) {
        self.used = self.used.min(size);
    }
}

impl Deref for Pages {
    type Target = [u8];

    #[expect(unsafe_code, reason = "the bytes are ours")]
    fn deref(&self) -> &[u8] {
        // SAFETY: so many bytes are mapped, and initialised, for as long as this lives.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.used) }
    }
}

impl DerefMut for Pages {
    #[expect(unsafe_code, reason = "the bytes are ours")]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and nobody else has them now.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.used) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "the pages go back to the system")]
        // SAFETY: they are mapped, all of them, and nobody has them any more.
        let ended = unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped) };
        debug_assert_eq!(ended, 0, "what was mapped is unmapped");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_185_pages_hold_bytes_until_they_go() {
        let mut pages = Pages::new(100_000).unwrap();
        assert!(pages.len() == 100_000 && pages.iter().all(|byte| *byte == 0));
        pages.fill(7);
        pages.truncate(3);
        pages.truncate(4);
        assert_eq!(*pages, [7, 7, 7]);
        assert_eq!(*Pages::new(0).unwrap(), [0]);
    }
}
