//! Which line of a chart's template made a field: each line of its templates that makes something gets a comment behind it, which comes
//! out in the text of the release.

use std::io::Read as _;

use data_encoding::BASE64;
use flate2::read::GzDecoder;
use orangery_core::yaml::{self, LocatedDocument};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    packed_chart::{self, MOST_UNPACKED_BYTES, unpacked},
    template_marks::{TagSyntax, Unmarked, comments},
};

/// The type of the Secrets that releases are kept in.
const RELEASE: &str = "helm.sh/release.v1";

/// What stands before the name of the template in the text of a release.
const SOURCE: &str = "# Source: ";

/// A place in a chart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChartPlace {
    /// The template, as Helm names it: `chart/templates/deployment.yaml`.
    pub file: String,
    /// The line, from 1; none where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
}

/// A packed chart with comments in its templates; `None` where it is no chart, or too large.
pub fn marked_chart(packed: &[u8]) -> Option<Vec<u8>> {
    let mut files = unpacked(packed)?;
    for file in &mut files {
        if is_template(&file.path.to_string_lossy())
            && let Ok(text) = std::str::from_utf8(&file.content)
        {
            file.content = comments(TagSyntax::GoTemplate, text).into_bytes();
        }
    }
    packed_chart::packed(files)
}

fn is_template(path: &str) -> bool {
    path.contains("/templates/") && [".yaml", ".yml"].iter().any(|end| path.ends_with(end))
}

/// What of a release is read.
#[derive(Deserialize)]
struct ReleaseFields {
    #[serde(default)]
    manifest: String,
    #[serde(default)]
    hooks: Vec<HookFields>,
}

#[derive(Deserialize)]
struct HookFields {
    #[serde(default)]
    path: String,
    #[serde(default)]
    manifest: String,
}

/// The objects of a release, as its text has them.
#[derive(Debug, Default)]
pub struct ReleaseText(Vec<ReleasedObject>);

#[derive(Debug)]
struct ReleasedObject {
    file: String,
    document: LocatedDocument,
    marks: Unmarked,
}

impl ReleaseText {
    /// Reads it from the Secret that a release is kept in; `None` where an object is none.
    pub fn of(secret: &Value) -> Option<Self> {
        if secret.get("type").and_then(Value::as_str) != Some(RELEASE) {
            return None;
        }
        let packed = secret.pointer("/data/release").and_then(Value::as_str)?;
        let packed = BASE64.decode(&BASE64.decode(packed.as_bytes()).ok()?).ok()?;
        let mut json = Vec::new();
        GzDecoder::new(packed.as_slice()).take(MOST_UNPACKED_BYTES).read_to_end(&mut json).ok()?;
        let ReleaseFields { manifest, hooks } = serde_json::from_slice(&json).ok()?;
        let mut objects: Vec<ReleasedObject> = Vec::new();
        for section in format!("\n{manifest}").split(&format!("\n{SOURCE}")).skip(1) {
            let (file, text) = section.split_once('\n').unwrap_or((section, ""));
            objects.extend(released(file.trim_end(), text.split("\n---").next().unwrap_or_default()));
        }
        objects.extend(hooks.iter().filter_map(|hook| released(&hook.path, &hook.manifest)));
        Some(Self(objects))
    }

    /// Where a field of an object was made, which a path by numbers of elements leads to.
    pub fn place(&self, object: &Value, path: &str) -> Option<ChartPlace> {
        let identity = |of: &Value| {
            ["/apiVersion", "/kind", "/metadata/name"].map(|pointer| {
                of.pointer(pointer).and_then(Value::as_str).map(|text| text.split(" #").next().map(str::to_owned))
            })
        };
        let wanted = identity(object);
        let released = self.0.iter().find(|of| identity(&of.document.value) == wanted)?;
        let line = released.marks.line_behind(released.document.positions.find(path));
        Some(ChartPlace { file: released.file.clone(), line })
    }
}

fn released(file: &str, text: &str) -> Option<ReleasedObject> {
    let marks = Unmarked::of(text)?;
    let document = yaml::locate(&marks.text).ok()?;
    Some(ReleasedObject { file: file.to_owned(), document, marks })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};
    use serde_json::json;

    use super::*;
    use crate::packed_chart::tests::{chart, texts};

    fn release(fields: &Value) -> Value {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(fields.to_string().as_bytes()).unwrap();
        let release = BASE64.encode(BASE64.encode(&gzip.finish().unwrap()).as_bytes());
        json!({"type": RELEASE, "data": {"release": release}})
    }

    #[test]
    fn c_247_templates_of_a_chart_get_comments_and_other_files_stay() {
        let template = "a: 1\n";
        let chart = chart(&[
            ("app/Chart.yaml", "name: app\n"),
            ("app/templates/x.yaml", template),
            ("app/templates/_h.tpl", template),
        ]);
        let marked = texts(&marked_chart(&chart).unwrap());
        let expected = [
            ("app/Chart.yaml", "name: app\n"),
            ("app/templates/x.yaml", "a: 1 #\u{e000}1\u{e001}\n"),
            ("app/templates/_h.tpl", template),
        ];
        assert_eq!(marked, expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
        assert_eq!(marked_chart(b"no chart"), None);
    }

    #[test]
    fn c_247_a_field_of_a_release_has_its_template_and_the_line_whose_comment_comes_next() {
        let map = "kind: ConfigMap #\u{e000}2\u{e001}\nmetadata:\n  name: a #\u{e000}4\u{e001}\ndata:\n  x: 1\n  y: 2 #\u{e000}9\u{e001}\n";
        let manifest = format!(
            "---\n# Source: app/templates/a.yaml\n{map}---\n# Source: app/templates/b.yaml\nkind: Job\nmetadata: {{name: b}}\n"
        );
        let hook =
            json!({"path": "app/templates/h.yaml", "manifest": "kind: Pod #\u{e000}1\u{e001}\nmetadata: {name: h}\n"});
        let text = ReleaseText::of(&release(&json!({"manifest": manifest, "hooks": [hook]}))).unwrap();
        let place = |kind: &str, name: &str, path: &str| {
            let place = text.place(&json!({"kind": kind, "metadata": {"name": name}}), path)?;
            Some((place.file, place.line))
        };
        let in_file = |file: &str, line| Some((format!("app/templates/{file}.yaml"), line));
        assert_eq!(place("ConfigMap", "a", "metadata.name"), in_file("a", Some(4)));
        assert_eq!(place("ConfigMap", "a", "data.x"), in_file("a", Some(9)), "both are of one line");
        assert_eq!(place("Job", "b", "metadata.name"), in_file("b", None));
        assert_eq!(place("Pod", "h", "kind"), in_file("h", Some(1)));
        assert_eq!(place("Pod", "other", "kind"), None);
        assert!(ReleaseText::of(&json!({"type": RELEASE, "data": {"release": "x"}})).is_none());
    }

    #[test]
    fn c_244_limits_a_chart_and_a_release_are_unpacked_as_far_as_they_may_be() {
        let large = " ".repeat(MOST_UNPACKED_BYTES as usize);
        assert_eq!(marked_chart(&chart(&[("app/templates/x.yaml", &large)])), None);
        assert!(ReleaseText::of(&release(&json!({"manifest": large}))).is_none());
    }
}
