//! No value of a Secret leaves the operator: at the end of a case everything that others can read is searched for the values of
//! its Secrets, for the credentials of its Target, for what the operator keeps secret itself, and for tokens of service accounts
//! (C-82).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use data_encoding::{BASE64, BASE64_NOPAD};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind},
};
use orangery_core::yaml;
use serde_json::Value;

use tokio::time::timeout;

use crate::{fail, objects::connect, tree::API};

/// Values below this many bytes are no canaries: they may stand anywhere for other reasons.
const SHORTEST: usize = 12;

/// What of a document with several values is secret.
const CREDENTIALS: [&str; 5] = ["token", "password", "client-key-data", "auth", "identitytoken"];

/// Commands whose answer has what somebody asks to be rendered.
const RENDERING: [&str; 2] = ["render", "blueprint"];

/// How most tokens of service accounts begin, whoever has issued them: with a header that names its algorithm first.
const TOKEN: &str = "eyJhbGciOi";

/// How each part of a token in JSON begins, and the least letters of one.
const PART_OF_TOKEN: &str = "eyJ";
const SHORTEST_PART: usize = 8;

/// The Secret with the operator's own key, and the type of those with credentials that it keeps.
const OWN_KEY: &str = "orangery-seed";
const KEPT: &str = "orangery.dev/kubeconfig";

/// How long it may take to list what is searched.
const LISTED_WITHIN: Duration = Duration::from_secs(60);

