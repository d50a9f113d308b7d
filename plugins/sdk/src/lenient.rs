//! Reading a configuration by the lenient rules of Landscaper's decoder (`docs/wire.md` §4.3): field names match
//! whatever their case, unknown fields are ignored, `null` is as good as absent. Types are strict, and every problem
//! names its place by JSON pointer.

use serde_json::{Map, Value};

use crate::Problem;

/// One value of a configuration, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Place<'a> {
    value: &'a Value,
    at: String,
}

impl<'a> Place<'a> {
    /// The whole configuration.
    pub fn root(value: &'a Value) -> Self {
        Place { value, at: String::new() }
    }

    /// The JSON pointer of this place; empty for the root.
    pub fn at(&self) -> &str {
        &self.at
    }

    /// What stands here.
    pub fn value(&self) -> &'a Value {
        self.value
    }

    /// A configuration problem at this place.
    pub fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::configuration(self.at.clone(), message)
    }

    fn mismatch(&self, wanted: &str) -> Problem {
        let found = match self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        let name = self.own_name();
        self.problem(format!("{name} is {found}; write {wanted}"))
    }

    /// How messages call this place: its field or index.
    fn own_name(&self) -> String {
        match self.at.rsplit_once('/') {
            Some((_, token)) => token.replace("~1", "/").replace("~0", "~"),
            None => "the configuration".to_owned(),
        }
    }

    fn child(&self, token: &str, value: &'a Value) -> Place<'a> {
        Place { value, at: format!("{}/{}", self.at, token.replace('~', "~0").replace('/', "~1")) }
    }

    /// A field of the object here, by exact name or else whatever the case; `None` where it is absent or null.
    ///
    /// # Errors
    ///
    /// Where this place holds no object.
    pub fn field(&self, name: &str) -> Result<Option<Place<'a>>, Problem> {
        let object = self.object()?;
        let found =
            object.get_key_value(name).or_else(|| object.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)));
        Ok(found.filter(|(_, value)| !value.is_null()).map(|(key, value)| self.child(key, value)))
    }

    /// A field that has to be there.
    ///
    /// # Errors
    ///
    /// Where it is absent or null, or this place holds no object.
    pub fn required(&self, name: &str) -> Result<Place<'a>, Problem> {
        self.field(name)?
            .ok_or_else(|| Problem::configuration(format!("{}/{name}", self.at), format!("{name} is missing; add it")))
    }

    /// The object here.
    ///
    /// # Errors
    ///
    /// Where this place holds something else.
    pub fn object(&self) -> Result<&'a Map<String, Value>, Problem> {
        self.value.as_object().ok_or_else(|| self.mismatch("an object"))
    }

    /// The string here.
    ///
    /// # Errors
    ///
    /// Where this place holds something else.
    pub fn text(&self) -> Result<&'a str, Problem> {
        self.value.as_str().ok_or_else(|| self.mismatch("a string"))
    }

    /// The string here, which must not be empty.
    ///
    /// # Errors
    ///
    /// Where this place holds something else or an empty string.
    pub fn name(&self) -> Result<&'a str, Problem> {
        match self.text()? {
            "" => Err(self.mismatch("a string that is not empty")),
            text => Ok(text),
        }
    }

    /// What the word here stands for, by exact spelling.
    ///
    /// # Errors
    ///
    /// Where this place holds no string or another word; the message lists the words that there are.
    pub fn one_of<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, Problem> {
        let text = self.text()?;
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(*meaning);
        }
        let name = self.own_name();
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        Err(self.problem(format!("{name} {text} is not known here; write one of {}", known.join(", "))))
    }

    /// The boolean here.
    ///
    /// # Errors
    ///
    /// Where this place holds something else.
    pub fn flag(&self) -> Result<bool, Problem> {
        self.value.as_bool().ok_or_else(|| self.mismatch("true or false"))
    }

    /// The elements of the list here.
    ///
    /// # Errors
    ///
    /// Where this place holds something else.
    pub fn items(&self) -> Result<Vec<Place<'a>>, Problem> {
        let items = self.value.as_array().ok_or_else(|| self.mismatch("a list"))?;
        Ok(items.iter().enumerate().map(|(index, item)| self.child(&index.to_string(), item)).collect())
    }

    /// The elements of a list-valued field; none where it is absent.
    ///
    /// # Errors
    ///
    /// Where the field holds something else than a list, or this place no object.
    pub fn items_of(&self, name: &str) -> Result<Vec<Place<'a>>, Problem> {
        self.field(name)?.map_or_else(|| Ok(Vec::new()), |list| list.items())
    }

    /// A string-valued field; `None` where it is absent or empty, which Go does not tell apart.
    ///
    /// # Errors
    ///
    /// Where the field holds something else than a string, or this place no object.
    pub fn text_of(&self, name: &str) -> Result<Option<&'a str>, Problem> {
        let text = self.field(name)?.map(|field| field.text()).transpose()?;
        Ok(text.filter(|text| !text.is_empty()))
    }

    /// The map of strings in a field, such as annotations; `None` where it is absent or empty.
    ///
    /// # Errors
    ///
    /// Where the field holds something else than an object of strings, or this place no object.
    pub fn texts_of(&self, name: &str) -> Result<Option<&'a Map<String, Value>>, Problem> {
        let Some(field) = self.field(name)? else { return Ok(None) };
        let map = field.object()?;
        for (key, value) in map {
            field.child(key, value).text()?;
        }
        Ok(Some(map).filter(|map| !map.is_empty()))
    }

    /// A boolean field; false where it is absent.
    ///
    /// # Errors
    ///
    /// Where the field holds something else than a boolean, or this place no object.
    pub fn flag_of(&self, name: &str) -> Result<bool, Problem> {
        self.field(name)?.map_or(Ok(false), |field| field.flag())
    }

    /// Checks that the configuration here is a `ProviderConfiguration` of a group, and tells which of the versions.
    ///
    /// # Errors
    ///
    /// Where `apiVersion` or `kind` is absent or another one; the message lists the versions that there are.
    pub fn version<'v>(&self, group: &str, versions: &[&'v str]) -> Result<&'v str, Problem> {
        let wanted = || {
            let all: Vec<_> = versions.iter().map(|version| format!("{group}/{version}")).collect();
            all.join(" or ")
        };
        let Some(api_version) = self.field("apiVersion")? else {
            let at = format!("{}/apiVersion", self.at);
            return Err(Problem::configuration(at, format!("apiVersion is missing; write {}", wanted())));
        };
        let text = api_version.text()?;
        let found = text.split_once('/').filter(|(name, _)| *name == group).map(|(_, version)| version);
        let Some(version) = versions.iter().find(|version| Some(**version) == found) else {
            return Err(api_version.problem(format!("apiVersion {text} is not known here; write {}", wanted())));
        };
        let kind = self.required("kind")?;
        match kind.text()? {
            "ProviderConfiguration" => Ok(version),
            other => Err(kind.problem(format!("kind {other} is not known here; write ProviderConfiguration"))),
        }
    }
}

