//! What the imports of one installation take together (C-99).

use std::cell::Cell;

use orangery_core::{memory, yaml};

use super::*;

/// ConfigMaps `m0`, `m1`, … with a text of so many small values, which count how often they are asked for.
struct Texts {
    text: String,
    asked: Cell<usize>,
    /// Targets that are kept for a list or a map.
    kept: usize,
}

impl Texts {
    fn of(values: usize) -> Self {
        Self { text: format!("[{}0]", "{\"\": 0}, ".repeat(values)), asked: Cell::new(0), kept: 2 }
    }

    /// Bytes that the text takes as a value.
    fn bytes(&self) -> u64 {
        memory::of(&yaml::decode_or_text(&self.text))
    }
}

impl Sources for Texts {
    fn data_object(&self, _: &str) -> Result<Option<DataValue>, UndecryptableData> {
        self.asked.set(self.asked.get() + 1);
        Ok(Some(value(yaml::decode_or_text(&self.text))))
    }
    fn target(&self, name: &str) -> Option<TargetObject> {
        self.asked.set(self.asked.get() + 1);
        Some(TargetObject {
            object: yaml::decode_or_text(&self.text),
            owner: None,
            job: Some(JobId::from_static("j2")),
            ..target(name)
        })
    }
    fn kept_targets<'a>(&'a self, _: &'a str, _: &'a str) -> Box<dyn Iterator<Item = TargetObject> + 'a> {
        Box::new((0..self.kept).map(|number| number.to_string()).filter_map(|name| self.target(&name)))
    }
    fn secret(&self, name: &str) -> Option<BTreeMap<String, Vec<u8>>> {
        self.config_map(name)
    }
    fn config_map(&self, _: &str) -> Option<BTreeMap<String, Vec<u8>>> {
        self.asked.set(self.asked.get() + 1);
        Some(BTreeMap::from([("k".to_owned(), self.text.clone().into_bytes())]))
    }
    fn installation_exists(&self, _: &str) -> bool {
        true
    }
}

fn named(count: usize, source: impl Fn(usize) -> Value) -> Value {
    let imports = (0..count).map(|number| {
        let mut import = source(number);
        import["name"] = json!(format!("i{number:02}"));
        import
    });
    json!({"data": imports.collect::<Vec<_>>()})
}

fn too_large(import: &str, most: u64) -> ImportError {
    let fault = Box::new(ImportFault::TooLarge { most });
    ImportError { import: import.to_owned(), installation: format!("ns/{}", CHILD.installation), fault }
}

#[test]
fn c_99_limits_imports_of_one_installation_share_their_memory() {
    let of = |map: usize| json!({"configMapRef": {"name": format!("m{map}"), "key": "k"}});
    let texts = Texts::of(1_000);
    let same = read(&imports(named(40, |_| of(0))), &CHILD, &texts).unwrap();
    let expected = Imported::Data(value(yaml::decode_or_text(&texts.text)));
    assert!(same.len() == 40 && same.values().all(|import| *import == expected));
    assert_eq!(texts.asked.get(), 1, "what is named forty times is decoded once");

    let texts = Texts::of(10_000);
    assert_eq!(read(&imports(named(40, of)), &CHILD, &texts), Err(too_large("i07", MOST_IMPORTED_BYTES)));
    let same = read(&imports(named(40, |_| of(0))), &CHILD, &texts);
    assert_eq!(same, Err(too_large("i07", MOST_IMPORTED_BYTES)), "whatever is made of imports has it forty times");
}

#[test]
fn c_294_what_several_imports_name_is_read_once() {
    let of = |imports: [Value; 4], reads: usize| {
        let texts = Texts::of(10);
        let read = read(&super::imports(json!({"data": imports[..1], "targets": imports[1..]})), &CHILD, &texts);
        assert_eq!((read.map(|all| all.len()), texts.asked.get()), (Ok(4), reads), "{imports:?}");
    };
    let data = json!({"name": "a", "dataRef": "d"});
    let list = |name: &str| json!({"name": name, "targetListRef": "l"});
    of([data.clone(), list("b"), list("c"), json!({"name": "d", "targetMapRef": "l"})], 3);
    let one = |name: &str| json!({"name": name, "target": "t"});
    of(
        [
            data,
            one("b"),
            json!({"name": "c", "targets": ["t", "t", "u"]}),
            json!({"name": "d", "targetMap": {"x": "t"}}),
        ],
        3,
    );

    let texts = Texts::of(10);
    let same = (0..40).map(|number| json!({"name": format!("i{number:02}"), "dataRef": "d"})).collect::<Vec<_>>();
    let read = read(&imports(json!({"data": same})), &CHILD, &texts).unwrap();
    assert_eq!((read.len(), texts.asked.get()), (40, 1));
}

#[test]
fn c_289_targets_that_are_kept_are_made_one_after_another_as_far_as_there_is_room() {
    let texts = Texts { kept: 40, ..Texts::of(100) };
    let most = 3 * texts.bytes();
    for list in [json!({"name": "b", "targetListRef": "l"}), json!({"name": "b", "targetMapRef": "l"})] {
        texts.asked.set(0);
        let read = read_within(&imports(json!({"targets": [list]})), &CHILD, &texts, most);
        assert_eq!((read, texts.asked.get()), (Err(too_large("b", most)), 4));
    }
}

#[test]
fn c_99_limits_imports_of_every_kind_count() {
    let texts = Texts::of(100);
    let most = 2 * texts.bytes() - 1;
    let data = |source: Value| json!({"data": [{"name": "a", "dataRef": "d"}, source]});
    let cases = [
        data(json!({"name": "b", "dataRef": "e"})),
        data(json!({"name": "b", "secretRef": {"name": "s", "key": "k"}})),
        data(json!({"name": "b", "configMapRef": {"name": "m"}})),
        json!({"targets": [{"name": "a", "target": "t"}, {"name": "b", "target": "t"}]}),
        json!({"targets": [{"name": "b", "targets": ["t", "u"]}]}),
        json!({"targets": [{"name": "b", "targetMap": {"x": "t", "y": "t"}}]}),
        json!({"targets": [{"name": "b", "targetListRef": "l"}]}),
        json!({"targets": [{"name": "b", "targetMapRef": "l"}]}),
    ];
    for case in cases {
        assert_eq!(read_within(&imports(case.clone()), &CHILD, &texts, most), Err(too_large("b", most)), "{case}");
        assert!(read_within(&imports(case.clone()), &CHILD, &texts, 3 * most).is_ok(), "{case}");
    }
}
