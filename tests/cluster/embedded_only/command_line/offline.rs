//! `orangery render` as users call it: what it takes, what it prints, what it says of wrong input.

use std::{fs, io::Read as _};

use orangery_tests::{
    binary::{Binary, Ended},
    repository,
};
use serde_json::{Value, json};

fn example(name: &str) -> String {
    repository().join("examples").join(name).to_string_lossy().into_owned()
}

pub(crate) fn write(binary: &Binary, name: &str, text: impl AsRef<[u8]>) {
    let path = binary.folder().join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
    fs::write(path, text).expect("the file can be written");
}

/// The document that a command printed.
#[track_caller]
pub(crate) fn document(ended: &Ended) -> Value {
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    serde_json::from_str(&ended.stdout).expect("the output is JSON")
}

const BLUEPRINT: &str = "\
imports:
- {name: replicas, schema: {type: integer}}
- {name: clusters, type: targetMap, targetType: kubernetes-cluster}
deployExecutions:
- name: items
  type: Jinja
  template: |
    deployItems:
    - {name: item, type: example.com/item, target: {import: clusters, key: red}, config: {replicas: {{ imports.replicas }}}}
    state: {count: {{ (state.count | default(0)) + 1 }}}
exports: [{name: url, schema: {type: string}}]
exportExecutions:
- name: url
  type: Jinja
  template: 'exports: {url: {{ values.deployitems.item.url }}}'
";

const IMPORTS: &str = "\
imports:
  replicas: 3
  clusters:
    red:
      apiVersion: landscaper.gardener.cloud/v1alpha1
      kind: Target
      metadata: {name: red-cluster}
      spec: {type: landscaper.gardener.cloud/kubernetes-cluster}
";

#[tokio::test]
async fn a_folder_is_rendered_with_given_imports_values_and_states() {
    let binary = crate::binary().await;
    write(&binary, "b/blueprint.yaml", BLUEPRINT);
    write(&binary, "imports.yaml", IMPORTS);
    write(&binary, "values.yaml", "deployItems: {item: {url: 'https://x'}}");
    write(&binary, "state.yaml", "state: {deployExecutions: {items: {count: 4}}}");
    let base = ["render", "b", "-i", "imports.yaml", "-o", "json"];
    let item = json!({
        "name": "item", "type": "example.com/item", "config": {"replicas": 3},
        "target": {"name": "red-cluster", "namespace": "default"},
    });
    let expected = |count: u64, exports: Value| {
        let mut of = json!({"name": "blueprint", "deployItems": [item]});
        of["state"] = json!({"deployExecutions": {"items": {"count": count}}});
        if !exports.is_null() {
            of["exports"] = exports;
        }
        json!({"apiVersion": "orangery.dev/v1alpha1", "kind": "RenderedInstallations", "installations": [of]})
    };
    assert_eq!(document(&binary.run(&base).await), expected(1, Value::Null));
    let given = [base.as_slice(), &["--values", "values.yaml", "--state", "state.yaml"]].concat();
    assert_eq!(document(&binary.run(&given).await), expected(5, json!({"url": "https://x"})));
}

#[tokio::test]
async fn an_import_of_an_unknown_export_is_reported() {
    let binary = crate::binary().await;
    let target = "imports: {cluster: {apiVersion: landscaper.gardener.cloud/v1alpha1, kind: Target, metadata: {name: c}, spec: {type: landscaper.gardener.cloud/kubernetes-cluster}}}";
    write(&binary, "imports.yaml", target);
    let ended = binary.run(&["render", &example("data-flow"), "-i", "imports.yaml", "-o", "json"]).await;
    let document = document(&ended);
    let application = &document["installations"][1];
    let message = "the exports of database, which are not known; give them with --values";
    assert_eq!(*application, json!({"name": "application", "waitsFor": message, "deployItems": []}));
}

/// A blueprint as a tar archive, with the entries that are added.
fn archive(add: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(BLUEPRINT.len() as u64);
    header.set_mode(0o644);
    builder.append_data(&mut header, "./blueprint.yaml", BLUEPRINT.as_bytes()).expect("an entry");
    add(&mut builder);
    builder.into_inner().expect("an archive")
}

#[tokio::test]
async fn an_archive_is_rendered_and_checked_as_its_folder_is() {
    let binary = crate::binary().await;
    write(&binary, "b/blueprint.yaml", BLUEPRINT);
    write(&binary, "b.tar", archive(|_| {}));
    // Told from its content, whatever its name.
    write(&binary, "blueprint", archive(|_| {}));
    write(&binary, "imports.yaml", IMPORTS);
    let folder = binary.run(&["render", "b", "-i", "imports.yaml"]).await;
    assert_eq!(folder.code, Some(0), "{}", folder.stderr);
    for archive in ["b.tar", "blueprint"] {
        let ended = binary.run(&["render", archive, "-i", "imports.yaml"]).await;
        assert_eq!((ended.code, &ended.stdout), (Some(0), &folder.stdout), "{archive}: {}", ended.stderr);
        let checked = binary.run(&["blueprint", "check", archive]).await;
        assert_eq!(checked.stdout, "1 blueprint checked: 0 errors, 0 warnings\n", "{}", checked.stderr);
    }
}

