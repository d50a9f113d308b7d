use super::*;

fn at(line: usize, column: usize) -> Place {
    Place { line, column }
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
    let places = locate(TEXT).unwrap().places;
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
        assert_eq!(places.find(path), place, "{path}");
    }
}

#[test]
fn what_is_not_there_is_where_the_part_around_it_is() {
    let places = locate(TEXT).unwrap().places;
    assert_eq!(places.find("spec.list[1].missing.deep[3]"), at(8, 5));
    assert_eq!(places.find("elsewhere"), at(1, 1));
    assert_eq!(locate("").unwrap().places.find("a.b"), Place::START);
}

#[test]
fn places_in_a_text_become_places_of_the_document() {
    let places = locate(TEXT).unwrap().places;
    // The first line of the text is blank.
    assert_eq!(places.text("spec.list[0].text").outer(at(2, 1)), at(6, 7));
    assert_eq!(places.text("spec.list[0].text").outer(at(3, 3)), at(7, 9));
    assert_eq!(places.text("spec.list[0].name").outer(at(1, 2)), at(3, 12));
    assert_eq!(places.text("spec.list[1].name").outer(at(1, 1)), at(8, 13));
    // Written with escapes, or folded: only its begin is sure.
    assert_eq!(places.text("spec.list[1].other").outer(at(1, 4)), at(8, 26));
    assert_eq!(places.text("spec.folded").outer(at(1, 3)), at(10, 5));
}

#[test]
fn a_key_that_stands_twice_is_told_with_the_later_place() {
    let located = locate(TEXT).unwrap();
    assert_eq!(located.places.duplicates(), [("spec.name".to_owned(), at(15, 3))]);
    assert_eq!(located.value, decode(TEXT).unwrap());
}

#[test]
fn every_document_has_places_of_its_own() {
    let all = locate_all("a: 1\n---\n---\nb: 2\n").unwrap();
    let places: Vec<Place> = all.iter().map(|located| located.places.find("b")).collect();
    assert_eq!(places, [at(1, 1), at(4, 1)]);
}
