//! What is logged, and how: to stderr, as text or as one JSON object a line, without the values of Secrets (C-41), and
//! without anything of others that begins a line, moves the cursor (C-74) or makes a line long (C-144).

use std::{
    borrow::Cow,
    io::{self, Write},
    sync::OnceLock,
};

use orangery_cli::{LogFormat, Logging};
use orangery_controllers::SecretValues;
use orangery_core::error::escaped;
use serde_json::Value;
use tracing_subscriber::{
    EnvFilter,
    filter::{FilterExt as _, LevelFilter, ParseError, filter_fn},
    fmt::MakeWriter,
    layer::{Layer as _, SubscriberExt},
    registry::Registry,
    util::SubscriberInitExt,
};

/// A filter that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "the log filter {filter:?} cannot be read: {source}; write a level (error, warn, info, debug, trace) or directives such as info,orangery_apply=debug"
)]
pub struct FilterError {
    filter: String,
    source: ParseError,
}

/// The module of the Kubernetes client that logs answers whole that it cannot read: whoever has a Target chooses them.
const LOGS_ANSWERS: &str = "kube_client::client";

/// The most bytes of a line of text: of a longer one the begin and the end are shown (C-144).
const LONGEST_LINE: usize = 32 << 10;

/// The most bytes of a field in a line of JSON, before it is escaped (C-144).
const LONGEST_FIELD: usize = 16 << 10;

/// What is secret, once there is an operator in this process: logging is of the process as well.
static SECRETS: OnceLock<SecretValues> = OnceLock::new();

/// From now on these values are in no line. The first operator of a process counts.
pub(crate) fn hide(secrets: &SecretValues) {
    let _ = SECRETS.set(secrets.clone());
}

/// A line as it may be shown. What tenants wrote stands in it: their ends of lines would forge further ones, and their names would
/// fill the disk. Cut after what is secret was masked.
fn display(line: &str, format: LogFormat) -> String {
    let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
    let shown = match format {
        LogFormat::Text => shortened(&escaped(line, '\t'), LONGEST_LINE).into_owned(),
        LogFormat::Json if line.len() > LONGEST_FIELD => escaped(&with_short_fields(line), '\t'),
        LogFormat::Json => escaped(line, '\t'),
    };
    shown + end
}

/// The begin and the end of what is too long, with what is left out between them.
fn shortened(text: &str, longest: usize) -> Cow<'_, str> {
    if text.len() <= longest {
        return Cow::Borrowed(text);
    }
    let (begin, rest) = text.split_at(text.floor_char_boundary(longest / 2));
    let (left_out, end) = rest.split_at(rest.ceil_char_boundary(rest.len() - longest / 2));
    Cow::Owned(format!("{begin} [… {} more bytes …] {end}", left_out.len()))
}

/// A line of JSON of which no text is longer than it may be.
fn with_short_fields(line: &str) -> String {
    fn shorten(value: &mut Value) {
        match value {
            Value::String(text) => *text = shortened(text, LONGEST_FIELD).into_owned(),
            Value::Object(fields) => fields.values_mut().for_each(shorten),
            Value::Array(entries) => entries.iter_mut().for_each(shorten),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    match serde_json::from_str(line) {
        Ok(mut value) => {
            shorten(&mut value);
            value.to_string()
        }
        Err(_) => shortened(line, LONGEST_LINE).into_owned(),
    }
}

/// Writes lines without what is secret. Each call is of one line.
struct MaskedLines<W> {
    lines: W,
    format: LogFormat,
    secrets: &'static OnceLock<SecretValues>,
}

impl<W: Write> Write for MaskedLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = String::from_utf8_lossy(bytes);
        let line = match self.secrets.get() {
            Some(secrets) => display(&secrets.mask_line(&line), self.format),
            None => display(&line, self.format),
        };
        self.lines.write_all(line.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lines.flush()
    }
}

/// Makes [`MaskedLines`].
struct MaskedWriter<W> {
    writer: W,
    format: LogFormat,
    secrets: &'static OnceLock<SecretValues>,
}

impl<'writer, W: MakeWriter<'writer>> MakeWriter<'writer> for MaskedWriter<W> {
    type Writer = MaskedLines<W::Writer>;

    fn make_writer(&'writer self) -> Self::Writer {
        MaskedLines { lines: self.writer.make_writer(), format: self.format, secrets: self.secrets }
    }
}

/// Starts logging for the process, at `usual` where nothing else is asked for. A second call in one process changes
/// nothing.
///
/// # Errors
/// The filter cannot be read.
pub(crate) fn start(logging: &Logging, usual: LevelFilter) -> Result<(), FilterError> {
    let filter = filter(logging.log.as_deref(), usual)?;
    // Another subscriber can only be there because a test or an earlier call set it; it is as good.
    let _ = subscriber(logging.log_format, filter, io::stderr, &SECRETS).try_init();
    Ok(())
}

