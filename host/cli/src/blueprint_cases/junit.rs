//! Results of cases in the form of JUnit, as CI systems read it.

use super::report::BlueprintCaseReport;

/// The document of a suite with this name.
pub(crate) fn document(suite: &str, cases: &[BlueprintCaseReport]) -> String {
    let failed = cases.iter().filter(|case| !case.problems.is_empty()).count();
    let skipped = cases.iter().filter(|case| case.skipped.is_some()).count();
    let counts = format!("tests=\"{}\" failures=\"{failed}\" skipped=\"{skipped}\"", cases.len());
    let suite = attribute(suite);
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  <testsuite name=\"{suite}\" {counts}>\n"
    );
    for BlueprintCaseReport { name, file, problems, skipped, .. } in cases {
        let case = format!("<testcase classname=\"{suite}\" name=\"{}\" file=\"{}\"", attribute(name), attribute(file));
        match (problems.split_first(), skipped) {
            (None, Some(why)) => {
                let why = attribute(why);
                text.push_str(&format!("    {case}>\n      <skipped message=\"{why}\"/>\n    </testcase>\n"));
            }
            (None, None) => text.push_str(&format!("    {case}/>\n")),
            (Some((first, _)), _) => {
                let all = attribute(&problems.join("\n"));
                let first = attribute(first);
                text.push_str(&format!(
                    "    {case}>\n      <failure message=\"{first}\">{all}</failure>\n    </testcase>\n"
                ));
            }
        }
    }
    text + "  </testsuite>\n</testsuites>\n"
}

/// A text as an attribute or between tags. What XML has no place for is a replacement character.
fn attribute(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => written.push_str("&amp;"),
            '<' => written.push_str("&lt;"),
            '>' => written.push_str("&gt;"),
            '"' => written.push_str("&quot;"),
            '\n' | '\t' => written.push_str(&format!("&#{};", u32::from(letter))),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {
                written.push(char::REPLACEMENT_CHARACTER);
            }
            letter => written.push(letter),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_305_a_suite_has_its_cases_and_their_problems_and_no_text_leaves_its_place() {
        let report = |name: &str, problems: &[&str]| BlueprintCaseReport {
            name: name.to_owned(),
            file: format!("b/tests/{name}.yaml"),
            problems: problems.iter().map(|problem| (*problem).to_owned()).collect(),
            ..BlueprintCaseReport::default()
        };
        let skipped = BlueprintCaseReport { skipped: Some("it gives \"now\"".to_owned()), ..report("three", &[]) };
        let cases = [report("one", &[]), report("two", &["`a < \"b\" && c`\u{1b} fails", "]]></failure>"]), skipped];
        let expected = "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuites tests=\"3\" failures=\"1\" skipped=\"1\">
  <testsuite name=\"b\" tests=\"3\" failures=\"1\" skipped=\"1\">
    <testcase classname=\"b\" name=\"one\" file=\"b/tests/one.yaml\"/>
    <testcase classname=\"b\" name=\"two\" file=\"b/tests/two.yaml\">
      <failure message=\"`a &lt; &quot;b&quot; &amp;&amp; c`\u{fffd} fails\">`a &lt; &quot;b&quot; &amp;&amp; c`\u{fffd} fails&#10;]]&gt;&lt;/failure&gt;</failure>
    </testcase>
    <testcase classname=\"b\" name=\"three\" file=\"b/tests/three.yaml\">
      <skipped message=\"it gives &quot;now&quot;\"/>
    </testcase>
  </testsuite>
</testsuites>
";
        assert_eq!(document("b", &cases), expected);
    }
}