/// Checks `continuousReconcile` of a provider configuration: `cron` or `every`. It has no effect (`docs/wire.md` §7.4).
///
/// # Errors
///
/// Where it is no object, has not exactly one of the two, or one that cannot be read.
pub fn check_continuous_reconcile(configuration: &Place<'_>) -> Result<(), Problem> {
    let Some(schedule) = configuration.field("continuousReconcile")? else { return Ok(()) };
    match (schedule.field("cron")?, schedule.field("every")?) {
        (Some(cron), None) if is_cron(cron.text()?) => Ok(()),
        (Some(cron), None) => Err(cron.problem("cron is no schedule; write five fields, such as `0 3 * * *`")),
        (None, Some(every)) if is_duration(every.text()?) => Ok(()),
        (None, Some(every)) => Err(every.problem("every is no duration; write one such as `30m` or `24h`")),
        (Some(_), Some(_)) => Err(schedule.problem("continuousReconcile has both cron and every; keep one of them")),
        (None, None) => Err(schedule.problem("continuousReconcile has neither cron nor every; add one of them")),
    }
}

fn is_cron(text: &str) -> bool {
    let text = match text.split_once(' ') {
        Some((zone, rest)) if zone.starts_with("TZ=") || zone.starts_with("CRON_TZ=") => rest.trim_start(),
        _ => text,
    };
    match text.strip_prefix('@') {
        Some(every) if every.starts_with("every ") => is_duration(every.trim_start_matches("every ")),
        Some(name) => ["yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly"].contains(&name),
        None => text.split_whitespace().count() == 5,
    }
}