fn filter(asked: Option<&str>, usual: LevelFilter) -> Result<EnvFilter, FilterError> {
    let Some(asked) = asked else { return Ok(EnvFilter::default().add_directive(usual.into())) };
    EnvFilter::try_new(asked).map_err(|source| FilterError { filter: asked.to_owned(), source })
}

fn subscriber<W>(
    format: LogFormat,
    filter: EnvFilter,
    writer: W,
    secrets: &'static OnceLock<SecretValues>,
) -> Box<dyn tracing::Subscriber + Send + Sync>
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    // Whatever the filter lets through, no answer of a cluster is logged as it came.
    let filter = filter.and(filter_fn(|of| of.target() != LOGS_ANSWERS));
    let lines = tracing_subscriber::fmt::layer().with_writer(MaskedWriter { writer, format, secrets });
    match format {
        LogFormat::Text => Box::new(Registry::default().with(lines.with_ansi(false).with_filter(filter))),
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true).with_current_span(true).with_span_list(false);
            Box::new(Registry::default().with(lines.with_filter(filter)))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use orangery_controllers::SecretSource;
    use orangery_core::error::moves_text;
    use serde_json::json;

    use super::*;

    /// Of a process without an operator.
    static NOTHING: OnceLock<SecretValues> = OnceLock::new();

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: LogFormat, filter: EnvFilter) -> String {
        let written = Written::default();
        let writer = written.clone();
        tracing::subscriber::with_default(subscriber(format, filter, move || writer.clone(), &NOTHING), || {
            tracing::debug!("left out");
            tracing::info_span!("reconcile", object = "a/b").in_scope(|| tracing::info!(kind = "Installation", "said"));
        });
        String::from_utf8(written.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_line_of_json_has_its_fields_and_its_span() {
        let text = logged(LogFormat::Json, filter(None, LevelFilter::INFO).unwrap());
        let mut line: Value = serde_json::from_str(&text).unwrap();
        line.as_object_mut().unwrap().remove("timestamp");
        assert_eq!(
            line,
            json!({"level": "INFO", "message": "said", "kind": "Installation", "target": module_path!(),
                "span": {"name": "reconcile", "object": "a/b"}})
        );
    }

    #[test]
    fn c_74_words_of_others_forge_no_line_and_move_nothing() {
        let hostile = "c\u{1b}]0;pwned\u{7}\u{9b}2J\u{202e}\r\n2026-11-25T00:00:00Z  INFO forged line";
        for format in [LogFormat::Text, LogFormat::Json] {
            let written = Written::default();
            let writer = written.clone();
            let filter = filter(None, LevelFilter::INFO).unwrap();
            tracing::subscriber::with_default(subscriber(format, filter, move || writer.clone(), &NOTHING), || {
                tracing::info_span!("reconcile", object = %hostile).in_scope(|| {
                    tracing::error!(error = %hostile, "{hostile}");
                });
            });
            let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
            let line = text.strip_suffix('\n').unwrap();
            assert!(!line.chars().any(moves_text), "{line:?}");
            assert!(line.matches("forged line").count() == 3, "{line}");
            if format == LogFormat::Json {
                let line: Value = serde_json::from_str(line).unwrap();
                assert_eq!((&line["message"], &line["error"]), (&json!(hostile), &json!(hostile)));
            }
        }
    }

    #[test]
    fn c_144_limits_log_a_line_has_a_length_whatever_others_have_called_theirs() {
        let name = format!("begins{}ends", "\u{1b}x".repeat(100_000));
        for format in [LogFormat::Text, LogFormat::Json] {
            let written = Written::default();
            let writer = written.clone();
            let filter = filter(None, LevelFilter::INFO).unwrap();
            tracing::subscriber::with_default(subscriber(format, filter, move || writer.clone(), &NOTHING), || {
                tracing::info_span!("reconcile", object = %name).in_scope(|| tracing::error!(error = "no", "{name}"));
            });
            let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
            let line = text.strip_suffix('\n').unwrap();
            match format {
                LogFormat::Text => {
                    assert!(line.len() < LONGEST_LINE + 64 && line.ends_with("ends error=\"no\""), "{}", line.len());
                    assert!(line.contains(" more bytes …] "), "{line}");
                }
                LogFormat::Json => {
                    let line: Value = serde_json::from_str(line).unwrap();
                    let left_out = name.len() - LONGEST_FIELD;
                    for field in [&line["message"], &line["span"]["object"]] {
                        let field = field.as_str().unwrap();
                        assert!(field.starts_with("begins") && field.ends_with("ends"), "{field}");
                        assert!(field.contains(&format!(" [… {left_out} more bytes …] ")), "{field}");
                    }
                    assert_eq!(line["error"], "no");
                }
            }
        }
        assert_eq!(shortened("äää", 6), "äää");
        assert_eq!(shortened("abcdefgh", 4), "ab [… 4 more bytes …] gh");
        assert_eq!(shortened("äbä", 3), " [… 5 more bytes …] ");
    }

    #[test]
    fn c_41_what_is_secret_is_in_no_line_of_either_form() {
        static SECRETS: OnceLock<SecretValues> = OnceLock::new();
        let secrets = SecretValues::default();
        secrets.learn(&"a".into(), SecretSource::Secret("s".into()), ["hunter2 \"of\" mine".to_owned()]);
        SECRETS.set(secrets).unwrap();
        for format in [LogFormat::Text, LogFormat::Json] {
            let written = Written::default();
            let writer = written.clone();
            let filter = filter(None, LevelFilter::INFO).unwrap();
            tracing::subscriber::with_default(subscriber(format, filter, move || writer.clone(), &SECRETS), || {
                tracing::info!(target: "orangery::guest", plugin = "p", "a component says hunter2 \"of\" mine");
            });
            let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
            assert!(text.contains("says [masked]") && !text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn no_answer_of_a_cluster_is_logged_as_it_came() {
        let written = Written::default();
        let writer = written.clone();
        let filter = filter(Some("trace"), LevelFilter::INFO).unwrap();
        tracing::subscriber::with_default(
            subscriber(LogFormat::Text, filter, move || writer.clone(), &NOTHING),
            || {
                tracing::warn!(target: "kube_client::client", "a whole answer");
                tracing::warn!(target: "kube_client::client::builder", "of it nothing");
            },
        );
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert!(!text.contains("a whole answer") && text.contains("of it nothing"), "{text}");
    }

    /// A server of a Target that answers whatever it is asked with what is no answer of Kubernetes.
    #[tokio::test]
    async fn no_body_of_a_server_is_in_the_log_whatever_is_logged() {
        use k8s_openapi::api::core::v1::ConfigMap;
        use kube::{Api, api::ListParams};

        const BODY: &str = "db_password=hunter2";
        let written = Written::default();
        let writer = written.clone();
        let filter = filter(Some("trace"), LevelFilter::INFO).unwrap();
        let _logs =
            tracing::subscriber::set_default(subscriber(LogFormat::Text, filter, move || writer.clone(), &NOTHING));
        for code in [200, 403, 500] {
            let status = http::StatusCode::from_u16(code).unwrap();
            let pages = axum::Router::new().fallback(move || async move { (status, BODY) });
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let served = tokio::spawn(async move { axum::serve(listener, pages).await });
            let config = kube::Config::new(format!("http://{address}").parse().unwrap());
            let client = crate::requests::remote(config, &crate::requests::Requests::default(), None).unwrap();
            let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "a");
            assert!(maps.get("x").await.is_err() && maps.list(&ListParams::default()).await.is_err());
            let request = http::Request::get("/version").body(Vec::new()).unwrap();
            assert!(client.request::<Value>(request).await.is_err());
            let watched = maps.watch(&kube::api::WatchParams::default(), "0").await;
            if let Ok(events) = watched {
                let events: Vec<_> = futures::StreamExt::collect(futures::StreamExt::take(events, 3)).await;
                assert!(events.iter().all(Result::is_err), "{events:?}");
            }
            served.abort();
        }
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("127.0.0.1") || text.contains("requesting"), "something is logged: {text}");
        let shown = text.lines().find(|line| line.contains("hunter2"));
        assert_eq!(shown, None);
    }

    #[test]
    fn what_is_asked_for_replaces_what_is_usual() {
        assert_eq!(logged(LogFormat::Text, filter(Some("warn"), LevelFilter::INFO).unwrap()), "");
        let text = logged(LogFormat::Text, filter(Some("warn,orangery_runtime=debug"), LevelFilter::INFO).unwrap());
        assert_eq!(text.lines().count(), 2, "{text}");
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_told_with_the_form() {
        let error = filter(Some("a=b=c"), LevelFilter::INFO).unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with("the log filter \"a=b=c\" cannot be read: "), "{message}");
        assert!(
            message.ends_with(
                "; write a level (error, warn, info, debug, trace) or directives such as info,orangery_apply=debug"
            ),
            "{message}"
        );
    }
}
