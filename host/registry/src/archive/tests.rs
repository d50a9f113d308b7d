//! Archives, honest and other.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use tar::{Builder, Header};

use super::*;

const SMALL: ArchiveLimits = ArchiveLimits { entries: 4, file: 1 << 21, total: 1 << 22, ratio: 50 };

fn entry(builder: &mut Builder<Vec<u8>>, name: &str, kind: EntryType, content: &[u8]) {
    let mut header = Header::new_gnu();
    // Written as it is: the library itself would refuse bad names.
    let field = header.as_gnu_mut().unwrap();
    field.name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    if [EntryType::Symlink, EntryType::Link].contains(&kind) {
        header.set_link_name("/etc/passwd").unwrap();
    }
    header.set_cksum();
    builder.append(&header, content).unwrap();
}

fn archive(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, kind, content) in entries {
        entry(&mut builder, name, *kind, content);
    }
    builder.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn message_of(bytes: &[u8]) -> String {
    files(bytes, SMALL).unwrap_err().to_string()
}

#[test]
fn files_come_out_plain_or_compressed() {
    let plain = archive(&[
        ("./", EntryType::Directory, b""),
        ("./blueprint.yaml", EntryType::Regular, b"a: b"),
        ("templates/x.yaml", EntryType::Regular, b""),
    ]);
    let expected = vec![("blueprint.yaml".to_owned(), b"a: b".to_vec()), ("templates/x.yaml".to_owned(), Vec::new())];
    assert_eq!(files(&plain, SMALL).unwrap(), expected);
    assert_eq!(files(&gzip(&plain), SMALL).unwrap(), expected);
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let end = "only paths below the root of the archive are unpacked";
    let cases = [
        ("../x", "has `..` in its name"),
        ("a/../../x", "has `..` in its name"),
        ("/etc/passwd", "has an absolute name"),
        ("a\\b", "has a backslash or a NUL in its name"),
        (".", "has no name"),
    ];
    for (name, fault) in cases {
        let text = if name == "." { "" } else { name };
        let expected = format!("its entry {text:?} {fault}; {end}");
        assert_eq!(message_of(&archive(&[(name, EntryType::Regular, b"x")])), expected);
    }
}

#[test]
fn links_and_devices_are_refused() {
    let cases = [
        (EntryType::Symlink, "symbolic link"),
        (EntryType::Link, "hard link"),
        (EntryType::Char, "device"),
        (EntryType::Block, "device"),
        (EntryType::Fifo, "pipe"),
    ];
    for (kind, name) in cases {
        let bytes = archive(&[("ok", EntryType::Regular, b""), ("x", kind, b"")]);
        assert_eq!(message_of(&bytes), format!("its entry \"x\" is a {name}; only files and folders are unpacked"));
    }
}

#[test]
fn archives_that_are_cut_off_are_told() {
    let plain = archive(&[("a", EntryType::Regular, &[7; 3000])]);
    let whole = gzip(&plain);
    for cut in [&plain[..0], &plain[..1], &plain[..300], &plain[..700], &whole[..20], &whole[..whole.len() - 4]] {
        let message_of = message_of(cut);
        assert!(message_of.starts_with("it is no complete tar archive: "), "{message_of}");
    }
    let mut altered = whole.clone();
    let at = altered.len() - 6;
    altered[at] ^= 1;
    assert!(message_of(&altered).starts_with("it is no complete tar archive: "), "the check sum is read");
    assert!(message_of(b"no archive at all").starts_with("it is no complete tar archive: "));
    assert_eq!(message_of(&archive(&[])), "it is empty");
}

#[test]
fn a_bomb_is_stopped_by_its_ratio_by_its_size_and_by_its_entries() {
    let bomb = gzip(&archive(&[("a", EntryType::Regular, &vec![0; 2 << 20])]));
    assert_eq!(
        message_of(&bomb),
        "it has more than 50 times its compressed size; that is no honest archive of its kind"
    );
    let big = archive(&[("a", EntryType::Regular, &vec![0; (2 << 20) + 1])]);
    assert_eq!(message_of(&big), "it has more than 2097152 bytes in one file; that is no honest archive of its kind");
    let part = vec![1; 2 << 20];
    let many = archive(&[("a", EntryType::Regular, &part), ("b", EntryType::Regular, &part)]);
    assert_eq!(message_of(&many), "it has more than 4194304 bytes, unpacked; that is no honest archive of its kind");
    let entries: Vec<_> = ["a", "b", "c", "d", "e"].map(|name| (name, EntryType::Regular, &b""[..])).to_vec();
    assert_eq!(message_of(&archive(&entries)), "it has more than 4 entries; that is no honest archive of its kind");
}

/// A header may claim any size for a long name or for a file: nothing is allocated by what it claims.
#[test]
fn a_size_that_is_a_lie_is_a_broken_archive() {
    for kind in [EntryType::Regular, EntryType::GNULongName, EntryType::XHeader] {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(2 << 20);
        header.set_cksum();
        let message_of = message_of(header.as_bytes());
        assert!(
            message_of.starts_with("it is no complete tar archive: ") || message_of.contains("has no name"),
            "{message_of}"
        );
    }
}

#[test]
fn limits_registry_a_name_in_an_archive_has_a_length() {
    let of = |length: usize| name("x".repeat(length).as_bytes()).map_err(|error| error.to_string());
    assert_eq!(of(1024), Ok("x".repeat(1024)));
    assert!(of(1025).unwrap_err().contains("has a name of more than 1024 bytes"));
}