/// Whether a text is a positive duration as Go writes it: numbers with units, such as `1h30m`.
fn is_duration(text: &str) -> bool {
    let mut rest = text;
    let mut some = false;
    while !rest.is_empty() {
        let number = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let (digits, after) = rest.split_at(number);
        if digits.parse::<f64>().is_err() {
            return false;
        }
        let units = ["ns", "us", "µs", "ms", "s", "m", "h"];
        let word = after.len() - after.trim_start_matches(|c: char| !c.is_ascii_digit() && c != '.').len();
        let (unit, next) = after.split_at(word);
        if !units.contains(&unit) {
            return false;
        }
        some |= digits.bytes().any(|digit| (b'1'..=b'9').contains(&digit));
        rest = next;
    }
    some
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_found_whatever_its_case_and_the_exact_one_first() {
        let value = json!({"FromResource": 1, "name": 2, "NAME": 3, "none": null});
        let place = Place::root(&value);
        let found = |name: &str| place.field(name).unwrap().map(|field| (field.at().to_owned(), field.value().clone()));
        assert_eq!(found("fromResource"), Some(("/FromResource".to_owned(), json!(1))));
        assert_eq!(found("name"), Some(("/name".to_owned(), json!(2))));
        assert_eq!(found("none"), None);
        assert_eq!(found("absent"), None);
    }

    #[test]
    fn a_problem_names_the_place_and_what_to_write() {
        let value = json!({"a/b": [{"flag": "yes"}], "text": 1});
        let place = Place::root(&value);
        let list = place.field("a/b").unwrap().unwrap().items().unwrap();
        assert_eq!(
            list[0].flag_of("flag").unwrap_err().to_string(),
            "flag is a string; write true or false (at /a~1b/0/flag)"
        );
        assert_eq!(place.text_of("text").unwrap_err().to_string(), "text is a number; write a string (at /text)");
        assert_eq!(place.required("kind").unwrap_err().to_string(), "kind is missing; add it (at /kind)");
        assert_eq!(
            Place::root(&json!([])).field("x").unwrap_err().to_string(),
            "the configuration is a list; write an object"
        );
    }

    #[test]
    fn a_schedule_is_cron_or_every_and_not_both() {
        let check = |schedule: Value| {
            let value = json!({"continuousReconcile": schedule});
            check_continuous_reconcile(&Place::root(&value)).map_err(|problem| problem.at.unwrap_or_default())
        };
        assert_eq!(check(json!(null)), Ok(()));
        for cron in ["0 3 * * *", "@daily", "@every 1h30m", "CRON_TZ=Asia/Tokyo 30 04 * * *"] {
            assert_eq!(check(json!({"cron": cron})), Ok(()), "{cron}");
        }
        for every in ["30m", "1h30m", "1.5h", "250ms"] {
            assert_eq!(check(json!({"every": every})), Ok(()), "{every}");
        }
        for cron in ["3", "@sometimes", "* * * *"] {
            assert_eq!(check(json!({"cron": cron})), Err("/continuousReconcile/cron".to_owned()), "{cron}");
        }
        for every in ["", "5", "0s", "-5m", "m", "1d"] {
            assert_eq!(check(json!({"every": every})), Err("/continuousReconcile/every".to_owned()), "{every}");
        }
        assert_eq!(check(json!({})), Err("/continuousReconcile".to_owned()));
        assert_eq!(check(json!({"cron": "@daily", "every": "1h"})), Err("/continuousReconcile".to_owned()));
    }
}
