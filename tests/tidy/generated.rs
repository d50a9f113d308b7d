//! Generated files are current. `UPDATE=1 cargo test -p orangery-tests --test tidy` writes them anew.

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        env, fs,
    };

    use orangery_api::Admission;

    use crate::repository::{display, files_ending, none, root};

    /// The custom resource definitions as the chart carries them: path to text.
    fn definitions() -> BTreeMap<String, String> {
        let crds = orangery_api::crds();
        let files = crds.into_iter().map(|crd| {
            let name = crd.metadata.name.clone().expect("a definition has a name");
            let (plural, group) = name.split_once('.').expect("its name is plural.group");
            let text = yaml_serde::to_string(&crd).expect("a definition is YAML");
            (format!("charts/orangery/crds/{group}_{plural}.yaml"), text)
        });
        files.collect()
    }

    /// The admission policies as the chart carries them.
    fn policies() -> (String, String) {
        let documents = orangery_api::admission().into_iter().flat_map(|Admission { policy, binding }| {
            let policy = yaml_serde::to_string(&policy).expect("a policy is YAML");
            let binding = yaml_serde::to_string(&binding).expect("a binding is YAML");
            [policy, binding]
        });
        let documents = documents.collect::<Vec<_>>().join("---\n");
        let text = format!("{{{{- if .Values.validation }}}}\n{documents}{{{{- end }}}}\n");
        ("charts/orangery/templates/policies.yaml".to_owned(), text)
    }

    #[test]
    fn the_definitions_in_the_chart_are_those_of_the_code() {
        let mut wanted = definitions();
        wanted.extend([policies()]);
        let update = env::var_os("UPDATE").is_some();
        let mut violations = Vec::new();
        for (path, text) in &wanted {
            let file = root().join(path);
            if update {
                fs::create_dir_all(file.parent().expect("a file lies in a folder")).expect("the folder can be made");
                fs::write(&file, text).expect("the file can be written");
            } else if fs::read_to_string(&file).unwrap_or_default() != *text {
                violations.push(format!("{path} is not what `orangery crd` prints"));
            }
        }
        let known: BTreeSet<_> = wanted.into_keys().collect();
        let present = files_ending(&[".yaml"]).into_iter().map(|file| display(&file));
        let here = present.filter(|file| file.starts_with("charts/orangery/crds/"));
        violations.extend(here.filter(|file| !known.contains(file)).map(|file| format!("{file}: no such kind")));
        none("write the definitions anew with UPDATE=1", violations);
    }
}