/// What is searched of the objects of a kind. The metadata of those that the case has not applied is, of each.
#[derive(Clone, Copy)]
enum Part {
    /// All of it.
    Whole,
    /// What the operator alone fills.
    Filled(&'static str),
    /// The same, and the spec of what the case has not applied: the operator has written it.
    FilledAndSpec(&'static str),
}

/// Of each kind what is searched. Some parts may show a value:
///
/// - the data of Secrets and ConfigMaps: what users have deployed;
/// - the spec of Executions and DeployItems: a template may write what it imports into a configuration, which is what it is for
///   (`docs/policy.md` has the line that encrypts what is imported, C-81);
/// - the spec of Targets: their credentials, in copies of imports as well, as in the original;
/// - the spec of NamespacePolicies: an administrator has written it.
const SEARCHED: [(&str, &str, Part); 11] = [
    ("v1", "Secret", Part::Filled("/type")),
    ("v1", "ConfigMap", Part::Filled("/immutable")),
    (API, "Installation", Part::FilledAndSpec("/status")),
    (API, "Execution", Part::Filled("/status")),
    (API, "DeployItem", Part::Filled("/status")),
    (API, "Target", Part::Filled("/status")),
    (API, "Context", Part::Whole),
    (API, "DataObject", Part::Whole),
    ("orangery.dev/v1alpha1", "NamespacePolicy", Part::Filled("/status")),
    ("events.k8s.io/v1", "Event", Part::Whole),
    ("coordination.k8s.io/v1", "Lease", Part::Whole),
];

impl Part {
    /// What is searched of an object; `None` where that is all of it.
    fn fields(self, is_applied: bool) -> Option<Vec<&'static str>> {
        let by_operator = |fields: &[&'static str]| if is_applied { Vec::new() } else { fields.to_vec() };
        match self {
            Self::Whole => None,
            Self::Filled(field) => Some([by_operator(&["/metadata"]), vec![field]].concat()),
            Self::FilledAndSpec(field) => Some([by_operator(&["/metadata", "/spec"]), vec![field]].concat()),
        }
    }
}

/// The values that nothing may show. Clones know the same.
#[derive(Clone, Debug, Default)]
pub struct Canaries {
    known: Arc<Mutex<KnownCanaries>>,
}

#[derive(Debug, Default)]
struct KnownCanaries {
    values: BTreeSet<String>,
    /// What a case has applied, by kind, namespace and name: its metadata is the case's.
    applied: BTreeSet<[String; 3]>,
}

/// Those of servers that have several clients in one case, by their addresses.
static OF_SERVERS: Mutex<BTreeMap<String, Canaries>> = Mutex::new(BTreeMap::new());

fn identity(object: &Value) -> [String; 3] {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let namespace = text("/metadata/namespace").unwrap_or(crate::objects::NAMESPACE);
    [text("/kind").unwrap_or_default(), namespace, text("/metadata/name").unwrap_or_default()].map(str::to_owned)
}

impl Canaries {
    /// Those of all clients of a server from now on; none yet.
    pub(crate) fn begin(address: &str) -> Self {
        let canaries = Self::default();
        let mut servers = OF_SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
        servers.insert(address.to_owned(), canaries.clone());
        canaries
    }

    /// Those of the server of a kubeconfig, where its clients share them; else new ones.
    pub(crate) fn of_server(kubeconfig: &str) -> Self {
        let documents = yaml::documents(kubeconfig).unwrap_or_default();
        let server =
            documents.first().and_then(|document| document.value.pointer("/clusters/0/cluster/server")?.as_str());
        let servers = OF_SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
        server.and_then(|server| servers.get(server)).cloned().unwrap_or_default()
    }

    /// Knows nothing any more.
    pub(crate) fn forget(&self) {
        *self.known() = KnownCanaries::default();
    }

    fn known(&self) -> MutexGuard<'_, KnownCanaries> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in an object that a case applies, and what is secret of it: the values of a Secret.
    pub fn learn(&self, object: &Value) {
        self.known().applied.insert(identity(object));
        self.learn_values(object);
    }

    fn learn_values(&self, object: &Value) {
        if object.get("kind").is_none_or(|kind| kind != "Secret") {
            return;
        }
        let entries = |field: &str| object.get(field).and_then(Value::as_object).into_iter().flatten();
        let plain = entries("stringData").filter_map(|(_, text)| Some(text.as_str()?.to_owned()));
        let decoded = entries("data").filter_map(|(_, text)| BASE64.decode(text.as_str()?.as_bytes()).ok());
        let texts = plain.chain(decoded.filter_map(|bytes| String::from_utf8(bytes).ok()));
        texts.for_each(|text| self.learn_text(&text));
    }

    /// Takes in what the operator keeps secret itself: bytes that are no text as they stand in a Secret.
    fn learn_kept(&self, secret: &Value) {
        self.learn_values(secret);
        let entries = secret.get("data").and_then(Value::as_object).into_iter().flatten();
        let encoded = entries.filter_map(|(_, text)| text.as_str()).map(|text| text.trim_end_matches('=').to_owned());
        self.known().values.extend(encoded.filter(|text| text.len() >= SHORTEST));
    }

    /// The same of one text: all of it, or the credentials in it where it is a document.
    pub fn learn_text(&self, text: &str) {
        let mut found = Vec::new();
        let is_document = text.contains('\n') || text.trim_start().starts_with('{');
        if !is_document {
            found.push(text.trim().to_owned());
        } else if !text.contains("-----BEGIN") {
            let documents = yaml::documents(text).unwrap_or_default();
            documents.iter().for_each(|document| credentials(&document.value, &mut found));
        } else if text.contains("PRIVATE KEY") {
            found.extend(text.lines().map(str::to_owned).filter(|line| !line.contains("-----")));
        }
        self.known().values.extend(found.into_iter().filter(|value| value.len() >= SHORTEST));
    }

    /// Which value a text shows, with what stands around it.
    pub fn find(&self, text: &str) -> Option<String> {
        let known = self.known();
        let forms = known.values.iter().flat_map(|value| forms(value)).chain(forms(TOKEN));
        let at = forms.filter_map(|form| text.find(&form)).chain(token_in(text)).min()?;
        let begin =
            text.char_indices().map(|(index, _)| index).take_while(|index| *index <= at.saturating_sub(300)).last();
        Some(text.get(begin.unwrap_or_default()..)?.chars().take(600).collect())
    }

    /// Fails where one of the texts shows a value.
    ///
    /// # Panics
    /// One does.
    #[track_caller]
    pub fn check(&self, texts: &[ShownText]) {
        for ShownText { what, text } in texts {
            assert_eq!(self.find(text), None, "{what} shows a value of a Secret");
        }
    }
}

/// Something that others can read.
#[derive(Clone, Debug)]
pub struct ShownText {
    /// What it is of.
    pub what: String,
    /// All of it.
    pub text: String,
}

impl ShownText {
    /// What a command has answered; `None` where it is to render something.
    pub(crate) fn of_command(arguments: &[&str], text: String) -> Option<Self> {
        let command = arguments.first().filter(|command| !RENDERING.contains(command))?;
        Some(Self { what: format!("the command {command}"), text })
    }
}

/// What the operator has written into objects of all namespaces, as far as it can be read. DataObjects that bear the mark of
/// data of Secrets are left out. What the operator keeps secret itself is looked for as well from now on.
pub async fn published(client: &Client, canaries: &Canaries) -> kube::Result<Vec<ShownText>> {
    let mut texts = Vec::new();
    for (api_version, kind, part) in SEARCHED {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let listed = match api.list(&Default::default()).await {
            // The server does not know the kind, or does not any more.
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            listed => listed?,
        };
        for object in listed.items {
            let object = serde_json::to_value(object).expect("an object is JSON");
            let is = |pointer: &str, text: &str| object.pointer(pointer).and_then(Value::as_str) == Some(text);
            if kind == "Secret" && (is("/metadata/name", OWN_KEY) || is("/type", KEPT)) {
                canaries.learn_kept(&object);
            }
            let is_marked = object.pointer("/metadata/labels/orangery.dev~1secret-data").is_some();
            let is_applied = canaries.known().applied.contains(&identity(&object));
            let text = match part.fields(is_applied) {
                _ if is_marked => continue,
                Some(fields) => fields.iter().filter_map(|field| object.pointer(field)).map(Value::to_string).collect(),
                None => object.to_string(),
            };
            let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            texts.push(ShownText { what: format!("{kind} {name}"), text });
        }
    }
    Ok(texts)
}

/// The same where nothing may be waited for in a runtime, as at the end of a test.
///
/// # Panics
/// The server does not answer with its objects.
pub(crate) fn published_at_the_end(kubeconfig: String, canaries: &Canaries) -> Vec<ShownText> {
    let canaries = canaries.clone();
    // The runtime of the case may be that of this thread, which waits here.
    let listed = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listing = async { published(&connect(&kubeconfig).await, &canaries).await };
        io::Result::Ok(runtime.block_on(async { timeout(LISTED_WITHIN, listing).await }))
    });
    match listed.join().expect("its objects are looked at") {
        Ok(Ok(Ok(found))) => found,
        Ok(Ok(Err(error))) => not_searched(&error),
        Ok(Err(_)) => not_searched(&format!("they were not listed within {LISTED_WITHIN:?}")),
        Err(error) => not_searched(&error),
    }
}

