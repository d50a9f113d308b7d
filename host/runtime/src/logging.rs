//! What is logged, and how: to stderr, as text or as one JSON object a line.

use std::io;

use orangery_cli::{LogFormat, Logging};
use tracing_subscriber::{
    EnvFilter,
    filter::{LevelFilter, ParseError},
    fmt::MakeWriter,
    layer::SubscriberExt,
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

/// Starts logging for the process, at `usual` where nothing else is asked for. A second call in one process changes
/// nothing.
///
/// # Errors
/// The filter cannot be read.
pub(crate) fn start(logging: &Logging, usual: LevelFilter) -> Result<(), FilterError> {
    let filter = filter(logging.log.as_deref(), usual)?;
    // Another subscriber can only be there because a test or an earlier call set it; it is as good.
    let _ = subscriber(logging.log_format, filter, io::stderr).try_init();
    Ok(())
}

fn filter(asked: Option<&str>, usual: LevelFilter) -> Result<EnvFilter, FilterError> {
    let Some(asked) = asked else { return Ok(EnvFilter::default().add_directive(usual.into())) };
    EnvFilter::try_new(asked).map_err(|source| FilterError { filter: asked.to_owned(), source })
}

fn subscriber<W>(format: LogFormat, filter: EnvFilter, writer: W) -> Box<dyn tracing::Subscriber + Send + Sync>
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    match format {
        LogFormat::Text => Box::new(Registry::default().with(filter).with(lines.with_ansi(false))),
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true).with_current_span(true).with_span_list(false);
            Box::new(Registry::default().with(filter).with(lines))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};

    use super::*;

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
        tracing::subscriber::with_default(subscriber(format, filter, move || writer.clone()), || {
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
