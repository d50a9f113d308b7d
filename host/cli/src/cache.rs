//! Where compiled components are kept.

use std::{env, ffi::OsStr, path::PathBuf};

/// The folder of compiled components where none is named: that of this user. `None` where there is no home folder.
pub fn folder() -> Option<PathBuf> {
    folder_of(env::var_os("XDG_CACHE_HOME").as_deref(), env::var_os("HOME").as_deref())
}

/// As the XDG base directory specification has it: a relative path counts as none.
fn folder_of(cache_home: Option<&OsStr>, home: Option<&OsStr>) -> Option<PathBuf> {
    let absolute = |path: &OsStr| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    let cache = cache_home.and_then(absolute).or_else(|| Some(home.and_then(absolute)?.join(".cache")))?;
    Some(cache.join("orangery"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_cache_lies_where_the_user_keeps_caches() {
        let folder = |cache_home: &str, home: &str| folder_of(Some(cache_home.as_ref()), Some(home.as_ref()));
        assert_eq!(folder("/c", "/h").as_deref(), Some(Path::new("/c/orangery")));
        assert_eq!(folder("relative", "/h").as_deref(), Some(Path::new("/h/.cache/orangery")));
        assert_eq!(folder_of(None, Some("/h".as_ref())).as_deref(), Some(Path::new("/h/.cache/orangery")));
        assert_eq!(folder_of(None, None), None);
    }
}
