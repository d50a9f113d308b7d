//! What the operator allows one component: a small YAML document, whose form a custom resource will take over.

use std::{
    borrow::Cow,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use flate2::{Decompress, FlushDecompress, Status};
use orangery_blueprint::BUNDLED_ENGINE;
use orangery_core::{
    digest,
    yaml::{self, LocatedDocument},
};
use orangery_proposal::grant::Grants;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    budget::{Budget, BudgetLimit},
    claim::ClaimKind,
    error::Error,
    pages::Pages,
};

/// A registration, as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Registration {
    /// `orangery.dev/v1alpha1`
    pub api_version: RegistrationVersion,
    /// `Plugin`
    pub kind: RegistrationKind,
    /// Its name.
    pub metadata: Metadata,
    /// What it is and what it may do.
    pub spec: RegistrationSpec,
}

/// The versions of this form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RegistrationVersion {
    /// The first.
    #[serde(rename = "orangery.dev/v1alpha1")]
    V1Alpha1,
}

/// The kinds of this form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RegistrationKind {
    /// The one kind.
    Plugin,
}

/// The name of a registration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metadata {
    /// Unique among registrations; it goes into messages, logs and status.
    pub name: String,
}

/// What a component is and what it may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RegistrationSpec {
    /// The component's version, for messages and status.
    pub version: String,
    /// Where the component is. There is none exactly for the template type `Wasm`, whose components blueprints bring
    /// along: its registration says what those may reach and spend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<ComponentLocation>,
    /// What it deploys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployer: Option<DeployerClaim>,
    /// What it renders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<TemplateClaim>,
    /// What conditions it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateClaim>,
    /// What the component gets with every item, in a form of its own; no user can write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Value>,
    /// What it may reach; nothing unless it stands here.
    #[serde(default)]
    pub grants: Grants,
    /// What one call may spend.
    #[serde(default)]
    pub limits: Budget,
}

/// Where a component is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ComponentLocation {
    /// A file, relative to the registration.
    pub file: PathBuf,
    /// `sha256:…` of the file. One with other content is not used. Needed where a policy requires signatures (C-77).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// The deploy items of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeployerClaim {
    /// Deploy item types, such as `landscaper.gardener.cloud/kubernetes-manifest`.
    pub item_types: Vec<String>,
    /// Labels that mark an object on a target cluster as belonging to a deploy item.
    #[serde(default)]
    pub ownership_labels: Vec<String>,
}

/// The templates of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateClaim {
    /// Template types, such as `Jinja`.
    pub types: Vec<String>,
}

/// The gate expressions of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GateClaim {
    /// Condition types, such as `example.org/metric`.
    pub types: Vec<String>,
}

/// A component's bytes, or why there are none.
#[derive(Clone, Debug)]
pub(crate) enum ComponentBytes {
    Bytes {
        bytes: StoredBytes,
        /// `sha256:…` of the bytes.
        digest: Cow<'static, str>,
    },
    Missing(Arc<Error>),
}

/// A component's bytes as they are kept.
#[derive(Clone, Debug)]
pub(crate) enum StoredBytes {
    /// As they are.
    Plain(Arc<Vec<u8>>),
    /// In the binary: unpacked where they are read, and not kept then (C-185).
    Packed { packed: &'static [u8], size: usize },
}

impl StoredBytes {
    /// How many there are, unpacked.
    pub(crate) fn size(&self) -> usize {
        match self {
            StoredBytes::Plain(bytes) => bytes.len(),
            StoredBytes::Packed { size, .. } => *size,
        }
    }

    /// The bytes. Those that are packed are unpacked anew, which takes a tenth of a second for a large component.
    pub(crate) fn read(&self) -> Result<ReadBytes, Error> {
        match self {
            StoredBytes::Plain(bytes) => Ok(ReadBytes::Plain(Arc::clone(bytes))),
            StoredBytes::Packed { packed, size } => unpacked(packed, *size).map(ReadBytes::Unpacked),
        }
    }
}

/// A component's bytes while they are read.
#[derive(Debug)]
pub(crate) enum ReadBytes {
    Plain(Arc<Vec<u8>>),
    Unpacked(Pages),
}

impl AsRef<[u8]> for ReadBytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            ReadBytes::Plain(bytes) => bytes,
            ReadBytes::Unpacked(pages) => pages,
        }
    }
}

