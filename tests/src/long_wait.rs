//! What a test waits for when it waits long: told on standard error past what the runner of tests keeps, so that a suite that is
//! stopped says what each of its tests waited for (`.ci/suite`).

use std::{
    io::{Write as _, stderr},
    pin::pin,
    thread,
    time::Duration,
};

use tokio::time::timeout;

/// From then on a wait is long.
const LONG: Duration = Duration::from_secs(20);

/// Waits for a future, and says what it is where that is long.
pub async fn with_message<T>(what: impl FnOnce() -> String, future: impl Future<Output = T>) -> T {
    with_message_after(LONG, |line| drop(writeln!(stderr(), "{line}")), what, future).await
}

async fn with_message_after<T>(
    long: Duration,
    tell: impl FnOnce(&str),
    what: impl FnOnce() -> String,
    future: impl Future<Output = T>,
) -> T {
    let mut future = pin!(future);
    if let Ok(done) = timeout(long, &mut future).await {
        return done;
    }
    let thread = thread::current();
    tell(&line(thread.name().unwrap_or_default(), &what()));
    future.await
}

/// One line of its own, whatever is waited for.
fn line(test: &str, what: &str) -> String {
    let what: String = what.chars().filter(|letter| !letter.is_control()).take(300).collect();
    format!("\ntest {test} waits for {what}")
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn what_takes_long_is_told_and_what_does_not_is_not() {
        let mut lines = Vec::new();
        with_message_after(LONG, |line| lines.push(line.to_owned()), || "nothing".to_owned(), async {}).await;
        assert_eq!(lines, Vec::<String>::new());
        let (told, is_told) = oneshot::channel();
        let ends = async { is_told.await.expect("it is told") };
        let what = || "the\nend".to_owned();
        let line = with_message_after(Duration::ZERO, |line| drop(told.send(line.to_owned())), what, ends).await;
        let test = "long_wait::tests::what_takes_long_is_told_and_what_does_not_is_not";
        assert_eq!(line, format!("\ntest {test} waits for theend"));
    }
}
