//! Processes that are killed one after another while calls of several namespaces are under way, and what is found of that.

use super::*;

/// Processes, one after another.
struct Play {
    written: Written,
    calls: Arc<UnfinishedCalls>,
    /// How long a call waited at most in one process before it began.
    longest: BTreeMap<String, Duration>,
}

fn named(of: &str) -> Key {
    let (namespace, name) = of.split_once('/').unwrap();
    Key::new(namespace, name)
}

fn texts(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

impl Play {
    fn new() -> Self {
        let (written, calls) = after(&Written::default());
        Self { written, calls, longest: BTreeMap::new() }
    }

    /// How long a call has to wait for itself to begin; `None` where it may begin.
    fn wait(&self, of: &str) -> Option<Duration> {
        match self.calls.admit("c", &named(of), Instant::now()) {
            CallAdmission::Free | CallAdmission::Alone => None,
            CallAdmission::Later(left) | CallAdmission::Aside(CallAside { left, .. }) => Some(left),
        }
    }

    /// All of these that may are called and end, until the bomb is called. The process is killed during it, and during the last calls
    /// of the others.
    async fn kill(&mut self, bomb: &str, others: &[String]) {
        let (began, mut waited) = (Instant::now(), BTreeMap::new());
        loop {
            let bomb_waits = self.wait(bomb);
            for of in others {
                if self.wait(of).is_none() {
                    waited.entry(of.clone()).or_insert_with(|| began.elapsed());
                    let under_way = self.calls.begin_call(&named(of));
                    if bomb_waits.is_none() {
                        std::mem::forget(under_way);
                    }
                }
            }
            let Some(left) = bomb_waits else { break };
            tokio::time::advance(left).await;
        }
        for (of, waited) in waited {
            let longest = self.longest.entry(of).or_default();
            *longest = waited.max(*longest);
        }
        std::mem::forget(self.calls.begin_call(&named(bomb)));
        (self.written, self.calls) = after(&self.written);
    }

    /// All is called and ends for a while.
    async fn pass(&self, of: &[String], time: Duration) {
        for _ in 0..2 {
            of.iter().filter(|of| self.wait(of).is_none()).for_each(|of| drop(self.calls.begin_call(&named(of))));
            tokio::time::advance(time / 2).await;
        }
    }

    /// How many kills a namespace is the reason for.
    fn kills(&self, namespace: &str) -> u32 {
        self.calls.lock().namespaces.get(&Namespace::from(namespace)).map_or(0, |known| known.kills)
    }

    /// How many kills count against a call.
    fn times(&self, of: &str) -> u32 {
        self.calls.lock().suspects.get(&("c".to_owned(), named(of))).map_or(0, |suspect| suspect.times)
    }

    fn is_set_aside(&self, of: &str) -> bool {
        let known = self.calls.lock();
        let namespace_is = known.namespaces.get(&named(of).namespace).map(|known| known.aside_until);
        let is = known.suspects.get(&("c".to_owned(), named(of))).and_then(|suspect| suspect.aside_until);
        namespace_is.max(is).is_some_and(|until| until > Instant::now())
    }
}

#[tokio::test(start_paused = true)]
async fn c_283_bombs_of_ever_other_namespaces_have_no_neighbour_set_aside() {
    let mut play = Play::new();
    for kill in 0..20 {
        // What killed before is deleted, and goes off elsewhere.
        play.kill(&format!("evil{}/b{kill}", kill % 5), &texts(&["nb/x"])).await;
        play.calls.retain("c", |key| *key.namespace == *"nb");
        assert!(play.kills("nb") == 0 && play.times("nb/x") <= 1 && !play.is_set_aside("nb/x"), "{kill}");
    }
    assert!(play.longest["nb/x"] <= FIRST_WINDOW);
}

#[tokio::test(start_paused = true)]
async fn c_283_a_neighbour_with_a_kill_is_not_blamed_for_others_and_the_killer_is_found() {
    let mut play = Play::new();
    play.kill("nb/x", &[]).await;
    assert_eq!((play.kills("nb"), play.times("nb/x")), (1, 1));
    for kill in 0..12 {
        play.kill(&format!("evil/b{kill}"), &texts(&["nb/x"])).await;
        play.calls.retain("c", |key| *key.namespace == *"nb");
        assert!(play.kills("nb") == 1 && play.times("nb/x") <= 1 && !play.is_set_aside("nb/x"), "{kill}");
    }
    assert!(play.is_set_aside("evil/other"), "{:?}", play.written.texts());
    assert!(play.longest["nb/x"] <= FIRST_WINDOW);
}

#[tokio::test(start_paused = true)]
async fn c_283_ten_namespaces_that_kill_once_all_are_there_keep_others_waiting_for_one_window_a_kill() {
    let tenant: Vec<String> = (0..10).map(|number| format!("t{number}/x")).collect();
    let all = [tenant.clone(), texts(&["nb/x"])].concat();
    let mut play = Play::new();
    for kill in 0..24 {
        assert!(play.wait("nb/x").unwrap_or_default() <= FIRST_WINDOW, "{kill}");
        play.pass(&all, FIRST_WINDOW).await;
        assert!(all.iter().all(|of| play.wait(of).is_none()), "{kill}");
        play.kill("t0/bomb", &all).await;
        assert_eq!(play.kills("nb"), 0, "{kill}");
    }
}

#[tokio::test(start_paused = true)]
async fn c_283_after_one_kill_only_what_was_under_way_is_alone() {
    let all: Vec<String> = (0..20).map(|number| format!("n{number}/x")).collect();
    let mut play = Play::new();
    play.kill("bad/bomb", &all).await;
    for of in &all {
        let admitted = |name: &str| play.calls.admit("c", &Key { name: name.into(), ..named(of) }, Instant::now());
        assert_eq!((admitted("x"), admitted("new")), (CallAdmission::Alone, CallAdmission::Free), "{of}");
        assert!(!play.calls.suspects(&named(of).namespace, Instant::now()), "{of}");
    }
    play.kill("bad/bomb", &all).await;
    assert_eq!(play.calls.admit("c", &named("bad/new"), Instant::now()), CallAdmission::Alone, "it is called first");
    assert!(play.calls.suspects(&"n0".into(), Instant::now()));
    assert_eq!(play.calls.admit("c", &named("other/x"), Instant::now()), CallAdmission::Later(FIRST_WINDOW));
}

#[tokio::test(start_paused = true)]
async fn c_283_a_time_without_a_kill_speaks_for_the_namespace_that_was_called_alone() {
    let mut play = Play::new();
    for _ in 0..2 {
        play.kill("b/bomb", &texts(&["a/x"])).await;
    }
    let namespaces = |play: &Play| -> Vec<String> {
        play.written.texts().into_iter().filter(|text| !text.starts_with("c ")).collect()
    };
    assert_eq!(namespaces(&play), ["a 0 together 2", "b 0 together 2"]);
    // It begins when the first lists are in.
    tokio::time::advance(FIRST_WINDOW * 9).await;
    play.pass(&texts(&["a/x", "b/bomb", "other/x"]), FIRST_WINDOW).await;
    assert_eq!((play.wait("b/bomb"), play.wait("other/x")), (None, None));
    assert_eq!(namespaces(&play), ["a 0", "b 0 together 2"]);
}

#[tokio::test(start_paused = true)]
async fn c_283_a_bomb_beside_nine_busy_namespaces_is_set_aside_after_three_kills_and_they_are_not() {
    for bad in ["bad", "zzz"] {
        let bomb = format!("{bad}/bomb");
        let mut play = Play::new();
        let mut found = Vec::new();
        for kill in 0..15 {
            let busy: Vec<String> = (0..9).map(|number| format!("n{number}/x{kill}")).collect();
            play.kill(&bomb, &busy).await;
            found.push(play.times(&bomb));
            for of in &busy {
                assert!(play.times(of) <= 1 && !play.is_set_aside(of), "{kill} {of}");
                assert_eq!(play.kills(&named(of).namespace), 0, "{kill} {of}");
            }
            // What is busy ends what was under way.
            play.calls.retain("c", |key| *key.namespace == *bad);
        }
        assert!(play.is_set_aside(&bomb) && !play.is_set_aside(&format!("{bad}/other")), "{bad}");
        assert_eq!(found, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8], "{bad}");
    }
}