/// The component that is packed (zlib) and has so many bytes.
///
/// # Errors
///
/// [`Error::Damaged`]
pub fn unpack(packed: &[u8], size: usize) -> Result<Vec<u8>, Error> {
    unpacked(packed, size).map(|pages| pages.to_vec())
}

fn unpacked(packed: &[u8], size: usize) -> Result<Pages, Error> {
    // Room for a byte more tells that there are no more.
    let mut pages = Pages::new(size + 1).map_err(|_| Error::Busy { what: "memory" })?;
    let mut stream = Decompress::new(true);
    let ended = stream.decompress(packed, &mut pages, FlushDecompress::Finish);
    if matches!(ended, Ok(Status::StreamEnd)) && stream.total_out() == size as u64 {
        pages.truncate(size);
        Ok(pages)
    } else {
        Err(Error::Damaged)
    }
}

impl ComponentBytes {
    /// Empty where there are no bytes.
    pub(crate) fn digest(&self) -> String {
        match self {
            ComponentBytes::Bytes { digest, .. } => digest.to_string(),
            ComponentBytes::Missing(_) => String::new(),
        }
    }

    /// The same bytes, where they have the digest that is asked for.
    fn held_against(self, digest: Option<&str>, file: &Path) -> Self {
        match digest {
            Some(expected) if self.digest() != expected => {
                let (path, expected, found) = (file.to_path_buf(), expected.to_owned(), self.digest());
                ComponentBytes::Missing(Arc::new(Error::Digest { path, expected, found }))
            }
            Some(_) | None => self,
        }
    }

    pub(crate) fn read(bytes: Vec<u8>) -> Self {
        ComponentBytes::Bytes { digest: Cow::Owned(digest::sha256(&bytes)), bytes: StoredBytes::Plain(Arc::new(bytes)) }
    }
}

/// A registration with its component.
#[derive(Clone, Debug)]
pub struct Registered {
    pub(crate) registration: Registration,
    pub(crate) content: ComponentBytes,
    /// Whether it ships with the host.
    pub(crate) is_builtin: bool,
    pub(crate) origin: String,
    /// Whether the content is what a digest names.
    pub(crate) is_pinned: bool,
}

/// Why there is no registration.
#[derive(Debug, thiserror::Error)]
pub enum RegistrationError {
    /// The folder or a file of it cannot be read.
    #[error("{path} cannot be read: {source}; name a folder of plugin registrations with `--plugins`")]
    Read {
        /// The folder or file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The folder holds no registration.
    #[error("{path} holds no plugin registration; put one with the ending .yaml into it")]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// The text is not a registration.
    #[error("{origin}:{line}: {why}")]
    Syntax {
        /// The file.
        origin: String,
        /// From 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// A field that is written elsewhere than in a file.
    #[error("{origin}: {place} cannot be used: {why}")]
    Spec {
        /// What it is of.
        origin: String,
        /// The field.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// The registration claims nothing, or types of two sorts.
    #[error(
        "{origin}: plugin {name} must have exactly one of `deployer` with item types, `template` with types and `gate` with types"
    )]
    Claim {
        /// The file.
        origin: String,
        /// The registration.
        name: String,
    },
    /// The template type `Wasm` with a component, or beside other types.
    #[error(
        "{origin}: plugin {name} is for the template type Wasm, whose components blueprints bring along; remove `component` and all other types"
    )]
    Own {
        /// The file.
        origin: String,
        /// The registration.
        name: String,
    },
    /// A name, version or type is empty.
    #[error("{origin}: `{field}` is empty; give it a value")]
    EmptyField {
        /// The file.
        origin: String,
        /// The field.
        field: &'static str,
    },
    /// A limit that no host can keep.
    #[error("{origin}: `limits.{limit}` of plugin {name} is at most {most}; lower it")]
    Limit {
        /// The file.
        origin: String,
        /// The registration.
        name: String,
        /// The limit.
        limit: BudgetLimit,
        /// The greatest value.
        most: u64,
    },
}

impl Registration {
    /// Reads a registration. `origin` names the file in errors.
    ///
    /// # Errors
    ///
    /// [`RegistrationError::Syntax`] with the line, and the errors of what the form cannot say.
    pub fn parse(text: &str, origin: &str) -> Result<Self, RegistrationError> {
        let syntax = |line, why| RegistrationError::Syntax { origin: origin.to_owned(), line, why };
        let LocatedDocument { value, positions } =
            yaml::locate(text).map_err(|error| syntax(error.line, error.reason.to_string()))?;
        // Of a grant that is given twice nobody knows which one was meant.
        if let Some((path, place)) = positions.duplicates().first() {
            return Err(syntax(place.line, format!("`{path}` is given twice; remove one")));
        }
        let registration: Self = serde_path_to_error::deserialize(value)
            .map_err(|error| syntax(positions.find(&error.path().to_string()).line, error.into_inner().to_string()))?;
        registration.check(origin)?;
        Ok(registration)
    }

