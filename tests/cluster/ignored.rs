//! The tests of the suite `kube` as its sources name them: where there is no kube-apiserver, the build script of this package
//! has each of them counted as ignored, though none is compiled.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The names of the tests in a module and in those below it, such as `cases::drift::a_test`. `file` is that of the module.
pub(crate) fn names(file: &Path, module: &str) -> io::Result<Vec<String>> {
    let mut names = in_text(&fs::read_to_string(file)?, module);
    let folder = file.with_extension("");
    if folder.is_dir() {
        let entries = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
        let mut files: Vec<PathBuf> = entries.collect::<io::Result<_>>()?;
        files.retain(|file| file.extension().is_some_and(|ending| ending == "rs"));
        for file in files {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            names.extend(self::names(&file, &format!("{module}::{name}"))?);
        }
    }
    names.sort();
    Ok(names)
}

/// The names of the tests in a text, which is formatted.
fn in_text(text: &str, module: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut within = vec![module];
    let (mut is_test, mut is_list) = (false, false);
    for line in text.lines().map(str::trim_end) {
        let word = line.trim_start();
        if let Some(inner) = word.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(" {")) {
            within.push(inner);
        } else if line == "}" {
            within.truncate(1);
            is_list = false;
        } else if word.ends_with("cases! {") || word.ends_with("recordings! {") {
            is_list = true;
        } else if is_list && word.ends_with(',') {
            names.push([&within[..], &[word.trim_end_matches(',')]].concat().join("::"));
        } else if word == "#[test]" || word.starts_with("#[tokio::test") {
            is_test = true;
        } else if let (true, Some((_, rest))) = (is_test, word.split_once("fn ")) {
            let name = rest.split('(').next().unwrap_or(rest);
            names.push([&within[..], &[name]].concat().join("::"));
            is_test = false;
        }
    }
    names
}

/// The same as tests in their modules, ignored for this reason.
pub(crate) fn written(names: &[String], reason: &str) -> String {
    let mut paths: Vec<Vec<&str>> = names.iter().map(|name| name.split("::").collect()).collect();
    paths.sort();
    let (mut text, mut open) = (String::new(), Vec::new());
    for mut path in paths {
        let name = path.pop().unwrap_or_default();
        let same = open.iter().zip(&path).take_while(|(one, other)| one == other).count();
        text += &"}\n".repeat(open.len() - same);
        text.extend(path.iter().skip(same).map(|module| format!("mod {module} {{\n")));
        text += &format!("#[test]\n#[ignore = {reason:?}]\nfn {name}() {{ panic!({reason:?}) }}\n");
        open = path;
    }
    text + &"}\n".repeat(open.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_tests_are_read_of_their_text() {
        let text = "fn a() {}\n\n#[tokio::test]\n#[cfg_attr(x, ignore)]\nasync fn b() {\n}\n\norangery_tests::cases! {\n    \"f\":\n    \
                    c,\n    d,\n}\n\nmod inner {\n    #[test]\n    fn e() {\n    }\n}\n\n#[test]\nfn g() {}\n\n\
                    orangery_tests::recordings! {\n    #[cfg_attr(x, ignore)]\n    {\n        h,\n    }\n}\n";
        assert_eq!(in_text(text, "m"), ["m::b", "m::c", "m::d", "m::inner::e", "m::g", "m::h"]);
    }

    #[test]
    fn they_are_written_in_their_modules() {
        let names = ["m::b", "m::c::e", "m::c::d", "n"].map(str::to_owned);
        let written = written(&names, "needs x").replace("#[test]\n#[ignore = \"needs x\"]\n", "").replace('\n', " ");
        let body = r#"() { panic!("needs x") }"#;
        assert_eq!(written, format!("mod m {{ fn b{body} mod c {{ fn d{body} fn e{body} }} }} fn n{body} "));
    }
}