/// The bytes of an archive that unpacks to much more than any blueprint has.
fn bomb() -> Vec<u8> {
    archive(|builder| {
        let mut header = tar::Header::new_gnu();
        header.set_size(65 << 20);
        header.set_mode(0o644);
        builder.append_data(&mut header, "zeros", std::io::repeat(0).take(65 << 20)).expect("an entry");
    })
}

fn link() -> Vec<u8> {
    archive(|builder| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        builder.append_link(&mut header, "passwords", "/etc/passwd").expect("an entry");
    })
}

/// An entry `../outside`, which the library would not write by itself.
fn outside() -> Vec<u8> {
    archive(|builder| {
        let mut header = tar::Header::new_gnu();
        let name = b"../outside";
        header.as_old_mut().name.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
        header.set_size(0);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append(&header, std::io::empty()).expect("an entry");
    })
}

#[tokio::test]
async fn an_invalid_or_malicious_archive_is_refused() {
    let binary = crate::binary().await;
    write(&binary, "none.tgz", "this is text");
    write(&binary, "empty.tar", "");
    write(&binary, "cut.tar", &archive(|_| {})[..700]);
    write(&binary, "bomb.tar", bomb());
    write(&binary, "link.tar", link());
    write(&binary, "outside.tar", outside());
    let entry = "only files and folders are unpacked";
    let cases = [
        ("none.tgz", "it is no complete tar archive: "),
        ("empty.tar", "it is no complete tar archive: it is cut off"),
        ("cut.tar", "it is no complete tar archive: "),
        ("bomb.tar", "it has more than 67108864 bytes in one file; that is no honest archive of its kind"),
        ("link.tar", &format!("its entry \"passwords\" is a symbolic link; {entry}")),
        (
            "outside.tar",
            "its entry \"../outside\" has `..` in its name; only paths below the root of the archive are unpacked",
        ),
    ];
    for (name, why) in cases {
        let ended = binary.run(&["render", name]).await;
        assert_eq!(ended.code, Some(2), "{name}: {}", ended.stderr);
        assert!(
            ended.stderr.starts_with(&format!("error: the archive {name} cannot be used: {why}")),
            "{}",
            ended.stderr
        );
        assert!(ended.stderr.ends_with(&format!("; make it anew: tar -czf {name} -C FOLDER .\n")), "{}", ended.stderr);
    }
}

