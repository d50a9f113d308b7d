//! From references to what they stand for (`docs/wire.md` §5.2, INS-22).

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
};

use serde_json::{Map, Value};

use super::{DataValue, ImportError, ImportFault, Imported, SecretData, TargetObject};
use crate::{
    binding::{DataImport, DataSource, ImportBindings, KeyReference, TargetImport, TargetSource},
    record::{RecordWriter, UndecryptableData},
};
use orangery_core::{
    listing, memory,
    name::{self, Kind},
    yaml,
};

/// The most memory, in bytes, that all imports of an installation may take as values. One that is imported under several names
/// counts under each: whatever is made of imports has it as often.
pub const MOST_IMPORTED_BYTES: u64 = 64 << 20;

const DATA_OBJECT: Kind = Kind::from_static("DataObject");
const TARGET: Kind = Kind::from_static("Target");
const SECRET: Kind = Kind::from_static("Secret");
const CONFIG_MAP: Kind = Kind::from_static("ConfigMap");

/// What was gathered: the objects of the installation's namespace.
pub trait Sources {
    /// A DataObject.
    ///
    /// # Errors
    /// There is one, and it cannot be decrypted.
    fn data_object(&self, name: &str) -> Result<Option<DataValue>, UndecryptableData>;
    /// A Target.
    fn target(&self, name: &str) -> Option<TargetObject>;
    /// The Targets that an installation keeps as the imports of a list or map: those with these labels `context` and
    /// `key` and `sourceType: import`. Each is made when it is its turn (C-289).
    fn kept_targets<'a>(&'a self, context: &'a str, key: &'a str) -> Box<dyn Iterator<Item = TargetObject> + 'a>;
    /// The content of a Secret.
    fn secret(&self, name: &str) -> Option<BTreeMap<String, Vec<u8>>>;
    /// The content of a ConfigMap, binary data included.
    fn config_map(&self, name: &str) -> Option<BTreeMap<String, Vec<u8>>>;
    /// Whether an Installation exists.
    fn installation_exists(&self, name: &str) -> bool;
}

/// Every import of an installation, by its name there. The first that cannot be read fails.
pub fn read(
    imports: &ImportBindings,
    scope: &RecordWriter<'_>,
    from: &dyn Sources,
) -> Result<BTreeMap<String, Imported>, ImportError> {
    read_within(imports, scope, from, MOST_IMPORTED_BYTES)
}

/// The same where they take no more than `most` bytes of memory (C-99). What several of them name is read once (C-294).
pub fn read_within(
    imports: &ImportBindings,
    scope: &RecordWriter<'_>,
    from: &dyn Sources,
    most: u64,
) -> Result<BTreeMap<String, Imported>, ImportError> {
    let reader = Reader {
        context: scope.context(),
        scope,
        from,
        most,
        left: Cell::new(most),
        named: named_targets(imports),
        kept: kept_targets(imports),
    };
    let mut all = BTreeMap::new();
    let mut decoded: BTreeMap<DataSource<'_>, &str> = BTreeMap::new();
    for import in &imports.data {
        let source = import.source();
        let same = source.and_then(|source| decoded.get(&source)).and_then(|name| all.get(*name));
        let data = match same {
            Some(Imported::Data(data)) => reader.take_room(&data.value).map(|()| data.clone()),
            Some(_) | None => reader.data(import),
        };
        let data = data.map_err(|fault| error(scope, &import.name, fault))?;
        decoded.extend(source.map(|source| (source, import.name.as_str())));
        all.insert(import.name.clone(), Imported::Data(data));
    }
    for import in &imports.targets {
        let targets = reader.targets(import).map_err(|fault| error(scope, &import.name, fault))?;
        all.insert(import.name.clone(), targets);
    }
    Ok(all)
}

/// Something that several imports may name: read for the first of them, and kept for as long as others follow.
#[derive(Default)]
struct ReadOnce<T> {
    /// How many still name it.
    left: usize,
    read: Option<T>,
}

