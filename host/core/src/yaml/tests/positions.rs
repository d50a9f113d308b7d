use super::*;

fn at(line: usize, column: usize) -> SourcePosition {
    SourcePosition { line, column }
}

const TEXT: &str = "\
spec:
  list:
  - name: one
    text: |

      first
        second
  - {name: 'two', Other: \"esc\\t\"}
  folded: >-
    a
    b
  <<: {merged: yes}
  1: x
  name: a
  name: b
";

#[test]
fn a_part_is_where_its_key_or_its_item_begins() {
    let positions = locate(TEXT).unwrap().positions;
    for (path, place) in [
        ("", at(1, 1)),
        ("spec.list", at(2, 3)),
        ("spec.list[0]", at(3, 5)),
        ("spec.list[0].name", at(3, 5)),
        ("spec.list[0].text", at(4, 5)),
        ("spec.list[1]", at(8, 5)),
        ("spec.list[1].other", at(8, 19)),
        ("spec.merged", at(12, 8)),
        ("spec.1", at(13, 3)),
    ] {
        assert_eq!(positions.find(path), place, "{path}");
    }
}

#[test]
fn the_objects_of_a_list_keep_their_places_in_the_document() {
    let text = "\
apiVersion: v1
kind: List
items:
- kind: A
  spec: {b: x, b: y}
- kind: BList
  items:
  - kind: C
    text: |
      t
";
    let objects = locate(text).unwrap().objects();
    let kinds: Vec<_> = objects.iter().map(|object| object.value["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["A", "C"]);
    let [a, c] = objects.as_slice() else { panic!("{objects:?}") };
    assert_eq!(
        (a.positions.find(""), a.positions.find("spec.b"), a.positions.find("none")),
        (at(4, 3), at(5, 16), at(4, 3))
    );
    assert_eq!(a.positions.duplicates(), [("spec.b".to_owned(), at(5, 16))]);
    assert_eq!((c.positions.find("text"), c.positions.text("text").outer(at(1, 1))), (at(9, 5), at(10, 7)));
    assert_eq!(c.positions.duplicates(), []);
    let alone = locate("kind: List\nitems: none\n").unwrap();
    assert_eq!(alone.clone().objects(), [alone]);
}

#[test]
fn what_is_not_there_is_where_the_part_around_it_is() {
    let positions = locate(TEXT).unwrap().positions;
    assert_eq!(positions.find("spec.list[1].missing.deep[3]"), at(8, 5));
    assert_eq!(positions.find("elsewhere"), at(1, 1));
    assert_eq!(locate("").unwrap().positions.find("a.b"), SourcePosition::START);
}

#[test]
fn places_in_a_text_become_places_of_the_document() {
    let positions = locate(TEXT).unwrap().positions;
    // The first line of the text is blank.
    assert_eq!(positions.text("spec.list[0].text").outer(at(2, 1)), at(6, 7));
    assert_eq!(positions.text("spec.list[0].text").outer(at(3, 3)), at(7, 9));
    assert_eq!(positions.text("spec.list[0].name").outer(at(1, 2)), at(3, 12));
    assert_eq!(positions.text("spec.list[1].name").outer(at(1, 1)), at(8, 13));
    // Written with escapes, or folded: only its begin is sure.
    assert_eq!(positions.text("spec.list[1].other").outer(at(1, 4)), at(8, 26));
    assert_eq!(positions.text("spec.folded").outer(at(1, 3)), at(10, 5));
}

#[test]
fn a_key_that_stands_twice_is_told_with_the_later_place() {
    let located = locate(TEXT).unwrap();
    assert_eq!(located.positions.duplicates(), [("spec.name".to_owned(), at(15, 3))]);
    assert_eq!(located.value, decode(TEXT).unwrap());
}

#[test]
fn every_document_has_places_of_its_own() {
    let all = locate_all("a: 1\n---\n---\nb: 2\n").unwrap();
    let positions: Vec<SourcePosition> = all.iter().map(|located| located.positions.find("b")).collect();
    assert_eq!(positions, [at(1, 1), at(4, 1)]);
}

#[test]
fn quoted_and_plain_texts_of_one_line_have_exact_places() {
    let positions = locate("a: plain\nb: 'single'\nc: \"double\"\nd: {e: 'it''s'}\n").unwrap().positions;
    let inner = at(1, 3);
    assert_eq!(positions.text("a").outer(inner), at(1, 6));
    assert_eq!(positions.text("b").outer(inner), at(2, 7));
    assert_eq!(positions.text("c").outer(inner), at(3, 7));
    assert_eq!(positions.text("d.e").outer(inner), at(4, 8), "an escape moves what follows");
    assert_eq!(positions.text("d.missing").outer(inner), at(4, 1));
    assert_eq!(Embedded::WHOLE.outer(inner), inner);
}

#[test]
fn an_alias_is_placed_where_it_stands_and_a_merged_part_where_the_object_is() {
    let positions = locate("base: &b {k: 1}\none: *b\ntwo:\n  <<: *b\n  l: 2\n").unwrap().positions;
    assert_eq!(positions.find("one"), at(2, 1));
    assert_eq!(positions.find("one.k"), at(2, 1));
    assert_eq!(positions.find("two.k"), at(3, 1));
    assert_eq!(positions.find("two.l"), at(5, 3));
}
