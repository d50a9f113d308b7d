//! What the binary brings along.

use std::{fs, io::BufRead as _};

/// How often these bytes stand in the others.
fn count(mut all: &[u8], wanted: &[u8]) -> usize {
    let (first, rest) = wanted.split_first().expect("some bytes");
    let mut found = 0;
    while all.skip_until(*first).expect("memory is read") > 0 {
        found += usize::from(all.starts_with(rest));
    }
    found
}

#[test]
fn c_185_each_component_stands_once_in_the_binary() {
    let binary = fs::read(env!("CARGO_BIN_EXE_orangery-under-test")).expect("the binary");
    for builtin in orangery_builtin::components() {
        let Ok((packed, _, _)) = builtin.component else { continue };
        let middle = packed.chunks(64).nth(packed.len() / 128).expect("some bytes");
        assert_eq!(count(&binary, middle), 1, "{}", builtin.name);
    }
    assert_eq!([count(b"abcabab", b"ab"), count(b"abcabab", b"abc"), count(b"", b"ab")], [3, 1, 0]);
}