impl<T: Clone> ReadOnce<T> {
    /// For one of those that name it.
    fn take<E>(&mut self, read: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let taken = match self.read.take() {
            Some(known) => known,
            None => read()?,
        };
        self.left = self.left.saturating_sub(1);
        if self.left > 0 {
            self.read = Some(taken.clone());
        }
        Ok(taken)
    }
}

/// What imports name, by its name.
type ImportsByName<'a, T> = RefCell<BTreeMap<&'a str, ReadOnce<T>>>;

fn named<'a, T: Default>(names: impl Iterator<Item = &'a str>) -> ImportsByName<'a, T> {
    let mut all = BTreeMap::<&str, ReadOnce<T>>::new();
    for name in names {
        all.entry(name).or_default().left += 1;
    }
    RefCell::new(all)
}

/// The keys of single Targets.
fn named_targets(imports: &ImportBindings) -> ImportsByName<'_, TargetObject> {
    let sources = imports.targets.iter().filter_map(TargetImport::source);
    named(sources.flat_map(|source| -> Box<dyn Iterator<Item = &str>> {
        match source {
            TargetSource::Target(key) => Box::new(std::iter::once(key)),
            TargetSource::List(keys) => Box::new(keys.iter().map(String::as_str)),
            TargetSource::Map(keys) => Box::new(keys.values().map(String::as_str)),
            TargetSource::ListOf(_) | TargetSource::MapOf(_) => Box::new(std::iter::empty()),
        }
    }))
}

/// The imports of the parent that are lists and maps of Targets.
fn kept_targets(imports: &ImportBindings) -> ImportsByName<'_, Vec<TargetObject>> {
    let sources = imports.targets.iter().filter_map(TargetImport::source);
    named(sources.filter_map(|source| match source {
        TargetSource::ListOf(import) | TargetSource::MapOf(import) => Some(import),
        TargetSource::Target(_) | TargetSource::List(_) | TargetSource::Map(_) => None,
    }))
}

pub(super) fn error(scope: &RecordWriter<'_>, import: &str, fault: ImportFault) -> ImportError {
    let installation = format!("{}/{}", scope.namespace, scope.installation);
    ImportError { import: import.to_owned(), installation, fault: Box::new(fault) }
}

struct Reader<'a> {
    context: String,
    scope: &'a RecordWriter<'a>,
    from: &'a dyn Sources,
    /// The bytes of memory that all imports may take.
    most: u64,
    /// Those of them that are left.
    left: Cell<u64>,
    named: ImportsByName<'a, TargetObject>,
    kept: ImportsByName<'a, Vec<TargetObject>>,
}