    /// The same of what is written elsewhere: what stands in `spec`, without `component`. `origin` names it in errors.
    ///
    /// # Errors
    /// [`RegistrationError`], whose lines are those of nothing.
    pub(crate) fn of_spec(name: &str, spec: &Value, origin: &str) -> Result<Self, RegistrationError> {
        let mut spec = spec.clone();
        if let Some(fields) = spec.as_object_mut() {
            fields.insert("component".to_owned(), json!({"file": "component.wasm"}));
        }
        let spec = serde_path_to_error::deserialize(spec).map_err(|error| RegistrationError::Spec {
            origin: origin.to_owned(),
            place: format!("spec.{}", error.path()),
            why: error.inner().to_string(),
        })?;
        let (api_version, kind) = (RegistrationVersion::V1Alpha1, RegistrationKind::Plugin);
        let registration = Self { api_version, kind, metadata: Metadata { name: name.to_owned() }, spec };
        registration.check(origin)?;
        Ok(registration)
    }

    /// The types that it claims.
    pub(crate) fn claims(&self) -> Vec<(ClaimKind, String)> {
        let RegistrationSpec { deployer, template, gate, .. } = &self.spec;
        let deployer = deployer.iter().flat_map(|claim| &claim.item_types).map(|one| (ClaimKind::Deployer, one));
        let template = template.iter().flat_map(|claim| &claim.types).map(|one| (ClaimKind::Template, one));
        let gate = gate.iter().flat_map(|claim| &claim.types).map(|one| (ClaimKind::Gate, one));
        deployer.chain(template).chain(gate).map(|(kind, claimed)| (kind, claimed.clone())).collect()
    }

    /// Whether it is the one of components that blueprints bring along.
    pub(crate) fn is_for_own(&self) -> bool {
        let types = self.spec.template.as_ref().map(|claim| claim.types.as_slice()).unwrap_or_default();
        self.spec.component.is_none() && matches!(types, [one] if one == BUNDLED_ENGINE)
    }

    fn check(&self, origin: &str) -> Result<(), RegistrationError> {
        let Self {
            api_version: RegistrationVersion::V1Alpha1,
            kind: RegistrationKind::Plugin,
            metadata: Metadata { name },
            spec,
        } = self;
        let empty = |field| RegistrationError::EmptyField { origin: origin.to_owned(), field };
        if name.is_empty() {
            return Err(empty("metadata.name"));
        }
        if spec.version.is_empty() {
            return Err(empty("spec.version"));
        }
        let claim = match (&spec.deployer, &spec.template, &spec.gate) {
            (Some(deployer), None, None) => Some(("spec.deployer.itemTypes", &deployer.item_types)),
            (None, Some(template), None) => Some(("spec.template.types", &template.types)),
            (None, None, Some(gate)) => Some(("spec.gate.types", &gate.types)),
            _ => None,
        };
        let Some((field, types)) = claim else {
            return Err(RegistrationError::Claim { origin: origin.to_owned(), name: name.clone() });
        };
        if types.is_empty() || types.iter().any(String::is_empty) {
            return Err(empty(field));
        }
        if types.iter().any(|one| one == BUNDLED_ENGINE) && spec.template.is_some() && !self.is_for_own() {
            return Err(RegistrationError::Own { origin: origin.to_owned(), name: name.clone() });
        }
        if spec.component.is_none() && !self.is_for_own() {
            return Err(empty("spec.component"));
        }
        match spec.limits.beyond() {
            Some((limit, most)) => {
                Err(RegistrationError::Limit { origin: origin.to_owned(), name: name.clone(), limit, most })
            }
            None => Ok(()),
        }
    }
}

impl Registered {
    /// A component that ships with the host: packed with zlib, the size and the digest of what that unpacks to; or a sentence
    /// that says why it does not ship.
    ///
    /// # Errors
    ///
    /// As [`Registration::parse`].
    pub fn builtin(
        name: &str,
        registration: &str,
        component: Result<(&'static [u8], usize, &'static str), &'static str>,
    ) -> Result<Self, RegistrationError> {
        let origin = format!("the built-in plugin {name}");
        let registration = Registration::parse(registration, &origin)?;
        let content = match component {
            Ok((packed, size, digest)) => {
                let bytes = StoredBytes::Packed { packed, size };
                ComponentBytes::Bytes { bytes, digest: Cow::Borrowed(digest) }
            }
            Err(sentence) => ComponentBytes::Missing(Arc::new(Error::NotBuilt { sentence })),
        };
        Ok(Self { registration, content, is_builtin: true, origin, is_pinned: true })
    }

