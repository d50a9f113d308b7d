//! Paths of requests.

/// A name as one segment of a path. Components choose names: none may name another resource than the one that was
/// granted, and one that no object can have is an object that does not exist.
pub(crate) fn segment(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b':');
    let only_dots = name.bytes().all(|byte| byte == b'.');
    name.bytes().fold(String::with_capacity(name.len()), |mut path, byte| {
        if plain(byte) && !only_dots {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
        path
    })
}