fn not_searched(why: &dyn fmt::Display) -> ! {
    fail(&format!("the objects of the server were not searched for values of Secrets: {why}"))
}

fn credentials(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                match member {
                    Value::String(text) if CREDENTIALS.contains(&key.as_str()) => found.push(text.clone()),
                    other => credentials(other, found),
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| credentials(element, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Where a token in JSON begins, whatever its header says first: three parts with dots between them.
fn token_in(text: &str) -> Option<usize> {
    let part = |text: &str| {
        let is_of_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let length = text.find(|c| !is_of_part(c)).unwrap_or(text.len());
        (length >= SHORTEST_PART).then_some(length)
    };
    let after = |text: &str| Some(text.get(part(text)?..)?.strip_prefix('.')?.len());
    text.match_indices(PART_OF_TOKEN).map(|(at, _)| at).find(|at| {
        let header = text.get(*at..).unwrap_or_default();
        let payload = after(header).and_then(|left| header.get(header.len() - left..));
        let payload = payload.filter(|payload| payload.starts_with(PART_OF_TOKEN));
        let signature = payload.and_then(|payload| payload.get(payload.len() - after(payload)?..));
        signature.is_some_and(|signature| part(signature).is_some())
    })
}

/// A value as it may be found: as it is, escaped as in JSON, percent-encoded, and in base64 at each of the three places.
pub fn forms(value: &str) -> Vec<String> {
    let percent: String = value.bytes().fold(String::new(), |text, byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => text + &char::from(byte).to_string(),
        _ => text + &format!("%{byte:02X}"),
    });
    let json = Value::from(value).to_string();
    let json = json.trim_matches('"').to_owned();
    let plus = percent.replace("%20", "+");
    // Letters that belong to the value alone.
    let encoded = [("", 0), ("a", 2), ("ab", 3)].map(|(before, begin)| {
        let encoded = BASE64_NOPAD.encode(format!("{before}{value}").as_bytes());
        let end = encoded.len() - usize::from(!(before.len() + value.len()).is_multiple_of(3));
        encoded.get(begin..end).unwrap_or_default().to_owned()
    });
    [value.to_owned(), json, percent, plus].into_iter().chain(encoded).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::proxy::Proxy;

    fn canaries(object: Value) -> Canaries {
        let canaries = Canaries::default();
        canaries.learn(&object);
        canaries
    }

    #[test]
    fn c_82_the_spec_of_what_the_operator_has_made_is_searched() {
        let fields = |part: Part, is_applied| part.fields(is_applied);
        assert_eq!(fields(Part::FilledAndSpec("/status"), false), Some(vec!["/metadata", "/spec", "/status"]));
        assert_eq!(fields(Part::FilledAndSpec("/status"), true), Some(vec!["/status"]));
        assert_eq!(fields(Part::Filled("/status"), false), Some(vec!["/metadata", "/status"]));
        assert_eq!((fields(Part::Whole, false), fields(Part::Whole, true)), (None, None));
    }

    #[test]
    fn c_82_a_value_is_found_in_each_of_its_forms() {
        let value = "Canary \"9f\"+5b of mine";
        let canaries = canaries(json!({"kind": "Secret", "data": {"a": BASE64.encode(value.as_bytes())}}));
        for form in forms(value) {
            assert!(canaries.find(&format!("it says {form}.")).is_some(), "{form}");
        }
        for before in ["", "a", "ab", "abc", "abcd"] {
            let encoded = BASE64.encode(format!("{before}{value}{before}").as_bytes());
            assert!(canaries.find(&encoded).is_some(), "{encoded}");
        }
        assert_eq!(canaries.find("Canary of mine"), None);
        assert_eq!(canaries.find(&BASE64.encode(b"Canary of mine")), None);
    }

    #[test]
    fn c_82_a_token_is_found_by_its_form_and_in_a_kubeconfig_in_base64() {
        let canaries = Canaries::default();
        let [header, payload, signature] = [r#"{"typ":"JWT","alg":"RS256"}"#, r#"{"sub":"a"}"#, "signature"]
            .map(|part| BASE64.encode(part.as_bytes()));
        let parts = [header, payload, signature].map(|part| part.trim_end_matches('=').to_owned());
        assert!(canaries.find(&format!("Bearer {}", parts.join("."))).is_some());
        let [header, payload, _] = &parts;
        for text in [header.clone(), format!("{header}.{payload}"), format!("{header}.{payload}."), parts.join(" ")] {
            assert_eq!(canaries.find(&text), None);
        }
        for before in ["", "a", "ab"] {
            let kubeconfig =
                BASE64.encode(format!("{before}users: [{{user: {{token: {TOKEN}JIUzI1NiJ9.e30.x}}}}]").as_bytes());
            assert!(canaries.find(&kubeconfig).is_some(), "{kubeconfig}");
        }
    }

    #[test]
    #[should_panic(expected = "the objects of the server were not searched for values of Secrets")]
    fn c_82_objects_that_cannot_be_listed_are_not_taken_for_searched() {
        let nobody = Proxy::kubeconfig_at(([127, 0, 0, 1], 1).into());
        published_at_the_end(nobody, &Canaries::default());
    }

    #[test]
    fn c_82_of_a_document_the_credentials_are_secret_and_short_values_are_not() {
        let kubeconfig =
            "clusters: [{cluster: {server: 'https://example.org:6443'}}]\nusers: [{user: {token: abcdefghijklm}}]\n";
        let canaries = canaries(json!({"kind": "Secret", "stringData": {"k": kubeconfig, "short": "elevenchars"}}));
        assert!(canaries.find("token=abcdefghijklm").is_some());
        assert_eq!(canaries.find("https://example.org:6443 elevenchars"), None);
        let other = Canaries::default();
        other.learn(&json!({"kind": "ConfigMap", "data": {"k": "a-long-enough-value"}}));
        assert_eq!(other.find("a-long-enough-value"), None);
    }
}
