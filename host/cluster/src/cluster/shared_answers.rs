//! What a cluster is asked once for all of a namespace who need it. A failure is remembered for a while, so that it is not met
//! again and again. Answers are for all namespaces; requests and failures are not (C-44).

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use orangery_turns::Tenant;
use tokio::time::Instant;

use crate::Error;

/// How long the first failure is remembered; twice as long each further one.
const FIRST_REST: Duration = Duration::from_millis(250);

/// The most of that.
const REST_CEILING: Duration = Duration::from_secs(8);

/// Questions of one sort to one cluster whose answers are known (C-282). The greatest known clusters serve some 500 versions.
const MOST_QUESTIONS: usize = 1_024;

/// Answers by question.
pub(super) struct SharedAnswers<K, V> {
    /// Protects what is known. Held for one look or one change, never across an await.
    known: Arc<Mutex<BTreeMap<K, Known<V>>>>,
}

/// What is known of a question.
struct Known<V> {
    /// The newest answer.
    answer: Option<(V, Instant)>,
    /// The requests that are under way.
    asking: BTreeMap<Tenant, Asking<V>>,
    failures: BTreeMap<Tenant, RememberedFailure>,
}

type Asking<V> = Shared<BoxFuture<'static, Result<V, Error>>>;

struct RememberedFailure {
    failures: u32,
    until: Instant,
    error: Error,
}

/// How a question came to its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// It was asked for this caller.
    Caller,
    /// It was asked before this caller did.
    Earlier,
}

impl<K, V> Default for SharedAnswers<K, V> {
    fn default() -> Self {
        Self { known: Arc::default() }
    }
}

impl<V> Default for Known<V> {
    fn default() -> Self {
        Self { answer: None, asking: BTreeMap::new(), failures: BTreeMap::new() }
    }
}

impl<K: Ord + Clone + Send + 'static, V: Clone + Send + Sync + 'static> SharedAnswers<K, V> {
    /// The newest answer.
    pub(super) fn known(&self, key: &K) -> Option<V> {
        self.known_since(key).map(|(answer, _)| answer)
    }

    /// The newest answer, and when it came.
    pub(super) fn known_since(&self, key: &K) -> Option<(V, Instant)> {
        self.lock().get(key)?.answer.clone()
    }

    /// Forgets the answers of these questions.
    pub(super) fn forget(&self, which: impl Fn(&K) -> bool) {
        for (_, known) in self.lock().iter_mut().filter(|(key, _)| which(key)) {
            known.answer = None;
        }
    }

    /// Asks, or waits for the answer that somebody else of the namespace has asked for.
    ///
    /// # Errors
    /// Those of the request, also where another one has failed with it a moment ago.
    pub(super) async fn ask(
        &self,
        key: &K,
        tenant: &Tenant,
        request: impl Future<Output = Result<V, Error>> + Send + 'static,
    ) -> Result<(V, Asker), Error> {
        let (asking, asker) = {
            let mut all = self.lock();
            if all.len() >= MOST_QUESTIONS && !all.contains_key(key) {
                forget_one(&mut all);
            }
            let known = all.entry(key.clone()).or_default();
            if let Some(asking) = known.asking.get(tenant).filter(|asking| asking.peek().is_none()) {
                (asking.clone(), Asker::Earlier)
            } else if let Some(failure) = known.failures.get(tenant).filter(|failure| Instant::now() < failure.until) {
                return Err(failure.error.clone());
            } else {
                let asking = self.begin(key.clone(), tenant.clone(), request);
                known.asking.insert(tenant.clone(), asking.clone());
                (asking, Asker::Caller)
            }
        };
        Ok((asking.await?, asker))
    }

    /// The request as a task of its own: it goes on where the caller gives up.
    fn begin(
        &self,
        key: K,
        tenant: Tenant,
        request: impl Future<Output = Result<V, Error>> + Send + 'static,
    ) -> Asking<V> {
        let all = Arc::clone(&self.known);
        let task = tokio::spawn(async move {
            let answer = request.await;
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(key).or_default().take_in(tenant, &answer);
            answer
        });
        let answer =
            task.map(|ended| ended.unwrap_or_else(|ended| Err(Error::Abandoned { message: ended.to_string() })));
        answer.boxed().shared()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<K, Known<V>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets the question whose answer is the oldest, those without one before; what is being asked stays.
fn forget_one<K: Ord + Clone, V>(all: &mut BTreeMap<K, Known<V>>) {
    let idle = all.iter().filter(|(_, known)| known.asking.is_empty());
    let oldest = idle.min_by_key(|(_, known)| known.answer.as_ref().map(|(_, since)| *since));
    if let Some(key) = oldest.map(|(key, _)| key.clone()) {
        all.remove(&key);
    }
}

impl<V: Clone> Known<V> {
    fn take_in(&mut self, tenant: Tenant, answer: &Result<V, Error>) {
        self.asking.remove(&tenant);
        match answer {
            Ok(answer) => {
                self.answer = Some((answer.clone(), Instant::now()));
                self.failures.clear();
            }
            Err(error) => {
                let failures = self.failures.get(&tenant).map_or(0, |failure| failure.failures).saturating_add(1);
                let rest = FIRST_REST.saturating_mul(2_u32.saturating_pow(failures - 1)).min(REST_CEILING);
                let until = Instant::now() + rest;
                self.failures.insert(tenant, RememberedFailure { failures, until, error: error.clone() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn c_282_limits_cluster_so_many_questions_are_known_and_the_oldest_is_forgotten() {
        let answers = SharedAnswers::default();
        let ask = async |key: usize| answers.ask(&key, &None, async move { Ok(key) }).await.unwrap();
        for key in 0..=MOST_QUESTIONS {
            assert_eq!(ask(key).await, (key, Asker::Caller));
        }
        assert_eq!(
            (answers.known(&0), answers.known(&1), answers.known(&MOST_QUESTIONS)),
            (None, Some(1), Some(MOST_QUESTIONS))
        );
        assert_eq!(answers.lock().len(), MOST_QUESTIONS);
        ask(0).await;
        assert_eq!((answers.known(&0), answers.known(&1)), (Some(0), None));
    }
}