const WHAT_TEMPLATES_SEE: &str = "\
deployExecutions:
- name: items
  type: Jinja
  template: |
    deployItems: [{name: item, type: example.com/item, config: {{ {\"of\": blueprint, \"cd\": cd, \"all\": components} | tojson }}}]
";

#[tokio::test]
async fn templates_see_of_a_folder_what_they_see_of_an_installation_with_its_files() {
    let binary = crate::binary().await;
    write(&binary, "b/blueprint.yaml", WHAT_TEMPLATES_SEE);
    let blueprint = json!({"inline": {"filesystem": {"blueprint.yaml": WHAT_TEMPLATES_SEE}}});
    let installation = json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Installation", "metadata": {"name": "blueprint"},
        "spec": {"blueprint": blueprint},
    });
    write(&binary, "installation.json", installation.to_string());
    let folder = document(&binary.run(&["render", "b", "-o", "json"]).await);
    let config = json!({"of": blueprint, "cd": null, "all": null});
    assert_eq!(folder["installations"][0]["deployItems"][0]["config"], config);
    assert_eq!(folder, document(&binary.run(&["render", "installation.json", "-o", "json"]).await));
}

const SUBS: &str = "\
imports: [{name: cluster, type: target, targetType: kubernetes-cluster}]
subinstallations:
- name: sub
  imports: {targets: [{name: cluster, target: cluster}]}
  blueprint:
    filesystem:
      blueprint.yaml: |
        imports: [{name: cluster, type: target, targetType: kubernetes-cluster}]
        subinstallations:
        - name: below
          imports: {targets: [{name: cluster, target: cluster}]}
          blueprint:
            filesystem:
              blueprint.yaml: BROKEN
";

#[tokio::test]
async fn a_broken_file_system_of_a_sub_installation_is_reported_with_its_path() {
    let binary = crate::binary().await;
    write(&binary, "b/blueprint.yaml", SUBS.replace("BROKEN", "[a, list]"));
    let target = "{apiVersion: landscaper.gardener.cloud/v1alpha1, kind: Target, metadata: {name: c}, spec: {type: landscaper.gardener.cloud/kubernetes-cluster}}";
    write(&binary, "imports.yaml", format!("imports: {{cluster: {target}}}"));
    let ended = binary.run(&["render", "b", "-i", "imports.yaml"]).await;
    let message = "error: installation blueprint/sub/below: the blueprint file blueprint.yaml is a list; write its content as text, with `|` after the name\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), message), "{}", ended.stdout);
}

#[tokio::test]
async fn a_rendering_that_fails_is_reported_in_one_sentence_with_the_fix() {
    let binary = crate::binary().await;
    let files = [
        ("b/blueprint.yaml", BLUEPRINT),
        ("broken-yaml/blueprint.yaml", "imports: ["),
        ("empty/notes.txt", ""),
        ("only-templates/deploy/a.yaml", ""),
        ("text.yaml", "just text"),
        ("sub/blueprint.yaml", "subinstallations: [{name: s, blueprint: {ref: 'cd://resources/x'}}]"),
        ("imports.yaml", IMPORTS),
        ("wrong-type.yaml", "imports: {replicas: many}"),
        ("unknown-import.yaml", "imports: {replica: 3}"),
        ("no-imports.yaml", "replicas: 3"),
        ("a-list.yaml", "[1, 2]"),
        ("broken.yaml", "imports: ["),
        ("unnamed-state.yaml", "items: {count: 1}"),
        ("wrong-list.yaml", "state: {executions: {}}"),
        ("wrong-execution.yaml", "state: {deployExecutions: {item: {}}}"),
        ("text-state.yaml", "state: nothing"),
        ("wrong-item.yaml", "deployItems: {itme: {}}"),
        ("wrong-sub.yaml", "{deployItems: {}, subinstallations: {sub: {}}}"),
        ("descriptor.yaml", "component: {}"),
    ];
    for (name, text) in files {
        write(&binary, name, text);
    }
    let with = ["b", "-i", "imports.yaml"];
    let and = |more: &[&'static str]| [with.as_slice(), more].concat();
    let cases: Vec<(Vec<&str>, i32)> = vec![
        (vec!["nowhere"], 2),
        (vec!["empty"], 2),
        (vec!["only-templates"], 2),
        (vec!["text.yaml"], 2),
        (vec!["broken-yaml"], 1),
        (vec!["b"], 1),
        (vec!["b", "-i", "wrong-type.yaml"], 1),
        (vec!["b", "-i", "unknown-import.yaml"], 1),
        (vec!["b", "-i", "no-imports.yaml"], 2),
        (vec!["b", "-i", "a-list.yaml"], 2),
        (vec!["b", "-i", "broken.yaml"], 2),
        (vec!["b", "-i", "none.yaml"], 2),
        (and(&["--state", "unnamed-state.yaml"]), 2),
        (and(&["--state", "wrong-list.yaml"]), 1),
        (and(&["--state", "wrong-execution.yaml"]), 1),
        (and(&["--state", "text-state.yaml"]), 2),
        (and(&["--values", "wrong-item.yaml"]), 1),
        (and(&["--values", "wrong-sub.yaml"]), 1),
        (vec!["sub"], 1),
        (and(&["--component-descriptor", "none.yaml"]), 2),
        (and(&["--component-descriptor", "descriptor.yaml"]), 1),
        (and(&["--repository-context", "registry.example"]), 2),
        (and(&["--components", "nowhere"]), 2),
    ];
    let mut message = String::new();
    for (arguments, code) in cases {
        let line = arguments.join(" ");
        let ended = binary.run(&[["render"].as_slice(), &arguments].concat()).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""), "{line}: {}", ended.stderr);
        message.push_str(&format!("$ orangery render {line}\n{}\n", ended.stderr));
    }
    let file = repository().join("tests/cluster/embedded_only/command_line/render-errors.txt");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&file, &message).expect("the expected errors can be written");
    }
    assert_eq!(message, fs::read_to_string(file).unwrap_or_default());
}

#[tokio::test]
async fn given_values_must_belong_to_the_rendered_installation() {
    let binary = crate::binary().await;
    write(&binary, "values.yaml", "{databse: {deployItems: {}}}");
    write(&binary, "imports.yaml", "imports: {clutser: 1}");
    write(&binary, "cd.yaml", "{}");
    let path = example("data-flow");
    let cases: [(&[&str], i32, &str); 3] = [
        (
            &["--values", "values.yaml"],
            2,
            "error: values.yaml gives values of the installation \"databse\", which is not rendered; rendered are: database, application\n",
        ),
        (
            &["-i", "imports.yaml"],
            1,
            "error: installation database: --imports gives the import \"clutser\", which the installations do not have; known are: cluster, database, settings\n",
        ),
        (
            &["--component-descriptor", "cd.yaml"],
            2,
            "error: --component-descriptor cd.yaml is for a folder with blueprint.yaml or an archive of one; an Installation names its component version in spec.componentDescriptor\n",
        ),
    ];
    for (arguments, code, message) in cases {
        let ended = binary.run(&[&["render", &path], arguments].concat()).await;
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(code), message));
    }
}