    /// A registration with the bytes of its component.
    pub fn new(registration: Registration, bytes: Vec<u8>, origin: String) -> Self {
        Self { registration, content: ComponentBytes::read(bytes), is_builtin: false, origin, is_pinned: false }
    }

    /// One that is installed while the host runs.
    pub(crate) fn installed(
        registration: Registration,
        content: ComponentBytes,
        is_pinned: bool,
        origin: String,
    ) -> Self {
        Self { registration, content, is_builtin: false, origin, is_pinned }
    }

    /// The same with what the component is told of whoever operates the host, in the place of what the registration says.
    pub fn configured(mut self, configuration: Value) -> Self {
        self.registration.spec.configuration = Some(configuration);
        self
    }

    /// The registration.
    pub fn registration(&self) -> &Registration {
        &self.registration
    }

    /// Reads a registration's file and the component that it names. A component that cannot be read makes its own types
    /// unusable, not the registration.
    ///
    /// # Errors
    ///
    /// As [`Registration::parse`]; [`RegistrationError::Read`] for the registration's own file.
    pub fn read(path: &Path) -> Result<Self, RegistrationError> {
        let unread = |source| RegistrationError::Read { path: path.to_path_buf(), source };
        let text = fs::read_to_string(path).map_err(unread)?;
        let origin = path.display().to_string();
        let registration = Registration::parse(&text, &origin)?;
        let content = match &registration.spec.component {
            Some(ComponentLocation { file, digest }) => {
                let file = path.parent().unwrap_or(Path::new("")).join(file);
                match fs::read(&file) {
                    Ok(bytes) => ComponentBytes::read(bytes).held_against(digest.as_deref(), &file),
                    Err(source) => ComponentBytes::Missing(Arc::new(Error::Read { path: file, source })),
                }
            }
            None => ComponentBytes::read(Vec::new()),
        };
        let is_pinned = registration.spec.component.as_ref().is_some_and(|component| component.digest.is_some());
        Ok(Self { registration, content, is_builtin: false, origin, is_pinned })
    }
}

/// Whether a file of a folder of registrations is one, by its ending.
pub fn is_registration(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == "yaml" || ending == "yml")
}