impl Reader<'_> {
    fn data(&self, import: &DataImport) -> Result<DataValue, ImportFault> {
        match import.source().ok_or(ImportFault::NoSource)? {
            DataSource::DataObject(key) => {
                let name = name::object_name(&self.context, key);
                let found = self.from.data_object(&name).map_err(ImportFault::Undecryptable)?;
                let found = found.ok_or_else(|| not_found(&DATA_OBJECT, &name, key))?;
                self.owner_exists(found.owner.as_deref(), &DATA_OBJECT, &name)?;
                self.take_room(&found.value)?;
                Ok(found)
            }
            DataSource::Secret(reference) => self.keyed(&SECRET, reference, self.from.secret(&reference.name)),
            DataSource::ConfigMap(reference) => {
                self.keyed(&CONFIG_MAP, reference, self.from.config_map(&reference.name))
            }
        }
    }

    fn targets(&self, import: &TargetImport) -> Result<Imported, ImportFault> {
        match import.source().ok_or(ImportFault::NoSource)? {
            TargetSource::Target(key) => self.target(key).map(Imported::Target),
            TargetSource::List(keys) => {
                keys.iter().map(|key| self.target(key)).collect::<Result<_, _>>().map(Imported::TargetList)
            }
            TargetSource::Map(keys) => keys
                .iter()
                .map(|(map_key, key)| Ok((map_key.clone(), self.target(key)?)))
                .collect::<Result<_, _>>()
                .map(Imported::TargetMap),
            TargetSource::ListOf(import) => {
                let mut targets = self.kept(import)?;
                // The original takes the order of the API, which is that of hashed names.
                targets.sort_by_key(|target| target.index);
                Ok(Imported::TargetList(targets))
            }
            TargetSource::MapOf(import) => {
                let entry = |target: TargetObject| Some((target.map_key.clone()?, target));
                Ok(Imported::TargetMap(self.kept(import)?.into_iter().filter_map(entry).collect()))
            }
        }
    }

    fn target(&self, key: &str) -> Result<TargetObject, ImportFault> {
        let read = || {
            let name = name::object_name(&self.context, key);
            let found = self.from.target(&name).ok_or_else(|| not_found(&TARGET, &name, key))?;
            self.owner_exists(found.owner.as_deref(), &TARGET, &name)?;
            Ok(found)
        };
        let found = self.named.borrow_mut().get_mut(key).unwrap_or(&mut ReadOnce::default()).take(read)?;
        self.take_room(&found.object)?;
        Ok(found)
    }

    /// What the parent keeps in this job; what earlier jobs left does not count.
    fn kept(&self, import: &str) -> Result<Vec<TargetObject>, ImportFault> {
        if self.scope.parent.is_none() {
            return Err(ImportFault::NoParent);
        }
        let mut is_new = false;
        let read = || {
            is_new = true;
            let kept = self.from.kept_targets(&self.context, import);
            let kept = kept.filter(|target| target.job.as_ref() == Some(self.scope.job));
            kept.map(|target| self.take_room(&target.object).map(|()| target)).collect()
        };
        let kept = self.kept.borrow_mut().get_mut(import).unwrap_or(&mut ReadOnce::default()).take(read)?;
        if !is_new {
            kept.iter().try_for_each(|target| self.take_room(&target.object))?;
        }
        Ok(kept)
    }

    /// Takes memory for a value.
    fn take_room(&self, value: &Value) -> Result<(), ImportFault> {
        let left = self.left.get().checked_sub(memory::of(value)).ok_or(ImportFault::TooLarge { most: self.most })?;
        self.left.set(left);
        Ok(())
    }

    /// A text of a Secret or ConfigMap, read as YAML.
    fn decoded(&self, bytes: &[u8]) -> Result<Value, ImportFault> {
        let value = yaml::decode_or_text_within(&String::from_utf8_lossy(bytes), self.left.get());
        let value = value.ok_or(ImportFault::TooLarge { most: self.most })?;
        self.take_room(&value)?;
        Ok(value)
    }

    /// One key, or an object of all keys; each value is read as YAML.
    fn keyed(
        &self,
        kind: &Kind,
        reference: &KeyReference,
        found: Option<BTreeMap<String, Vec<u8>>>,
    ) -> Result<DataValue, ImportFault> {
        let content = found.ok_or_else(|| not_found(kind, &reference.name, &reference.name))?;
        let value = if reference.key.is_empty() {
            let entry = |(key, bytes): (&String, &Vec<u8>)| Ok((key.clone(), self.decoded(bytes)?));
            Value::Object(content.iter().map(entry).collect::<Result<Map<String, Value>, _>>()?)
        } else {
            let bytes = content.get(&reference.key).ok_or_else(|| {
                let (name, key, known) =
                    (reference.name.clone(), reference.key.clone(), listing::joined(content.keys()));
                ImportFault::NoKey { kind: kind.clone(), name, key, known }
            })?;
            self.decoded(bytes)?
        };
        let secret = (*kind == SECRET).then_some(SecretData::Whole);
        Ok(DataValue { value, secret, ..DataValue::default() })
    }

    fn owner_exists(&self, owner: Option<&str>, kind: &Kind, name: &str) -> Result<(), ImportFault> {
        match owner {
            Some(owner) if Some(owner) != self.scope.parent && !self.from.installation_exists(owner) => {
                Err(ImportFault::OwnerGone { kind: kind.clone(), name: name.to_owned(), owner: owner.to_owned() })
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn not_found(kind: &Kind, name: &str, key: &str) -> ImportFault {
    let key = key.strip_prefix('#').unwrap_or(key).to_owned();
    ImportFault::NotFound { kind: kind.clone(), name: name.to_owned(), key }
}