/// The registrations of a folder: its files that end in `.yaml` or `.yml`, sorted by name.
///
/// # Errors
///
/// The first registration that cannot be read or parsed; [`RegistrationError::Empty`] where there is none.
pub fn read_folder(folder: &Path) -> Result<Vec<Registered>, RegistrationError> {
    let unread = |source| RegistrationError::Read { path: folder.to_path_buf(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        if is_registration(&path) {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(RegistrationError::Empty { path: folder.to_path_buf() });
    }
    files.sort();
    files.iter().map(|file| Registered::read(file)).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::ZlibEncoder};

    use super::*;

    const HEAD: &str = "apiVersion: orangery.dev/v1alpha1\nkind: Plugin\nmetadata: {name: mine}\n";
    const GATE: &str = "spec: {version: 1.0.0, component: {file: a.wasm}, gate: {types: [A]}}";

    #[track_caller]
    fn check(text: &str, message: &str) {
        assert_eq!(Registration::parse(text, "mine.yaml").unwrap_err().to_string(), message);
    }

    #[test]
    fn what_is_left_out_is_denied_or_has_its_default() {
        let text = format!(
            "{HEAD}spec: {{version: 1.0.0, component: {{file: a.wasm}}, template: {{types: [Mine]}}, limits: {{memoryMiB: 8}}}}"
        );
        let expected = Registration {
            api_version: RegistrationVersion::V1Alpha1,
            kind: RegistrationKind::Plugin,
            metadata: Metadata { name: "mine".into() },
            spec: RegistrationSpec {
                version: "1.0.0".into(),
                component: Some(ComponentLocation { file: "a.wasm".into(), digest: None }),
                deployer: None,
                template: Some(TemplateClaim { types: vec!["Mine".into()] }),
                gate: None,
                configuration: None,
                grants: Grants::default(),
                limits: Budget { memory_mib: 8, ..Budget::default() },
            },
        };
        assert_eq!(Registration::parse(&text, "mine.yaml").unwrap(), expected);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let misspelt = format!("{HEAD}spec:\n  version: 1.0.0\n  component: {{file: a.wasm}}\n  deployr: {{}}\n");
        check(
            &misspelt,
            "mine.yaml:7: unknown field `deployr`, expected one of `version`, `component`, `deployer`, `template`, `gate`, `configuration`, `grants`, `limits`",
        );
        check(&format!("{HEAD}spec:\n  version: [1]"), "mine.yaml:5: invalid type: sequence, expected a string");
        check(
            &format!("{HEAD}spec: {{version: 1.0.0,\n version: 2.0.0}}"),
            "mine.yaml:5: `spec.version` is given twice; remove one",
        );
        check(&format!("{HEAD}spec: {{version: 1.0.0"), "mine.yaml:4: unclosed bracket '{'");
        let spec = |rest: &str| format!("{HEAD}spec: {{version: 1.0.0, component: {{file: a.wasm}}{rest}}}");
        check(
            &spec(""),
            "mine.yaml: plugin mine must have exactly one of `deployer` with item types, `template` with types and `gate` with types",
        );
        check(&spec(", deployer: {itemTypes: []}"), "mine.yaml: `spec.deployer.itemTypes` is empty; give it a value");
        check(
            &spec(", template: {types: [A]}, limits: {memoryMiB: 1024}"),
            "mine.yaml: `limits.memoryMiB` of plugin mine is at most 512; lower it",
        );
    }

    #[test]
    fn c_185_what_is_packed_is_unpacked_to_its_size_or_told_to_be_damaged() {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(6));
        encoder.write_all(&[7; 100_000]).unwrap();
        let packed: &'static [u8] = encoder.finish().unwrap().leak();
        let read = |packed, size| {
            let component =
                Registered::builtin("mine", &format!("{HEAD}{GATE}"), Ok((packed, size, "sha256:0"))).unwrap();
            let ComponentBytes::Bytes { bytes, digest } = component.content else { panic!("it is there") };
            assert_eq!((bytes.size(), digest.as_ref()), (size, "sha256:0"));
            bytes.read().map(|bytes| bytes.as_ref().to_vec()).map_err(|error| error.to_string())
        };
        assert!(packed.len() < 1_000);
        assert_eq!(read(packed, 100_000), Ok(vec![7; 100_000]));
        let damaged = Err("the component in this program is damaged: it does not unpack to what was packed; install the program again".to_owned());
        assert_eq!(read(packed, 99_999), damaged);
        assert_eq!(read(packed, 100_001), damaged);
        assert_eq!(read(packed.split_last().unwrap().1, 100_000), damaged);
        assert_eq!(read(b"", 0), damaged);
    }

    #[test]
    fn c_77_a_component_with_another_digest_than_its_registration_says_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let (file, registration) = (folder.path().join("a.wasm"), folder.path().join("a.yaml"));
        fs::write(&file, b"some bytes").unwrap();
        let read = |digest: &str| {
            let text =
                format!("{HEAD}spec: {{version: 1.0.0, component: {{file: a.wasm{digest}}}, gate: {{types: [A]}}}}");
            fs::write(&registration, text).unwrap();
            let Registered { content, is_pinned, .. } = Registered::read(&registration).unwrap();
            match content {
                ComponentBytes::Bytes { digest, .. } => Ok((digest.into_owned(), is_pinned)),
                ComponentBytes::Missing(error) => Err(error.to_string()),
            }
        };
        let digest = digest::sha256(b"some bytes");
        assert_eq!(read(""), Ok((digest.clone(), false)));
        assert_eq!(read(&format!(", digest: '{digest}'")), Ok((digest.clone(), true)));
        let refused = format!(
            "the component {} has the digest {digest}, and its registration names sha256:0; put that component there, or \
             correct `component.digest`",
            file.display()
        );
        assert_eq!(read(", digest: 'sha256:0'"), Err(refused));
    }

    #[test]
    fn a_folder_without_registrations_is_told_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display();
        assert_eq!(
            read_folder(folder.path()).unwrap_err().to_string(),
            format!("{path} holds no plugin registration; put one with the ending .yaml into it")
        );
        assert_eq!(
            read_folder(&folder.path().join("a")).unwrap_err().to_string(),
            format!(
                "{path}/a cannot be read: No such file or directory (os error 2); name a folder of plugin registrations with `--plugins`"
            )
        );
    }
}
